from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from agentic_rag_backend.domain.filters import Comparison
from agentic_rag_backend.domain.query import Correction, Hit, LegWeights, LevelWeights, Query, Rerank, Retrieval, Trace
from agentic_rag_backend.domain.tenant import Tenant, TenantId, TenantState
from agentic_rag_backend.domain.tuning import TunedValues
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.retrieval.caching import forbid_reuse
from agentic_rag_backend.retrieval.stages.pipeline import CachedRetriever, ResultCache, key_of

NOON = datetime(2024, 5, 1, 12, 0, 30, tzinfo=UTC)
TENANT = Tenant(TenantId("t_" + "a" * 32), "acme", TenantState.ACTIVE, 7, NOON - timedelta(days=9))
USAGE = Usage(prompt_tokens=10, completion_tokens=5, calls=1)


def asked(**given: Any) -> Query:
    return Query(**{"tenant": TENANT, "text": "who", "asked_at": NOON, **given})


class Counting:
    """Finds one chunk, and counts its searches."""

    def __init__(self, hit: Hit, trace: Trace | None = None) -> None:
        self.searches = 0
        self.hit = hit
        self.trace = trace or Trace(strategy="counting", processing_time_ms={"dense": 3.0, "retrieval": 5.0})
        self.before: Callable[[], None] = lambda: None

    async def retrieve(self, query: Query) -> Retrieval:
        self.searches += 1
        query.seen.agree_on_version(self.hit.visible.chunk.document_id, 3)
        await asyncio.sleep(0)
        await asyncio.create_task(self._part())
        return Retrieval(hits=(self.hit,), usage=USAGE, trace=self.trace)

    async def _part(self) -> None:
        self.before()


@pytest.fixture
def counting(hit: Callable[..., Hit]) -> Counting:
    return Counting(hit("one"))


def cached(counting: Counting, max_bytes: int = 10**6) -> CachedRetriever:
    return CachedRetriever("counting", counting, ResultCache(max_bytes))


async def test_an_equal_query_gets_the_same_results_without_a_search(counting: Counting) -> None:
    over = cached(counting)
    first, query = await over.retrieve(asked()), asked(asked_at=NOON + timedelta(seconds=20))
    again = await over.retrieve(query)
    assert counting.searches == 1
    assert (first.trace.cache, again.trace.cache) == (None, "hit")
    assert replace(again, usage=USAGE, trace=first.trace) == first
    assert (first.usage, again.usage) == (USAGE, Usage()), "no model was called"
    assert list(again.trace.processing_time_ms) == ["retrieval"]
    assert not query.seen.agree_on_version(counting.hit.visible.chunk.document_id, 4), "later reads agree with the results"


async def test_results_are_used_until_a_document_that_was_read_becomes_invalid(counting: Counting) -> None:
    over, end = cached(counting), NOON + timedelta(seconds=10)
    first = asked()
    first.seen.ends_at(end)
    first.seen.ends_at(end + timedelta(hours=1))
    await over.retrieve(first)
    before = asked(asked_at=end - timedelta(seconds=1))
    assert (await over.retrieve(before)).trace.cache == "hit"
    assert before.seen.valid_until == end, "what uses the results is kept no longer"
    assert (await over.retrieve(asked(asked_at=end))).trace.cache is None
    assert counting.searches == 2
    assert (await over.retrieve(asked(asked_at=end + timedelta(seconds=1)))).trace.cache == "hit"


async def test_results_about_a_named_time_do_not_end(counting: Counting) -> None:
    over = cached(counting)
    query = asked(as_of=NOON)
    query.seen.ends_at(NOON + timedelta(seconds=10))
    await over.retrieve(query)
    assert (await over.retrieve(asked(as_of=NOON, asked_at=NOON + timedelta(seconds=20)))).trace.cache == "hit"


