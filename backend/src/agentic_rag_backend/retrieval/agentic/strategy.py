"""Agentic retrieval: plan, search, reflect, and search again for what is missing, until a round brings little news.

Each round searches the graph for its question, and at the same time a hypothetical passage by vector and other wordings by BM25.
It removes what negative constraints exclude, and fuses everything found so far. A reflection on the five best passages gives
verified facts, negative constraints and the queries of the next round. A language model plans and reflects; without one, rules
do. The decisions are pure functions in `retrieval.agentic`; this module drives them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agentic_rag_backend.domain.filters import Filter
from agentic_rag_backend.domain.query import Query, Retrieval, Trace
from agentic_rag_backend.domain.search_session import SessionMemory
from agentic_rag_backend.errors import AgenticRagError, StoreUnavailable
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.tenant_graph.linking import named_spans
from agentic_rag_backend.retrieval.agentic.findings import BEFORE, READ, Reading, Reflection, Reflector
from agentic_rag_backend.retrieval.agentic.plan import (
    NO_MODEL,
    FixedPlan,
    NegativeConstraint,
    Plan,
    Planner,
    keep_hits,
    parse_constraints,
    unite_constraints,
)
from agentic_rag_backend.retrieval.agentic.search_rounds import (
    ConstraintResolver,
    Loop,
    Recalled,
    SearchRound,
    SessionRecall,
    loop_details,
    methods,
    without,
)
from agentic_rag_backend.retrieval.agentic.sessions import SessionReader, applicable, memory_of, session_details
from agentic_rag_backend.retrieval.agentic.stopping import COVERED, AgenticOptions, Meter, novelty, stop_reason
from agentic_rag_backend.retrieval.base import Stores, Strategies
from agentic_rag_backend.retrieval.caching import forbid_reuse
from agentic_rag_backend.retrieval.passages.hydration import shown_graph, time_detail
from agentic_rag_backend.retrieval.passages.passage_features import measured_relevance
from agentic_rag_backend.retrieval.rewriting import QueryRewriter
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls
from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)

NO_NEW_QUERY = "no_new_query"
COVERED_QUESTION = "covered"
SEARCH_FAILED = "search_failed"
FORGOTTEN = "the negative constraints of the session were dropped: they would remove every passage that was found"
EMPTIED = "negative_constraints: they left no passage"
RELAXED = "the filter constraints of the plan were dropped: no passage passes them"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgenticParts:
    """What the loop is made of. ``sessions`` None: nothing is remembered. ``planner`` None: the model plans, or rules do."""

    stores: Stores
    graphs: TenantGraphs
    strategies: Strategies
    resolver: ConstraintResolver
    rewriter: QueryRewriter
    calls: StructuredCalls
    options: AgenticOptions
    sessions: SessionReader | None = None
    planner: Planner | FixedPlan | None = None


class Agentic:
    """Runs the loop (see the module)."""

    def __init__(self, parts: AgenticParts) -> None:
        self._parts = parts
        self._planner = parts.planner or Planner(parts.rewriter, parts.calls, parts.options.planner_prompt)
        self._reflector = Reflector(parts.calls)
        self._recall = SessionRecall(parts.stores, parts.strategies)

    async def retrieve(self, query: Query) -> Retrieval:
        """Return the passages of all rounds, fused, and the facts of the graph searches.

        Raises:
            AgenticRagError: all searches of the first round failed.
            StoreUnavailable: a negative constraint of the request names an entity, and the graph cannot be read.
        """
        options = self._parts.options.of(query.options, query.timeout_s, model=self._parts.calls.possible)
        loop = Loop(options, Meter(options.budget), fallbacks=[NO_MODEL] if options.by_rules else [])
        await self._constrain(query, loop, parse_constraints(query.options.get("negative_constraints", ())))
        await self._carry(query, loop)
        plan = await self._first_plan(query, loop)
        if options.negative_memory:
            await self._constrain(query, loop, plan.negative_constraints)
        base, entities = query, tuple[str, ...]()
        while True:
            try:
                recalled, base = await self._search(base, query, loop, plan, entities)
            except AgenticRagError as error:
                if not loop.rounds:
                    raise
                _log.warning("agentic_round_failed", tenant_id=query.tenant_id.value, code=error.code, reason=error.message)
                loop.failures.append(f"round {len(loop.rounds) + 1} failed: {error.code}")
                return await self._finish_loop(query, loop, rank_rounds(loop), SEARCH_FAILED)
            _close_round(loop, plan, recalled)
            pool = rank_rounds(loop)
            if reason := stop_reason(options.stop_policy, loop.progress, options.limits):
                return await self._finish_loop(query, loop, pool, reason)
            reflection = await self._reflect(query, loop, pool)
            following = next_round(query.text, loop, reflection, await self._learn(query, loop, reflection))
            if following is None or has_covering_passage(loop):
                return await self._finish_loop(query, loop, pool, NO_NEW_QUERY if following is None else COVERED_QUESTION)
            plan, entities = following, reflection.entities

    async def _carry(self, query: Query, loop: Loop) -> None:
        """Take over the facts and negative constraints of the request's session."""
        if query.session is None or self._parts.sessions is None:
            return
        try:
            loop.carried = await self._parts.sessions.carry_over(query, query.session)
        except AgenticRagError as error:
            loop.failures.append(f"the session could not be read: {error.code}")
            return
        if loop.options.negative_memory and loop.carried.constraints:
            bearers = await self._bearers(query)
            await self._constrain(query, loop, applicable(loop.carried.constraints, query.text, bearers, query.not_meant))
        fact_ids = loop.fact_ids()
        loop.facts = [fact for fact in loop.carried.facts if fact.chunk_id in fact_ids]

    async def _remember(self, query: Query, loop: Loop) -> None:
        """Leave what the request verified and avoided to its session. A failure does not cost the results."""
        if query.session is None or self._parts.sessions is None:
            return
        constraints = [exclusion.constraint for exclusion in loop.avoided]
        memory = memory_of(loop.facts, loop.texts(), constraints, negative=loop.options.negative_memory)
        try:
            if query.remember:
                await self._parts.sessions.remember(query, query.session, memory)
            else:
                memory = SessionMemory()
        except AgenticRagError as error:
            loop.failures.append(f"the session could not be written: {error.code}")
            memory = SessionMemory()
        facts = [fact for fact in loop.facts if fact.round == BEFORE]
        loop.session = session_details(loop.carried, facts, loop.of_session(), memory)

    async def _first_plan(self, query: Query, loop: Loop) -> Plan:
        if not loop.options.query_planning:
            return Plan(search_queries=(query.text,), by="question")
        plan, failures = await self._planner.plan(query, loop.meter)
        loop.failures += failures
        loop.notes += plan.notes
        loop.planner_prompt = self._planner.prompt.id if plan.by == "model" else None
        return plan

    async def _search(self, base: Query, query: Query, loop: Loop, plan: Plan, entities: Sequence[str]) -> tuple[Recalled, Query]:
        """Return what the round finds, and the query with the filter of the plan, which holds for later rounds, too."""
        narrow = await self._narrow_query(base, loop, plan.filter_constraints)
        cascade, number = loop.options.cascade_recall, len(loop.rounds) + 1

        async def search(query: Query) -> Recalled:
            filtered = replace(query, filters=without(query.filters, loop.avoided))
            return await self._recall.search(filtered, plan, number, entities, cascade=cascade)

        recalled = await search(narrow)
        if not loop.rounds and not keep_hits(recalled.hits, loop.avoided)[0] and loop.drop_session_constraints():
            loop.notes.append(FORGOTTEN)
            recalled = await search(narrow)
        if not recalled.hits and narrow.filters != query.filters:
            loop.notes.append(RELAXED)
            return await search(query), query
        return recalled, narrow

    async def _narrow_query(self, query: Query, loop: Loop, constraints: Filter | None) -> Query:
        if constraints is None:
            return query
        try:
            return replace(query, filters=await self._parts.resolver.filter(query, constraints))
        except StoreUnavailable as error:
            forbid_reuse()
            loop.notes.append(f"the filter constraints of the plan were dropped: {error.code}")
            return query

    async def _reflect(self, query: Query, loop: Loop, pool: Retrieval) -> Reflection:
        reading = Reading(
            question=query.text,
            hits=pool.hits[:READ],
            facts=pool.facts,
            known=loop.facts,
            searched=loop.searched,
            bearers=await self._bearers(query),
            avoided={constraint.value for constraint in loop.constraints if constraint.kind == "entity"},
            round=len(loop.rounds),
        )
        return await self._reflector.reflect(reading, loop.meter)

    async def _bearers(self, query: Query) -> list[set[str]]:
        """Return the ids of the entities of each name of the question. Without the graph, there are none."""
        graph, _ = await shown_graph(self._parts.graphs, query)
        if graph is None:
            return []
        return [{graph.entity(number).id for number in span.entities} for span in named_spans(graph, query.text)]

    async def _learn(self, query: Query, loop: Loop, reflection: Reflection) -> bool:
        """Keep what a reflection says. Return whether it has new negative constraints."""
        known_texts = {fact.text for fact in loop.facts}
        loop.facts += [fact for fact in reflection.facts if fact.text not in known_texts]
        loop.notes += reflection.notes
        loop.failures += reflection.failures
        loop.reflected_by.append(reflection.by)
        before = len(loop.avoided)
        if loop.options.negative_memory:
            await self._constrain(query, loop, reflection.negative_constraints)
        return len(loop.avoided) > before

    async def _constrain(self, query: Query, loop: Loop, new_constraints: Sequence[NegativeConstraint]) -> None:
        """Add negative constraints. Those of a model that would remove everything found so far are dropped."""
        constraints, notes = unite_constraints(loop.constraints, new_constraints)
        new = constraints[len(loop.constraints) :]
        avoided, unresolved = await self._parts.resolver.resolve_constraints(query, new)
        pool = loop.hits() if loop.found else []
        if pool and not keep_hits(pool, avoided)[0] and all(exclusion.source != "request" for exclusion in new):
            notes.append("negative constraints were dropped: they would remove every passage that was found")
            avoided, constraints = [], loop.constraints
        loop.constraints, loop.avoided = constraints, [*loop.avoided, *avoided]
        if avoided and loop.facts:
            fact_ids = loop.fact_ids()
            loop.facts = [fact for fact in loop.facts if fact.chunk_id in fact_ids]
        loop.notes += [*notes, *unresolved]

    async def _finish_loop(self, query: Query, loop: Loop, pool: Retrieval, stopped: str) -> Retrieval:
        await self._remember(query, loop)
        if stopped.startswith("budget"):
            forbid_reuse()  # the budget has a limit of seconds: another run may have time for more rounds
        usage = pool.usage + loop.meter.spending.usage
        for retrieval in loop.found.values():
            usage += retrieval.usage
        warnings = [warning for retrieval in loop.found.values() for warning in retrieval.trace.warnings]
        if not pool.hits and loop.removed:
            warnings.append(EMPTIED)
        trace = replace(
            pool.trace,
            methods_used=tuple(dict.fromkeys(pool.trace.methods_used)),
            fallbacks=tuple(dict.fromkeys(loop.fallbacks)),
            failures=tuple(dict.fromkeys((*pool.trace.failures, *loop.failures))),
            hidden=tuple(dict.fromkeys(loop.hidden)),
            warnings=tuple(dict.fromkeys((*pool.trace.warnings, *loop.notes, *warnings))),
            details={**time_detail(query), **loop.of_question, "agentic": loop_details(loop, stopped)},
        )
        return replace(pool, usage=usage, relevance=await self._relevance(query, loop, pool), trace=trace)

    async def _relevance(self, query: Query, loop: Loop, pool: Retrieval) -> float:
        """Return the relevance of the passages. A single search for the question has measured its own."""
        if loop.of_question and len(loop.found) == 1 and not loop.removed:
            return loop.found["round_1_graph"].relevance
        return await measured_relevance(self._parts.stores, query, pool.hits)


