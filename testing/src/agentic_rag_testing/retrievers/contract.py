"""Contract of every retriever: run `CHECKS` against one, on the documents of `samples`.

A check is an async function that raises `AssertionError`. No check changes the documents. ``tests/contract/test_retrievers.py``
shows how to run them on every registered strategy, and that retrievers with planted faults fail them.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Protocol

from agentic_rag_backend.domain.filters import Comparison, Filter
from agentic_rag_backend.domain.query import Retrieval
from agentic_rag_testing.retrievers.samples import CANARIES, OWN

QUESTION = "Who founded the yard that built the Ottermouth Ferry?"
ABOUT_THE_OTHER = "Which charter did Zara Thimblewick of Quillon Partners write for the Ottermouth Ferry?"
QUESTIONS = (QUESTION, "Why was money collected after the storm?")
VALID = datetime(2018, 1, 1, tzinfo=UTC)
"""A time at which every document of `samples` is valid."""
MANY = 100


class Searched(Protocol):
    """A retriever on the documents of `samples`, which belong to two tenants."""

    @property
    def strategy(self) -> str:
        """The name of the strategy in its traces."""

    async def ask(
        self,
        text: str,
        *,
        limit: int = 5,
        filters: Filter | None = None,
        moment: datetime = VALID,
        other: bool = False,
    ) -> Retrieval:
        """Search the documents of `samples.OWN`, or of `samples.OTHER` if ``other``. ``limit`` also bounds themes."""

    async def text(self, document_id: str, version: int) -> str:
        """Return the text of a version of a document of `samples.OWN`."""

    @property
    def keys(self) -> Mapping[str, str]:
        """The keys of the documents of `samples.OWN` by their ids."""


Check = Callable[[Searched], Awaitable[None]]


async def nothing_of_another_tenant_is_found(searched: Searched) -> None:
    """A question in the words of another tenant's documents finds none of their words and none of their documents."""
    found = await searched.ask(ABOUT_THE_OTHER, limit=MANY)
    said = "\n".join(_said(found)).casefold()
    assert not [word for word in CANARIES if word in said], "words of another tenant"
    assert documents_of(found) <= searched.keys.keys(), "documents of another tenant"
    theirs = await searched.ask(ABOUT_THE_OTHER, limit=MANY, other=True)
    assert not documents_of(theirs) & searched.keys.keys()
    assert theirs.hits or theirs.themes, "the other tenant finds its own documents"


async def filters_hold_for_everything_that_is_found(searched: Searched) -> None:
    """Chunks, facts and findings are of documents that pass the filter. Filters that no document passes leave nothing."""
    wanted = {id for id, key in searched.keys.items() if OWN[key].metadata["topic"] == "transport"}
    found = await searched.ask(QUESTION, limit=MANY, filters=Comparison("topic", "eq", "transport"))
    assert documents_of(found) <= wanted, "documents that do not pass the filter"
    every = await searched.ask(QUESTION, limit=MANY)
    assert documents_of(every) - wanted, "without the filter there are others"
    assert bool(found.hits) == bool(every.hits), "documents that pass are found"
    none = await searched.ask(QUESTION, limit=MANY, filters=Comparison("topic", "eq", "music"))
    assert (none.hits, none.facts, none.themes) == ((), (), ()), "no document passes"


async def documents_count_while_they_are_valid(searched: Searched) -> None:
    """A document that is not valid at the moment of the question is not found."""
    (outdated,) = (id for id, key in searched.keys.items() if "valid_to" in OWN[key].metadata)
    found = await searched.ask("Signe Halvard", limit=MANY, moment=datetime(2023, 1, 1, tzinfo=UTC))
    assert outdated not in {hit.visible.chunk.document_id for hit in found.hits}
    assert outdated not in {fact.document_id for fact in found.facts}
    valid = await searched.ask("Signe Halvard", limit=MANY)
    assert not valid.hits or outdated in {hit.visible.chunk.document_id for hit in valid.hits}


async def a_limit_returns_the_beginning(searched: Searched) -> None:
    """At most ``limit`` results and themes. They are the beginning of those of a larger limit, with the same scores."""
    for question in QUESTIONS:
        whole = await searched.ask(question, limit=10)
        assert whole.hits or whole.themes, question
        for limit in (1, 5):
            part = await searched.ask(question, limit=limit)
            assert _scored(part.hits) == _scored(whole.hits)[:limit], (question, limit)
            assert _scored(part.themes) == _scored(whole.themes)[:limit], (question, limit)
            assert part.relevance == whole.relevance, (question, limit)


