from __future__ import annotations

import random
from heapq import nlargest
from typing import Any

import pytest

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.retrieval.caching import ENTRY_BYTES, TenantCache

A, B = TenantId("t_" + "a" * 32), TenantId("t_" + "b" * 32)
SIZE = 1000 - ENTRY_BYTES
"""Size of a value whose entry takes 1,000 bytes."""


def filled(cache: TenantCache[int], tenant: TenantId, count: int) -> None:
    for number in range(count):
        cache.put(tenant, b"%d" % number, number, SIZE)


def test_the_least_recently_used_entry_is_dropped() -> None:
    cache = TenantCache[int]("test", 4000)
    filled(cache, A, 4)
    assert cache.get(A, b"0") == 0
    cache.put(A, b"4", 4, SIZE)
    assert [cache.get(A, b"%d" % number) for number in range(5)] == [0, None, 2, 3, 4]
    assert cache.size_bytes == 4000


def test_a_busy_tenant_pushes_out_only_itself() -> None:
    cache = TenantCache[int]("test", 8000)
    filled(cache, A, 3)
    filled(cache, B, 1000)
    assert [cache.get(A, b"%d" % number) for number in range(3)] == [0, 1, 2]
    assert (cache.size_of(A), cache.size_of(B)) == (3000, 5000)


def test_a_tenant_alone_may_use_everything_and_then_shares() -> None:
    cache = TenantCache[int]("test", 8000)
    filled(cache, A, 20)
    assert cache.size_of(A) == 8000
    filled(cache, B, 20)
    assert (cache.size_of(A), cache.size_of(B)) == (4000, 4000)


def test_an_older_state_is_never_returned_or_kept() -> None:
    cache = TenantCache[int]("test", 8000)
    cache.put(A, b"one", 1, SIZE, state=(1,))
    assert cache.get(A, b"one", state=(1,)) == 1
    assert cache.get(A, b"one", state=(2,)) is None
    assert cache.size_bytes == 0, "a newer state drops the entries"
    cache.put(A, b"two", 2, SIZE, state=(2,))
    cache.put(A, b"one", 1, SIZE, state=(1,))
    assert cache.get(A, b"one", state=(1,)) is None
    assert cache.get(A, b"two", state=(2,)) == 2


def test_nothing_is_kept_without_memory_or_of_a_value_that_is_too_large() -> None:
    off, small = TenantCache[int]("test", 0), TenantCache[int]("test", 8000)
    off.put(A, b"one", 1, 0)
    small.put(A, b"one", 1, 2001)
    assert (off.enabled, off.get(A, b"one"), small.get(A, b"one")) == (False, None, None)


def test_the_bound_holds_after_any_sequence() -> None:
    chance, cache = random.Random(7), TenantCache[int]("test", 20_000)
    tenants = [TenantId("t_" + f"{number:032x}") for number in range(5)]
    for step in range(3000):
        tenant, key, state = chance.choice(tenants), b"%d" % chance.randrange(12), (chance.randrange(step // 500 + 1),)
        if chance.random() < 0.02:
            cache.forget(tenant)
        elif chance.random() < 0.5:
            cache.put(tenant, key, step, chance.randrange(4600), state=state)
        else:
            cache.get(tenant, key, state=state)
        assert cache.size_bytes == sum(map(cache.size_of, tenants)) <= 20_000
    assert cache.size_bytes > 0


def test_several_values_are_kept_at_once_as_one_after_another() -> None:
    draw = random.Random(7)
    for _ in range(50):
        one, other = TenantCache[int]("test", 12_000), TenantCache[int]("test", 12_000)
        for _ in range(20):
            tenant = draw.choice((A, B))
            values = {b"%d" % draw.randrange(9): (number, SIZE) for number in range(draw.randint(1, 3))}
            one.put_all(tenant, values)
            for key, (value, size) in values.items():
                other.put(tenant, key, value, size)
            held = [[cache.size_of(each) for each in (A, B)] for cache in (one, other)]
            assert one.size_bytes == sum(held[0]) <= 12_000
            if sum(held[1]) < 12_000:
                assert held[0] == held[1]


def test_room_is_made_once_for_several_values(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = TenantCache[int]("test", 50_000)
    for number in range(49):
        cache.put(TenantId("t_" + f"{number:032x}"), b"own", number, SIZE)
    compared: list[int] = []

    def counted(count: int, *asked: Any, **named: Any) -> Any:
        compared.append(count)
        return nlargest(count, *asked, **named)

    monkeypatch.setattr("heapq.nlargest", counted)
    cache.put_all(A, {b"%d" % number: (number, SIZE) for number in range(40)})
    assert len(compared) == 1, "all tenants are compared once, not for each value"
    assert cache.size_of(A) == 1000
    assert cache.size_bytes == 50_000
