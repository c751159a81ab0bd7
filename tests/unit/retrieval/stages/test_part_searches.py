"""Searches of a question about two things."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from agentic_rag_backend.domain.query import Hit, Query, Retrieval, Trace
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.retrieval.stages.part_searches import PARTS, search_parts

BOTH = "Which is older, Scarrow or Port Elster?"
FIRST, SECOND = "Which is older, Scarrow?", "Which is older, Port Elster?"
ONE = "Is Scarrow old?"


@dataclass
class Searches:
    """Results by question. A question without results fails."""

    results: dict[str, tuple[Hit, ...]]
    asked: list[Query] = field(default_factory=list)

    async def search(self, query: Query) -> Retrieval:
        self.asked.append(query)
        if query.text not in self.results:
            raise StoreUnavailable("the store does not answer")
        relevance = 0.5 if query.text == BOTH else 0.1
        return Retrieval(hits=self.results[query.text], usage=Usage(calls=1), relevance=relevance, trace=Trace(strategy="graph"))


@pytest.fixture
def hits(hit: Callable[..., Hit]) -> Callable[..., tuple[Hit, ...]]:
    return lambda *ids: tuple(replace(hit(id), score=1 / (1 + place)) for place, id in enumerate(ids))


async def test_the_passages_of_each_thing_come_first(query: Callable[..., Query], hits: Callable[..., tuple[Hit, ...]]) -> None:
    searches = Searches({BOTH: hits("x", "y", "a"), FIRST: hits("a", "x"), SECOND: hits("b", "y")})
    retrieval = await search_parts(query(text=BOTH), searches.search)
    assert {hit.id for hit in retrieval.hits[:3]} == {"x", "a", "b"}
    assert [hit.score for hit in retrieval.hits] == sorted((hit.score for hit in retrieval.hits), reverse=True)
    assert (retrieval.relevance, retrieval.usage.calls, retrieval.trace.details[PARTS]) == (0.5, 3, [FIRST, SECOND])
    assert {asked.text for asked in searches.asked} == {BOTH, FIRST, SECOND}


async def test_a_question_about_one_thing_is_searched_once(
    query: Callable[..., Query], hits: Callable[..., tuple[Hit, ...]]
) -> None:
    searches = Searches({ONE: hits("a")})
    retrieval = await search_parts(query(text=ONE), searches.search)
    assert ([hit.id for hit in retrieval.hits], len(searches.asked), PARTS in retrieval.trace.details) == (["a"], 1, False)


async def test_a_passage_about_both_in_these_words_leaves_the_results_alone(
    query: Callable[..., Query], hits: Callable[..., tuple[Hit, ...]], hit: Callable[..., Hit]
) -> None:
    plain = hit("c")
    chunk = replace(plain.visible.chunk, text="They sailed to Scarrow or Port Elster.")
    about_both = replace(plain, visible=replace(plain.visible, chunk=chunk))
    searches = Searches({BOTH: (about_both, *hits("x")), FIRST: hits("a"), SECOND: hits("b")})
    retrieval = await search_parts(query(text=BOTH), searches.search)
    assert [found.id for found in retrieval.hits] == ["c", "x"]
    assert retrieval.usage.calls == 3


async def test_a_part_that_fails_is_in_the_trace(query: Callable[..., Query], hits: Callable[..., tuple[Hit, ...]]) -> None:
    searches = Searches({BOTH: hits("x"), FIRST: hits("a")})
    retrieval = await search_parts(query(text=BOTH), searches.search)
    assert {hit.id for hit in retrieval.hits} == {"x", "a"}
    assert retrieval.trace.failures == ("the search of the second part failed: store_unavailable",)
    with pytest.raises(StoreUnavailable):
        await search_parts(query(text=BOTH), Searches({}).search)