async def equal_questions_have_equal_results(searched: Searched) -> None:
    """The same question has the same results and the same trace, times excepted."""
    for question in QUESTIONS:
        one, other = await searched.ask(question, limit=10), await searched.ask(question, limit=10)
        assert _comparable(one) == _comparable(other), question


async def scores_are_in_range_and_fall(searched: Searched) -> None:
    """Scores are in [0, 1] and non-increasing, and each result is there once. The relevance is in [0, 1], too."""
    for question in (*QUESTIONS, "xyzzy plugh"):
        found = await searched.ask(question, limit=MANY)
        for results in (found.hits, found.facts, found.themes):
            scores = [score for _, score in _scored(results)]
            assert all(0.0 <= score <= 1.0 for score in scores), (question, scores)
            assert scores == sorted(scores, reverse=True), (question, scores)
            assert len({id for id, _ in _scored(results)}) == len(scores), question
        assert 0.0 <= found.relevance <= 1.0


async def places_are_exact(searched: Searched) -> None:
    """The text of a chunk, and of the passage around it, is the document's text at its offsets. No two passages overlap."""
    found = await searched.ask(QUESTION, limit=MANY)
    read: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for hit in found.hits:
        chunk = hit.visible.chunk
        whole = await searched.text(chunk.document_id, chunk.version)
        assert whole[chunk.location.start_char : chunk.location.end_char] == chunk.text
        if hit.parent is None:
            assert not hit.matched
            continue
        parent = hit.parent
        assert whole[parent.start_char : parent.end_char] == parent.text
        inside = {each.id for each in parent.chunks}
        assert chunk.id in inside, "the passage holds the chunk"
        assert {match.id for match in hit.matched} <= inside, "matches are in the passage"
        read.setdefault((chunk.document_id, chunk.version), []).append((parent.start_char, parent.end_char))
    for places in read.values():
        places.sort()
        assert all(end <= start for (_, end), (start, _) in pairwise(places)), "passages overlap"


async def the_trace_is_complete(searched: Searched) -> None:
    """The trace names the strategy, its methods, the time of the search, and the moment that it was valid at."""
    for question in QUESTIONS:
        trace = (await searched.ask(question)).trace
        assert trace.strategy == searched.strategy
        assert trace.methods_used, "no method"
        assert len(set(trace.methods_used)) == len(trace.methods_used), trace.methods_used
        assert trace.processing_time_ms["retrieval"] >= 0
        assert trace.details["as_of"] == "now"
        assert len(set(trace.fallbacks)) == len(trace.fallbacks), trace.fallbacks
        assert trace.fallback_used == (trace.fallback_reason is not None)
        json.dumps(dict(trace.details))


CHECKS: tuple[Check, ...] = (
    nothing_of_another_tenant_is_found,
    filters_hold_for_everything_that_is_found,
    documents_count_while_they_are_valid,
    a_limit_returns_the_beginning,
    equal_questions_have_equal_results,
    scores_are_in_range_and_fall,
    places_are_exact,
    the_trace_is_complete,
)


def documents_of(found: Retrieval) -> set[str]:
    """Return the ids of the documents that results show or depend on."""
    shown = {hit.visible.chunk.document_id for hit in found.hits} | {fact.document_id for fact in found.facts}
    return shown | {source.document_id for theme in found.themes for finding in theme.findings for source in finding.sources}


def _said(found: Retrieval) -> Iterable[str]:
    """Yield every text of the results. The trace is left out: it repeats the question."""
    for hit in found.hits:
        yield f"{hit.visible.document_title}\n{hit.visible.chunk.text}\n{hit.parent.text if hit.parent else ''}"
        yield from (entity.name for entity in hit.entities)
        yield from (f"{step.source} {step.target}" for step in hit.graph_path)
        yield hit.matched_question or ""
    for fact in found.facts:
        yield f"{fact.source.name} {fact.target.name} {fact.fact}"
    for theme in found.themes:
        yield from (theme.name, theme.summary, *theme.keywords, *(finding.statement for finding in theme.findings))


def _scored(results: Iterable[Any]) -> list[tuple[str, float]]:
    return [(each.id, each.score) for each in results]


def _comparable(found: Retrieval) -> tuple[object, ...]:
    trace = found.trace
    return (
        (found.hits, found.facts, found.themes, found.relevance),
        (trace.methods_used, trace.fusion, trace.fallback_reason, trace.warnings, dict(trace.details), trace.sufficient),
    )