def rank_rounds(loop: Loop) -> Retrieval:
    """Return the passages of all rounds, fused, and the facts of their graph searches."""
    used = tuple(dict.fromkeys(("agentic", *methods(list(loop.found.values())))))
    trace = Trace(strategy="agentic", methods_used=used, fusion="min_max")
    return Retrieval(hits=tuple(loop.hits()), facts=tuple(loop.graph_facts()), trace=trace)


def has_covering_passage(loop: Loop) -> bool:
    """Return whether rules decide, and one passage of the graph search has nearly all words of the question."""
    by_rules = loop.options.by_rules and loop.options.stop_policy == "novelty" and loop.options.asked_rounds is None
    return by_rules and loop.of_question.get("coverage", 0.0) >= COVERED


def _close_round(loop: Loop, plan: Plan, recalled: Recalled) -> None:
    """Apply the hard filter to what a round found, and record its novelty."""
    earlier_ids = loop.known_ids()
    remaining, removed = keep_hits(recalled.hits, loop.avoided)
    new_ids = {hit.id for hit in remaining}
    value = novelty(new_ids, earlier_ids, first=not loop.rounds)
    loop.rounds.append(SearchRound(plan, len(new_ids), len(new_ids - earlier_ids), value, removed))
    loop.add(recalled)


def next_round(question: str, loop: Loop, reflection: Reflection, constrained: bool) -> Plan | None:
    """Return the plan of the next round. None: there is nothing new to search.

    Without planning, and without new queries, the question is searched again if new constraints make room for other passages, or
    if the number of rounds is fixed.
    """
    again = Plan(search_queries=(question,), by="question")
    if loop.options.query_planning and reflection.plan is not None:
        return reflection.plan
    return again if constrained or loop.options.stop_policy == "fixed_rounds" else None
