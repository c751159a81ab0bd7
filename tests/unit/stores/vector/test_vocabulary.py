from __future__ import annotations

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.vector.conditions import Vocabulary, tags_of

A, B, C = (TenantId("t_" + letter * 32) for letter in "abc")


def test_values_are_loaded_once_and_grow_with_writes() -> None:
    loads = []

    def load() -> list[str]:
        loads.append(1)
        return tags_of({"year": [1, 2], "label": "x"})

    vocabulary = Vocabulary()
    vocabulary.add(A, tags_of({"year": 99}))
    assert sorted(vocabulary.values(A, load)["year"].values()) == [1, 2]
    vocabulary.add(A, tags_of({"year": 3, "other": True}))
    values = vocabulary.values(A, load)
    assert sorted(values["year"].values()) == [1, 2, 3]
    assert list(values["other"].values()) == [True]
    assert len(loads) == 1
    vocabulary.forget(A)
    assert sorted(vocabulary.values(A, load)["year"].values()) == [1, 2]


def test_the_least_recently_used_tenants_are_dropped_and_load_again() -> None:
    vocabulary = Vocabulary(max_values=5)
    loads: list[TenantId] = []

    def values(tenant: TenantId) -> int:
        return len(vocabulary.values(tenant, lambda: loads.append(tenant) or tags_of({"year": [1, 2]}))["year"])  # type: ignore[func-returns-value]

    assert [values(tenant) for tenant in (A, B, A, C, A, B)] == [2] * 6
    assert loads == [A, B, C, B]


def test_one_tenant_larger_than_the_bound_is_still_whole() -> None:
    assert len(Vocabulary(max_values=2).values(A, lambda: tags_of({"year": list(range(9))}))["year"]) == 9
