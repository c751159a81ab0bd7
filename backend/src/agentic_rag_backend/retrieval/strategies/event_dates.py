"""The date of an event that a question names, such as "the merger": from a fact of the graph, otherwise from a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from agentic_rag_backend.domain.graph import name_words
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.knowledge.tenant_graph.linking import link_question
from agentic_rag_backend.knowledge.visible.facts import VisibleFact
from agentic_rag_backend.language.questions import is_related_form
from agentic_rag_backend.language.sentences import split_sentences
from agentic_rag_backend.language.times import Period, moment_period
from agentic_rag_backend.language.values import find_moments
from agentic_rag_backend.language.words import content_forms
from agentic_rag_backend.retrieval.base import Stores
from agentic_rag_backend.retrieval.caching import forbid_reuse
from agentic_rag_backend.retrieval.legs import chunk_candidates
from agentic_rag_backend.retrieval.passages.hydration import passes, shown_graph
from agentic_rag_backend.retrieval.scoring import weighted_min_max
from agentic_rag_backend.retrieval.strategies.hybrid import Hybrid

MAX_LINKED = 4
"""Entities of an event whose facts are read: those whose names are rarest."""
EDGES = 60
PASSAGES = 10
"""Passages about an event whose sentences are read."""
_DATE = "date"
_OCCURRENCES = frozenset(
    {"happened", "occurred", "took", "held", "opened", "founded", "began", "started", "launched", "struck", "born"}
)
"""First words of relations that date an event which the question names without a verb, such as "Storm Edda"."""


@dataclass(frozen=True, slots=True)
class EventDate:
    """The period of an event, and the sentence of a visible chunk that gives it."""

    period: Period
    source: str
    sentence: str
    chunk_id: str


class EventDates:
    """Finds dates of events within one tenant."""

    def __init__(self, stores: Stores, graphs: TenantGraphs, hybrid: Hybrid) -> None:
        self._stores = stores
        self._graphs = graphs
        self._hybrid = hybrid

    async def find(self, query: Query, event: str) -> EventDate | None:
        """Return the date of an event; None if no fact and no sentence that names the event gives one."""
        graph, _ = await shown_graph(self._graphs, query)
        if graph is not None:
            try:
                if (dated := await self._of_facts(query, graph, event)) is not None:
                    return dated
            except StoreUnavailable:
                forbid_reuse()  # a sentence may give it
        return await self._of_passages(query, event)

    async def _of_facts(self, query: Query, graph: TenantGraph, event: str) -> EventDate | None:
        linked = link_question(graph, event)
        order = sorted(linked, key=lambda number: (-graph.idf[number], graph.entity(number).id))[:MAX_LINKED]
        refs = [graph.entity(number) for number in order]
        if not refs:
            return None
        edges = await self._stores.graph.edges_at(query.tenant_id, [ref.id for ref in refs], limit=EDGES)
        name_forms = frozenset[str]().union(*(frozenset(name_words(ref.name)) for ref in refs))
        words = {form for form in content_forms(event) if form not in name_forms}
        dating_edges = {
            edge.id: edge for edges_of_entity in edges.values() for edge in edges_of_entity if _dates(edge.relation, words)
        }
        facts = await self._stores.facts.read(
            query.tenant_id, graph, list(dating_edges.values()), moment=None, passes=partial(passes, query)
        )
        dated_facts = [(fact, period) for fact in facts.values() if (period := _period(fact)) is not None]
        if not dated_facts:
            return None
        fact, period = max(dated_facts, key=lambda pair: (pair[0].weight, pair[0].id))
        return EventDate(period, "fact", fact.fact, fact.passages[0].support.chunk_id)

    async def _of_passages(self, query: Query, event: str) -> EventDate | None:
        event_query = Query(
            tenant=query.tenant, text=event, filters=query.filters, as_of=query.as_of, asked_at=query.asked_at, seen=query.seen
        )
        candidates = await chunk_candidates(self._stores, event_query, weighted_min_max, self._hybrid.weights.by_leg())
        words = content_forms(event)
        for item in [candidate for candidate in candidates.order if candidate.id in candidates.visible][:PASSAGES]:
            text = candidates.visible[item.id].chunk.text
            for span in split_sentences(text):
                sentence = text[span.start : span.end]
                periods = [period for moment in find_moments(sentence) if (period := moment_period(moment)) is not None]
                if len(periods) == 1 and _names(sentence, words):
                    return EventDate(periods[0], "passage", sentence.strip(), item.id)
        return None


def _dates(relation: str, words: Iterable[str]) -> bool:
    """Return whether a relation dates an event of these words; without words, whether it dates any event."""
    parts = relation.split("_")
    required_words = list(words)
    if not required_words:
        return parts[0] in _OCCURRENCES
    return any(is_related_form(part, required_words) for part in parts if len(part) > 3)


def _period(fact: VisibleFact) -> Period | None:
    """Return the time of a fact: the date at one of its ends, otherwise when it began."""
    for end in (fact.target, fact.source):
        if end.type == _DATE:
            return next((period for moment in find_moments(end.name) if (period := moment_period(moment)) is not None), None)
    return (fact.valid_at, fact.valid_at) if fact.valid_at is not None else None


def _names(sentence: str, words: Iterable[str]) -> bool:
    forms: Sequence[str] = sorted(content_forms(sentence))
    return all(is_related_form(word, forms) for word in words)
