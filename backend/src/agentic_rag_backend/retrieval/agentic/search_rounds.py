"""The rounds of the agentic loop: their searches, the entities they avoid, what they found, and their form in a trace."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agentic_rag_backend.domain.filters import ChunkSet, Comparison, Filter, LinkCondition, Not, narrow_filter
from agentic_rag_backend.domain.graph import normalise_name
from agentic_rag_backend.domain.query import FactHit, Hit, Query, Retrieval
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.visible.entity_reader import BearerReader, namesakes
from agentic_rag_backend.retrieval.agentic.findings import VerifiedFact
from agentic_rag_backend.retrieval.agentic.plan import Avoided, NegativeConstraint, Plan, keep_hits
from agentic_rag_backend.retrieval.agentic.sessions import Carried
from agentic_rag_backend.retrieval.agentic.stopping import AgenticOptions, Meter, Progress
from agentic_rag_backend.retrieval.base import Stores, Strategies
from agentic_rag_backend.retrieval.caching import forbid_reuse
from agentic_rag_backend.retrieval.legs import fused_hits, search_all, united_facts
from agentic_rag_backend.retrieval.passages.linked_chunks import LinkedChunks


class ConstraintResolver:
    """Finds the passages that mention avoided entities, and the documents about them.

    Args:
        links: finds passages by entity.
        graphs: the tenants' graphs.
        bearers: tells apart the documents of entities that share a name.
    """

    def __init__(self, links: LinkedChunks, graphs: TenantGraphs, bearers: BearerReader) -> None:
        self._links = links
        self._graphs = graphs
        self._bearers = bearers

    async def resolve_constraints(
        self, query: Query, constraints: Sequence[NegativeConstraint]
    ) -> tuple[list[Avoided], list[str]]:
        """Return the constraints with their passages, and notes about those that have no effect.

        Raises:
            StoreUnavailable: the graph, which a constraint of the request needs, cannot be read.
        """
        exclusions: list[Avoided] = []
        notes: list[str] = []
        for constraint in constraints:
            if constraint.kind != "entity":
                exclusions.append(Avoided(constraint))
                continue
            try:
                chunks = await self._links.resolve(query.tenant, LinkCondition("entity", "in", (constraint.value,)))
                documents = await self._documents(query, constraint.value)
            except StoreUnavailable as error:
                if constraint.source == "request":
                    raise
                forbid_reuse()
                notes.append(f"a negative constraint was dropped: {error.code}")
                continue
            if isinstance(chunks, ChunkSet) and chunks.ids:
                exclusions.append(Avoided(constraint, chunks.ids, documents))
            else:
                notes.append(f"negative_constraints: no visible passage mentions the entity {constraint.value[:60]!r}")
        return exclusions, notes

    async def _documents(self, query: Query, value: str) -> frozenset[str]:
        """Return the documents about the entity of an id, and about no other entity of its name."""
        graph = await self._graphs.graph(query.tenant)
        number = graph.find_mentioned_number(value)
        if number is None:
            return frozenset()
        name = normalise_name(graph.entity(number).name)
        numbers = namesakes(graph, name)
        if len(numbers) < 2:
            return frozenset()
        bearers = (await self._bearers.read(query.tenant_id, graph, {name: numbers})).get(name, ())
        other_documents = frozenset[str]().union(*(bearer.documents for bearer in bearers if bearer.number != number))
        return frozenset[str]().union(*(bearer.documents for bearer in bearers if bearer.number == number)) - other_documents

    async def filter(self, query: Query, plan: Filter | None) -> Filter | None:
        """Return the filter of a plan without links, in addition to the query's own filter.

        Raises:
            StoreUnavailable: the graph cannot be read.
        """
        return narrow_filter(query.filters, await self._links.resolve(query.tenant, plan))


def without(narrowing: Filter | None, avoided: Sequence[Avoided]) -> Filter | None:
    """Return the filter without what avoided entities have, so that searches find other passages in their place."""
    chunks = frozenset[str]().union(*(constraint.chunks for constraint in avoided))
    documents = frozenset[str]().union(*(constraint.documents for constraint in avoided))
    if chunks:
        narrowing = narrow_filter(narrowing, Not(ChunkSet(chunks, LinkCondition("entity", "in"))))
    return narrow_filter(narrowing, Comparison("document_id", "nin", tuple(sorted(documents)))) if documents else narrowing


DEPTH = 100
"""Candidates of each search: as many as the largest limit of a request, so that no score depends on the limit."""
LEG_WEIGHTS: Mapping[str, float] = {"graph": 1.0, "dense": 0.3, "sparse": 0.15}
"""Graph search includes a search by the question's vector and BM25. ``dense`` is the search by the hypothetical passage of a
plan, ``sparse`` the searches by all other wordings together."""
LATER_WEIGHT = 0.5
"""Weight of each later round relative to the first one, which searches the question itself."""
MAX_ENTITIES = 20


@dataclass(frozen=True, slots=True)
class Recalled:
    """The searches of one round by name, their weights, and what failed."""

    found: Mapping[str, Retrieval]
    weights: Mapping[str, float]
    failures: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()

    @property
    def hits(self) -> list[Hit]:
        """All hits, each once."""
        return list({hit.id: hit for retrieval in self.found.values() for hit in retrieval.hits}.values())


class SessionRecall:
    """Runs the searches of a round at the same time."""

    def __init__(self, stores: Stores, strategies: Strategies) -> None:
        self._stores = stores
        self._strategies = strategies

    async def search(self, query: Query, plan: Plan, number: int, entities: Sequence[str], *, cascade: bool) -> Recalled:
        """Return what the searches found, at most `DEPTH` hits each.

        Args:
            query: with the filter of the round.
            number: of the round, from 1.
            entities: ids or names for the graph search, in addition to those that the first query names.
            cascade: False: search by vector alone.

        Raises:
            AgenticRagError: all searches failed.
        """
        searched = replace(query.with_candidates(DEPTH), text=plan.search_queries[0])
        vector, failure = await self._stores.encoder.mean_of(searched, [plan.hyde_passage] if plan.hyde_passage else [])
        round_weight = 1.0 if number == 1 else LATER_WEIGHT
        searches: dict[str, Awaitable[Retrieval]] = {}
        weights: dict[str, float] = {}

        def add(name: str, leg: str, query: Query, share: float) -> None:
            searches[name] = self._strategies.retrieve(leg, query)
            weights[name] = LEG_WEIGHTS[leg] * round_weight * share

        if vector is not None or not cascade:
            add(f"round_{number}_dense", "dense", searched if vector is None else replace(searched, embedding=vector), 1.0)
        if cascade:
            add(f"round_{number}_graph", "graph", with_entities(searched, entities), 1.0)
            further_queries = plan.search_queries[1:]
            for rank, text in enumerate(further_queries, start=2):
                add(f"round_{number}_sparse_{rank}", "sparse", replace(searched, text=text), 1.0 / len(further_queries))
        outcome = await search_all(query, searches)
        lost = tuple(f"{name} failed: {code}" for name, code in outcome.failed.items())
        retrievals = {name: replace(retrieval, hits=retrieval.hits[:DEPTH]) for name, retrieval in outcome.found.items()}
        failures = [
            *([failure] if failure else []),
            *(failure for retrieval in retrievals.values() for failure in retrieval.trace.failures),
            *lost,
        ]
        hidden = [*(reason for retrieval in retrievals.values() for reason in retrieval.trace.hidden), *lost]
        return Recalled(retrievals, weights, tuple(dict.fromkeys(failures)), tuple(dict.fromkeys(hidden)))


def with_entities(query: Query, entities: Sequence[str]) -> Query:
    """Return the query with further entities to start from, except those that the question does not mean."""
    names = [*query.options.get("entities", ()), *(entity for entity in entities if entity not in query.not_meant)]
    return replace(query, options={**query.options, "entities": list(dict.fromkeys(names))[:MAX_ENTITIES]})


@dataclass(frozen=True, slots=True)
class SearchRound:
    """One round: its plan, the passages that it found after the hard filter, and how many of them are new."""

    plan: Plan
    found: int
    new: int
    novelty: float
    removed: Mapping[str, int]

    @property
    def details(self) -> dict[str, Any]:
        """The form of the trace. A hypothetical passage is invented, so it is not shown."""
        return {
            "queries": list(self.plan.search_queries),
            "planned_by": self.plan.by,
            "hyde_passage": bool(self.plan.hyde_passage),
            "found": self.found,
            "new": self.new,
            "novelty": round(self.novelty, 4),
            "removed": dict(self.removed),
        }


@dataclass(slots=True)
class Loop:
    """The loop of one request."""

    options: AgenticOptions
    meter: Meter
    rounds: list[SearchRound] = field(default_factory=list)
    found: dict[str, Retrieval] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    constraints: list[NegativeConstraint] = field(default_factory=list)
    avoided: list[Avoided] = field(default_factory=list)
    facts: list[VerifiedFact] = field(default_factory=list)
    carried: Carried = field(default_factory=Carried)
    session: Mapping[str, Any] | None = None
    planner_prompt: str | None = None
    notes: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    fallbacks: list[str] = field(default_factory=list)
    reflected_by: list[str] = field(default_factory=list)

    @property
    def progress(self) -> Progress:
        """What stop policies read."""
        return Progress([loop_round.novelty for loop_round in self.rounds], self.meter.spent)

    @property
    def searched(self) -> set[str]:
        """The queries of all rounds, case-folded."""
        return {text.casefold() for loop_round in self.rounds for text in loop_round.plan.search_queries}

    @property
    def removed(self) -> bool:
        """Whether negative constraints removed passages: those found, or those of an entity, which are not searched."""
        return any(search_round.removed for search_round in self.rounds) or any(avoided.chunks for avoided in self.avoided)

    def known_ids(self) -> set[str]:
        """Return the ids of the passages of all rounds, after the hard filter as it is now."""
        unique = {hit.id: hit for retrieval in self.found.values() for hit in retrieval.hits}
        return {hit.id for hit in keep_hits(unique.values(), self.avoided)[0]}

    def fact_ids(self) -> set[str]:
        """Return the ids of passages whose facts count: `known_ids`, and the passages of the session after the hard filter."""
        return self.known_ids() | {hit.id for hit in keep_hits(self.carried.hits, self.avoided)[0]}

    def of_session(self) -> list[NegativeConstraint]:
        """Return the negative constraints of the session that apply."""
        applied = [exclusion.constraint for exclusion in self.avoided]
        return [constraint for constraint in self.carried.constraints if constraint in applied]

    def drop_session_constraints(self) -> bool:
        """Drop the negative constraints of the session. Return whether there were any."""
        before = len(self.constraints)
        self.constraints = [constraint for constraint in self.constraints if constraint.source != "session"]
        self.avoided = [exclusion for exclusion in self.avoided if exclusion.constraint.source != "session"]
        return len(self.constraints) < before

    def texts(self) -> dict[str, str]:
        """Return the texts of the chunks of all rounds by id."""
        return {hit.id: hit.visible.chunk.text for retrieval in self.found.values() for hit in retrieval.hits}

    def add(self, recalled: Recalled) -> None:
        """Add what a round found."""
        self.found.update(recalled.found)
        self.weights.update(recalled.weights)
        self.failures += recalled.failures
        self.hidden += recalled.hidden

    def hits(self) -> list[Hit]:
        """Return the passages of all rounds after the hard filter, fused, best first. A single search keeps its scores."""
        searches = list(self.found.values())
        fused = searches[0].hits if len(searches) == 1 else fused_hits(self.found, self.weights, "min_max", named=False)
        return keep_hits(fused, self.avoided)[0]

    @property
    def of_question(self) -> Mapping[str, Any]:
        """Details of the graph search for the question itself."""
        retrieval = self.found.get("round_1_graph")
        return retrieval.trace.details if retrieval is not None else {}

    def graph_facts(self) -> list[FactHit]:
        """Return the facts of all graph searches that no constraint removes, best first."""
        unique = {hit.id: hit for retrieval in self.found.values() for hit in retrieval.hits}
        removed = unique.keys() - {hit.id for hit in keep_hits(unique.values(), self.avoided)[0]}
        facts = united_facts(list(self.found.values()))
        return [fact for fact in facts if not any(retrieval.removes_fact(fact, removed) for retrieval in self.avoided)]


def loop_details(loop: Loop, stopped: str) -> dict[str, Any]:
    """Return the trace of a loop as JSON values."""
    options, limits, spent = loop.options, loop.options.limits, loop.meter.spent
    return {
        "rounds": [{"round": number, **loop_round.details} for number, loop_round in enumerate(loop.rounds, 1)],
        "stop_reason": stopped,
        "policy": options.stop_policy,
        "epsilon": limits.epsilon,
        "max_rounds": limits.rounds,
        "primary_intent": loop.rounds[0].plan.primary_intent if loop.rounds else "",
        "planner_prompt": loop.planner_prompt,
        "reflected_by": list(loop.reflected_by),
        "verified_facts": [{"fact": fact.text, "chunk_id": fact.chunk_id, "round": fact.round} for fact in loop.facts],
        "negative_constraints": [loop_round.details for loop_round in loop.avoided],
        "calls": spent.calls,
        "tokens": spent.tokens,
        "flags": flags(options),
        **({"session": dict(loop.session)} if loop.session is not None else {}),
    }


def flags(options: AgenticOptions) -> dict[str, bool]:
    """Return the flags by name."""
    return {
        name: bool(getattr(options, name)) for name in ("query_planning", "novelty_circuit", "negative_memory", "cascade_recall")
    }


def methods(retrievals: Sequence[Retrieval]) -> tuple[str, ...]:
    """Return the methods of searches, each once."""
    return tuple(dict.fromkeys(method for retrieval in retrievals for method in retrieval.trace.methods_used))
