"""The last stage: rerank, least score, limit. It is tested on its own; `test_limits.py` runs it behind every strategy."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_passages import hit_of, theme_of

from agentic_rag_backend.domain.document import ParentPassage
from agentic_rag_backend.domain.query import Hit, Query, Rerank, Retrieval, ThemeHit, Trace
from agentic_rag_backend.domain.usage import Usage, UsageAccount
from agentic_rag_backend.errors import InvalidRequest, ModelUnavailable, StoreUnavailable
from agentic_rag_backend.retrieval import strategies
from agentic_rag_backend.retrieval.rerank.base import Reranking
from agentic_rag_backend.retrieval.stages.pipeline import RankedRetriever, RerankedRetriever, cut, reorder_hits

Ask = Callable[..., Query]

SCORES = st.lists(st.sampled_from([0.0, 0.2, 0.5, 0.5, 0.9, 1.0]), max_size=12)


def hits(*scores: float) -> list[Hit]:
    return [hit_of(f"c{number:02}", score) for number, score in enumerate(scores)]


@dataclass
class Finds:
    """Finds as many chunks as it is asked for, of those that there are; three more than that where it finds generously."""

    there: Sequence[Hit] = ()
    themes: Sequence[ThemeHit] = ()
    more: int = 0
    asked: list[Query] = field(default_factory=list)

    async def retrieve(self, query: Query) -> Retrieval:
        self.asked.append(query)
        trace = Trace(strategy="finds", methods_used=("dense",), details={"kept": True})
        return Retrieval(hits=tuple(self.there[: query.candidates + self.more]), themes=tuple(self.themes), trace=trace)


@dataclass
class ByTable:
    """Reranker with a score for each chunk, 0.0 for the others. It takes ``takes_s`` and then raises ``fails``."""

    table: Mapping[str, float]
    takes_s: float = 0.0
    fails: Exception | None = None
    computes_s: float = 0.0
    """Seconds that it takes without a pause."""
    read: list[list[str]] = field(default_factory=list)

    def check(self) -> None:
        """It can always be used."""

    async def rerank(self, query: Query, candidates: Sequence[Hit], account: UsageAccount) -> Reranking:
        self.read.append([each.id for each in candidates])
        account.add_usage(Usage(calls=1))
        await asyncio.sleep(self.takes_s)
        time.sleep(self.computes_s)  # noqa: ASYNC251 - work that cannot be interrupted
        if self.fails is not None:
            raise self.fails
        return Reranking(scores={each.id: self.table.get(each.id, 0.0) for each in candidates}, warnings=("noted",))


def by(candidates: int = 4, **fields: object) -> Rerank:
    return Rerank(name="table", candidates=candidates, **fields)  # type: ignore[arg-type]


def ranked(finds: Finds, reranker: ByTable) -> RankedRetriever:
    return RankedRetriever(RerankedRetriever(finds, lambda name: {"table": reranker}[name]))


def ids(found: Sequence[Hit]) -> list[str]:
    return [each.id for each in found]


# --- the cut ---------------------------------------------------------------------------------------------------------


@given(scores=SCORES, limit=st.integers(1, 12), least=st.sampled_from([0.0, 0.2, 0.5, 0.7, 1.0]))
def test_the_cut_keeps_the_first_of_the_candidates_that_reach_the_least_score(
    scores: list[float], limit: int, least: float
) -> None:
    candidates = hits(*scores)
    found = cut(candidates, limit=limit, min_score=least)
    assert list(found) == [each for each in candidates if each.score >= least][:limit]


@given(scores=SCORES, least=st.sampled_from([0.0, 0.5]))
def test_a_smaller_limit_returns_the_beginning_of_a_larger_one(scores: list[float], least: float) -> None:
    whole = cut(hits(*scores), limit=10, min_score=least)
    assert cut(hits(*scores), limit=5, min_score=least) == whole[:5]


def test_the_cut_keeps_order_and_the_least_score() -> None:
    assert ids(cut(hits(0.9, 0.5, 0.4), limit=3, min_score=0.5)) == ["c00", "c01"]

    candidates = [hit_of("z", 0.5), hit_of("a", 0.5), hit_of("m", 0.9)]
    assert ids(cut(candidates, limit=3)) == ["z", "a", "m"]
    assert ids(reorder_hits(candidates, {"z": 0.3, "a": 0.3, "m": 0.3})) == ["z", "a", "m"]


@pytest.mark.parametrize("attribute", ["query.limit", "query.min_score"])
def test_no_strategy_cuts(attribute: str) -> None:
    folder = Path(str(strategies.__file__)).parent
    assert [path.name for path in folder.glob("*.py") if attribute in path.read_text(encoding="utf-8")] == []


# --- the stage -------------------------------------------------------------------------------------------------------


async def test_chunks_and_themes_are_cut_and_all_else_is_passed_on(query: Ask) -> None:
    finds = Finds(hits(0.9, 0.8, 0.7, 0.6), [theme_of("t1"), theme_of("t2"), theme_of("t3")], more=3)
    asked = query(limit=2, high_limit=1)
    found = await RankedRetriever(finds).retrieve(asked)
    assert (ids(found.hits), found.themes) == (["c00", "c01"], (theme_of("t1"),))
    assert (found.trace.strategy, found.trace.methods_used, found.trace.details) == ("finds", ("dense",), {"kept": True})
    assert found.trace.processing_time_ms["retrieval"] >= 0
    assert finds.asked == [asked]

    finds = Finds(hits(0.9, 0.8, 0.7, 0.6))
    assert ids((await RankedRetriever(finds).retrieve(query(limit=4, min_score=0.7))).hits) == ["c00", "c01", "c02"]


async def test_a_reranker_reads_more_candidates_than_the_limit_and_orders_them(query: Ask) -> None:
    finds, reranker = (Finds(hits(0.9, 0.8, 0.7, 0.6, 0.5)), ByTable({"c03": 1.0, "c01": 0.5}))
    found = await ranked(finds, reranker).retrieve(query(limit=2, rerank=by()))
    assert reranker.read == [["c00", "c01", "c02", "c03"]]
    assert [(each.id, each.score, each.scores) for each in found.hits] == [
        ("c03", 1.0, {"rerank": 1.0}),
        ("c01", 0.5, {"rerank": 0.5}),
    ]
    assert found.trace.methods_used == ("dense", "table")
    assert found.trace.details == {"kept": True, "rerank": {"name": "table", "candidates": 4}}
    assert found.trace.warnings == ("noted",)
    assert found.trace.processing_time_ms["rerank"] >= 0
    assert (found.usage.calls, found.trace.fallback_used) == (1, False)

    reranker = ByTable({"c03": 1.0})
    found = await ranked(Finds(hits(0.9, 0.8, 0.7, 0.6)), reranker).retrieve(query(limit=2))
    assert (ids(found.hits), reranker.read) == (["c00", "c01"], [])


@given(
    scores=st.lists(st.sampled_from([0.0, 0.3, 0.5, 1.0]), max_size=12),
    new=st.dictionaries(st.sampled_from([f"c{number:02}" for number in range(12)]), st.sampled_from([0.0, 0.4, 0.4, 1.0])),
)
def test_reranked_candidates_come_first_and_scores_fall(scores: list[float], new: dict[str, float]) -> None:
    candidates = hits(*sorted(scores, reverse=True))
    new = {each.id: new[each.id] for each in candidates if each.id in new}
    found = reorder_hits(candidates, new)
    assert sorted(ids(found)) == sorted(ids(candidates))
    assert set(ids(found[: len(new)])) == set(new)
    assert [each.id for each in found[len(new) :]] == [each.id for each in candidates if each.id not in new]
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)


async def test_a_limit_above_the_candidates_is_met(query: Ask) -> None:
    finds = Finds(hits(0.9, 0.8, 0.7, 0.6, 0.5, 0.4))
    found = await ranked(finds, ByTable({"c03": 1.0})).retrieve(query(limit=6, rerank=by()))
    assert ids(found.hits) == ["c03", "c00", "c01", "c02", "c04", "c05"]
    assert [each.score for each in found.hits] == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("least", [0.0, 0.3])
async def test_the_least_score_applies_to_the_rerankers_scores_before_the_cut(query: Ask, least: float) -> None:
    retriever = ranked(Finds(hits(0.9, 0.8, 0.2)), ByTable({"c02": 0.6}))
    for asked in (query(limit=2, rerank=by(), min_score=least), query(limit=2, rerank=by(min_score=least))):
        assert ids((await retriever.retrieve(asked)).hits) == (["c02", "c00"] if least == 0 else ["c02"])


async def test_top_n_limits_the_results(query: Ask) -> None:
    retriever = ranked(Finds(hits(0.9, 0.8, 0.7)), ByTable({"c02": 1.0, "c01": 0.5}))
    assert ids((await retriever.retrieve(query(limit=3, rerank=by(top_n=2)))).hits) == ["c02", "c01"]
    assert len((await retriever.retrieve(query(limit=2, rerank=by(top_n=3)))).hits) == 2


async def test_fewer_reranked_results_are_the_first_of_more(query: Ask) -> None:
    retriever = ranked(Finds(hits(*(1 - n / 20 for n in range(20)))), ByTable({"c09": 1.0, "c02": 0.9, "c05": 0.9}))
    whole = await retriever.retrieve(query(limit=12, rerank=by(10)))
    for limit in range(1, 12):
        assert (await retriever.retrieve(query(limit=limit, rerank=by(10)))).hits == whole.hits[:limit]


async def test_a_failure_leaves_the_order_of_the_strategy_and_is_flagged(query: Ask) -> None:
    for reranker, reason in [
        (ByTable({"c02": 1.0}, fails=ModelUnavailable("away")), "reranking by table failed: model_unavailable: away"),
        (ByTable({"c02": 1.0}, fails=StoreUnavailable("away")), "reranking by table failed: store_unavailable: away"),
        (ByTable({"c02": 1.0}, takes_s=30), "reranking by table took more than 0.02 s (RERANK_TIMEOUT_S)"),
        (ByTable({"c02": 1.0}, computes_s=0.05), "reranking by table took more than 0.02 s (RERANK_TIMEOUT_S)"),
    ]:
        found = await ranked(Finds(hits(0.9, 0.8, 0.7)), reranker).retrieve(
            query(limit=2, rerank=by(timeout_s=0.02, min_score=1.0))
        )
        assert [(each.id, each.score) for each in found.hits] == [("c00", 0.9), ("c01", 0.8)]
        assert found.trace.fallback_reason == f"{reason}; the results have the order of the strategy"
        assert found.trace.fallback_used
        assert found.trace.methods_used == ("dense",)
        assert found.usage.calls == 1, "what was spent is counted"


async def test_the_reason_names_the_limit_that_applied(query: Ask) -> None:
    slow = ranked(Finds(hits(0.9)), ByTable({}, takes_s=30))
    found = await slow.retrieve(query(rerank=by(timeout_s=0.02, own_timeout=True)))
    assert str(found.trace.fallback_reason).startswith("reranking by table took more than 0.02 s (the request's timeout_ms)")


async def test_nothing_is_not_reranked_and_other_errors_are_raised(query: Ask) -> None:
    reranker = ByTable({}, fails=InvalidRequest("wrong"))
    assert (await ranked(Finds(), reranker).retrieve(query(rerank=by()))).hits == ()
    assert reranker.read == []
    with pytest.raises(InvalidRequest):
        await ranked(Finds(hits(0.5)), reranker).retrieve(query(rerank=by()))


# --- parents


def child(id: str, parent: int | None) -> Hit:
    made = hit_of(id, 0.5)
    own = made.visible.chunk
    return replace(made, visible=replace(made.visible, chunk=replace(own, location=replace(own.location, parent_start=parent))))


def test_of_the_chunks_of_a_parent_the_best_one_is_a_result() -> None:
    found = [child("a", 0), child("b", 9), child("c", 0), child("d", None), child("e", None), child("f", 9)]
    assert ids(cut(found, limit=10)) == ["a", "b", "d", "e"]
    assert ids(cut(found, limit=3)) == ["a", "b", "d"]


async def test_merged_chunks_leave_room_for_other_parents(query: Ask) -> None:
    finds = Finds([child(f"c{number}", number // 3) for number in range(30)])
    found = await RankedRetriever(finds).retrieve(query("q", limit=4))
    assert ids(found.hits) == ["c0", "c3", "c6", "c9"]
    assert [each.candidates for each in finds.asked] == [4, 16]
    plain = Finds(hits(*[0.5] * 30))
    assert len((await RankedRetriever(plain).retrieve(query("q", limit=4))).hits) == 4
    assert len(plain.asked) == 1, "without parents, one search is enough"


async def test_results_have_their_parents(query: Ask) -> None:
    @dataclass
    class Parents:
        asked: list[Sequence[str]] = field(default_factory=list)

        async def parents(self, tenant: object, chunk_ids: Sequence[str]) -> dict[str, ParentPassage]:
            self.asked.append(chunk_ids)
            first = child("a", 0).visible.chunk
            return {first.parent_id or "": ParentPassage(id="s", start_char=0, end_char=1, text="a", chunks=(first,))}

    documents = Parents()
    retriever = RankedRetriever(Finds([child("a", 0), child("b", 9), child("d", None)]), documents)  # type: ignore[arg-type]
    found = await retriever.retrieve(query("q", limit=3))
    assert [each.parent and each.parent.text for each in found.hits] == ["a", None, None]
    assert documents.asked == [["a", "b"]]
