from __future__ import annotations

import random

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.retrieval.caching.entries import ENTRY_BYTES, TenantCache

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
