"""Vectors and terms of passages are read again after every change of their tenant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, cast

import numpy as np
import pytest

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.retrieval.caching import TenantCache
from agentic_rag_backend.retrieval.passages.passage_features import PassageFeatures
from agentic_rag_backend.stores.vector.base import Collection, Vector

Ask = Callable[..., Query]


@dataclass
class Store:
    """A vector for every chunk but ``without``. The terms of a text are the lengths of its words."""

    value: float = 1.0
    read: list[tuple[str, ...]] = field(default_factory=list)
    counted: list[str] = field(default_factory=list)

    async def vectors(self, tenant: TenantId, collection: Collection, ids: Sequence[str]) -> dict[str, Vector]:
        assert collection is Collection.CHUNKS
        self.read.append((tenant.value, *ids))
        return {id: np.full(2, self.value, dtype=np.float32) for id in ids if id != "without"}

    def terms(self, text: str) -> frozenset[int]:
        self.counted.append(text)
        return frozenset(map(len, text.split()))


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def features(store: Store) -> PassageFeatures:
    return PassageFeatures(cast("Any", store), TenantCache("test", 100_000))


async def test_only_what_is_not_kept_is_read(features: PassageFeatures, store: Store, query: Ask) -> None:
    asked = query("Where?")
    assert list(await features.vectors(asked, ["a", "b"])) == ["a", "b"]
    assert set(await features.vectors(query("Who?"), ["b", "c", "without"])) == {"b", "c"}
    assert [ids[1:] for ids in store.read] == [("a", "b"), ("c", "without")]


async def test_terms_are_those_of_text_and_title(
    features: PassageFeatures, store: Store, query: Ask, visible: Callable[..., VisibleChunk]
) -> None:
    for _ in range(2):
        found = features.terms(query("Where?"), {"c": visible("c", "harbours")})
        assert found["c"].tolist() == [1, 2, 5, 8]  # "Title of c" and "harbours"
    assert store.counted == ["Title of c\nharbours"]


@pytest.mark.parametrize("change", ["state", "recreated", "tenant"])
async def test_a_change_makes_them_unreachable(features: PassageFeatures, store: Store, query: Ask, change: str) -> None:
    first = query("Where?")
    await features.vectors(first, ["a"])
    store.value = 2.0
    changed = {
        "state": replace(first.tenant, state_version=first.tenant.state_version + 1),
        "recreated": replace(first.tenant, created_at=datetime(2999, 1, 1, tzinfo=UTC)),
        "tenant": replace(first.tenant, id=TenantId("t_" + "f" * 32)),
    }
    assert (await features.vectors(replace(first, tenant=changed[change]), ["a"]))["a"].tolist() == [2.0, 2.0]


async def test_a_search_that_began_before_a_change_keeps_nothing(features: PassageFeatures, store: Store, query: Ask) -> None:
    before = query("Where?")
    after = replace(before, tenant=replace(before.tenant, state_version=before.tenant.state_version + 1))
    await features.vectors(after, ["a"])
    store.value = 2.0
    await features.vectors(before, ["a", "b"])
    store.value = 3.0
    found = await features.vectors(after, ["a", "b"])
    assert (found["a"][0], found["b"][0]) == (1.0, 3.0)


async def test_a_request_without_the_cache_reads_itself(features: PassageFeatures, store: Store, query: Ask) -> None:
    fresh = query("Where?", cache=False)
    for _ in range(2):
        await features.vectors(fresh, ["a"])
    assert len(store.read) == 2


async def test_without_memory_nothing_is_kept(store: Store, query: Ask) -> None:
    features = PassageFeatures(cast("Any", store))
    for _ in range(2):
        await features.vectors(query("Where?"), ["a"])
    assert len(store.read) == 2


async def test_nobody_can_change_what_is_kept(
    features: PassageFeatures, query: Ask, visible: Callable[..., VisibleChunk]
) -> None:
    kept: list[Any] = [
        (await features.vectors(query("Where?"), ["a"]))["a"],
        features.terms(query("Where?"), {"c": visible("c")})["c"],
    ]
    for values in kept:
        with pytest.raises(ValueError, match="read-only"):
            values *= 2