OTHER: dict[str, Any] = {
    "tenant": replace(TENANT, state_version=8),
    "text": "whom",
    "limit": 6,
    "high_limit": 6,
    "min_score": 0.1,
    "least_candidates": 3,
    "weights": LevelWeights(0.5, 0.5),
    "leg_weights": LegWeights(0.5, 0.5),
    "tuned": TunedValues(dense_weight=0.5),
    "filters": Comparison("shelf", "eq", 1),
    "as_of": NOON,
    "asked_at": NOON + timedelta(minutes=1),
    "timeout_s": 3.0,
    "options": {"fusion": "rrf"},
    "rerank": Rerank(name="mmr", candidates=20),
    "corrective": Correction(),
    "dual_level": True,
    "synthetic_questions": True,
    "not_meant": frozenset({"e1"}),
    "session": "digest",
    "remember": False,
    "diverse": False,
    "cache": False,
}


def test_every_field_of_a_query_is_in_its_key() -> None:
    """The versions seen belong to one request, and queries with a vector of their own are not cached."""
    assert {field.name for field in fields(Query)} - OTHER.keys() == {"seen", "embedding"}
    keys = {name: key_of("hybrid", asked(**{name: value})) for name, value in OTHER.items()}
    assert len({*keys.values(), key_of("hybrid", asked()), key_of("graph", asked())}) == len(keys) + 2
    seconds = {key_of("hybrid", asked(as_of=NOON + timedelta(seconds=number))) for number in range(3)}
    assert len(seconds) == 3, "a time that the request names counts exactly"
    others = [replace(TENANT, id=TenantId("t_" + "b" * 32)), replace(TENANT, created_at=NOON)]
    assert len({key_of("hybrid", asked(tenant=each)) for each in (TENANT, *others)}) == 3
    assert key_of("hybrid", asked(options={"x": True})) != key_of("hybrid", asked(options={"x": 1}))


async def test_a_change_of_the_tenant_hides_older_results(counting: Counting) -> None:
    over = cached(counting)
    for version in (7, 8, 8, 7):
        await over.retrieve(asked(tenant=replace(TENANT, state_version=version)))
    assert counting.searches == 3, "also for a request that read the state before the change"


@pytest.mark.parametrize(
    "trace",
    [Trace(strategy="x", failures=("the graph is left out",)), Trace(strategy="x", hidden=("store_unavailable",))],
    ids=["failures", "hidden"],
)
async def test_incomplete_results_are_not_kept(hit: Callable[..., Hit], trace: Trace) -> None:
    counting = Counting(hit("one"), trace)
    over = cached(counting)
    await over.retrieve(asked())
    assert (await over.retrieve(asked())).trace.cache is None
    assert counting.searches == 2


async def test_a_part_can_forbid_reuse(counting: Counting) -> None:
    over, counting.before = cached(counting), forbid_reuse
    await over.retrieve(asked())
    counting.before = lambda: None
    await over.retrieve(asked())
    assert (await over.retrieve(asked())).trace.cache == "hit", "the search after it is kept"
    assert counting.searches == 2


async def test_an_error_is_not_kept(counting: Counting) -> None:
    def broken() -> None:
        raise ValueError("broken")

    over, counting.before = cached(counting), broken
    with pytest.raises(ValueError, match="broken"):
        await over.retrieve(asked())
    counting.before = lambda: None
    assert (await over.retrieve(asked())).trace.cache is None


async def test_concurrent_equal_queries_share_a_search(counting: Counting) -> None:
    over, queries = cached(counting), [asked() for _ in range(3)]
    found = await asyncio.gather(*map(over.retrieve, queries))
    assert counting.searches == 1
    assert [each.trace.cache for each in found] == [None, "shared", "shared"]
    assert [each.usage for each in found] == [USAGE, Usage(), Usage()]
    assert all(not query.seen.agree_on_version(counting.hit.visible.chunk.document_id, 4) for query in queries)


async def test_the_cache_can_be_left_out(counting: Counting) -> None:
    over = cached(counting)
    for _ in range(2):
        await over.retrieve(asked(cache=False))
        await over.retrieve(asked(session="digest"))
        await over.retrieve(asked(embedding=np.zeros(2, dtype=np.float32)))
        await cached(counting, max_bytes=0).retrieve(asked())
    assert counting.searches == 8
    assert (await over.retrieve(asked())).trace.cache is None
