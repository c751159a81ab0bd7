"""The low level: `graph`, `hybrid` with the same facts for questions about a theme, or `agentic` by rules.

The graph walk stays near the names in a question, which suits questions about those names. Passages about a theme need not
share a name, so hybrid search suits such questions better.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Literal

from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.language.questions import AnswerKind, asked_for
from agentic_rag_backend.retrieval.base import Retriever, Stores
from agentic_rag_backend.retrieval.legs.fact_leg import NEAR, Facts
from agentic_rag_backend.retrieval.passages.hydration import shown_graph
from agentic_rag_backend.retrieval.strategies.hybrid import Hybrid

LowStrategy = Literal["auto", "graph", "hybrid", "agentic"]
BY_FORM: LowStrategy = "auto"
"""Pseudo-strategy that selects a strategy by the form of the question."""
_OPTIONS_OF: Mapping[str, Mapping[str, int]] = MappingProxyType({"agentic": {"max_calls": 0}})
_OF_FORM: Mapping[AnswerKind, LowStrategy] = MappingProxyType({AnswerKind.THEME: "hybrid"})


def low_strategy_for(question: str) -> LowStrategy:
    """Return the strategy that finds passages best for a question of this form."""
    return _OF_FORM.get(asked_for(question), "graph")


class LowLevel:
    """Chooses a strategy for each request. ``trace.details.low_level`` has the choice and its reason.

    ``options.low_strategy`` wins over ``default``, which may also be a strategy's name. If ``options.entities`` is given, the
    form of the question is not considered. `agentic` calls no language model here.
    """

    def __init__(self, retrievers: Mapping[str, Retriever], *, default: LowStrategy = BY_FORM) -> None:
        """``retrievers`` has one for each `LowStrategy` but `BY_FORM`."""
        self._retrievers = retrievers
        self._default = default

    async def retrieve(self, query: Query) -> Retrieval:
        """Return the results of the chosen strategy. The trace keeps that strategy's name.

        A question without an entity is no fallback here: the strategy was not asked for by name.
        """
        name, chosen_by = self._choose_strategy(query)
        inner_query = replace(query, options={**query.options, **_OPTIONS_OF.get(name, {})})
        retrieval = await self._retrievers[name].retrieve(inner_query)
        details = {**retrieval.trace.details, "low_level": {"strategy": name, "chosen_by": chosen_by}}
        return replace(retrieval, trace=replace(retrieval.trace, fallbacks=(), details=details))

    def _choose_strategy(self, query: Query) -> tuple[str, str]:
        requested = query.options.get("low_strategy")
        if requested is not None and requested != BY_FORM:
            return str(requested), "request"
        if requested is None and self._default != BY_FORM:
            return self._default, "setting"
        if query.options.get("entities"):
            return "graph", "entities"
        return low_strategy_for(query.text), "form"


class HybridWithFacts:
    """Adds the relationships that `graph` would show to the results of `Hybrid`."""

    def __init__(self, stores: Stores, graphs: TenantGraphs, hybrid: Hybrid) -> None:
        self._graphs = graphs
        self._facts = Facts(stores)
        self._hybrid = hybrid

    async def retrieve(self, query: Query) -> Retrieval:
        """Return the best chunks of both legs, and facts. Without a graph, facts are left out and the trace has the reason."""
        wider = query.with_candidates(NEAR)
        retrieval, (graph, graph_failures), statements = await asyncio.gather(
            self._hybrid.retrieve(wider), shown_graph(self._graphs, query), self._facts.candidates(query)
        )
        answer = statements.answer
        failures = [*retrieval.trace.failures, *([answer.failure] if answer.failure else [])]
        facts, hidden = retrieval.facts, graph_failures
        if graph is not None:
            visible = {hit.id: hit.visible for hit in retrieval.hits}
            nearby = {hit.id for hit in retrieval.hits[:NEAR]}
            facts, left_out = await self._facts.choose(query, graph, nearby, visible, statements)
            failures += [left_out] if left_out else []
            hidden = (left_out,) if left_out else ()
        reasons = tuple(dict.fromkeys(failures))
        trace = replace(
            retrieval.trace,
            failures=reasons,
            hidden=hidden,
            details={**retrieval.trace.details, "graph_leg": answer.leg},
        )
        return replace(retrieval, facts=facts, trace=trace)
