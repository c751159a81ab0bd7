"""The default strategy: chooses a strategy by the tenant, the form of the question, and the time and cost that a request allows.

No choice calls a language model. The measurement of the choices is in docs/reference/strategies.md.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.domain.text.questions import AnswerKind, asked_for
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.tenant_graph.linking import link_question
from agentic_rag_backend.retrieval.base import Retriever
from agentic_rag_backend.retrieval.caching.reuse import forbid_reuse
from agentic_rag_backend.retrieval.encoder import QueryEncoder
from agentic_rag_backend.retrieval.hydration import shown_graph
from agentic_rag_backend.retrieval.latencies import Latencies
from agentic_rag_backend.retrieval.parallel import search_all
from agentic_rag_backend.stores.catalogue.base import TreeCatalogue

DUAL, LOW, WITH_TREE = "dual_level", "low_level", "low_level_with_raptor"
FREE = "sparse"
"""The strategy that embeds nothing. All others embed the question once, so they cost the same."""
IN_ROUNDS = "agentic"
CHEAPER = (DUAL, LOW, "hybrid", "dense", FREE)
"""Strategies by falling duration."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A strategy, the reason for it, and the milliseconds that it is expected to take, if known.

    ``rounds``: its low level is `agentic`, which searches a second time for what the best passages lead to.
    """

    strategy: str
    because: str
    expected_ms: float | None = None
    rounds: bool = False

    @property
    def timed(self) -> str:
        """The name that its durations are recorded under."""
        return f"{self.strategy} in rounds" if self.rounds else self.strategy


class WithSummaries:
    """The passages of one retriever, and the themes of another one, searched at the same time."""

    def __init__(self, passages: Retriever, themes: Retriever) -> None:
        self._retrievers = {"passages": passages, "themes": themes}

    async def retrieve(self, query: Query) -> Retrieval:
        """Return passages and themes. If one of the searches fails, the trace has the reason.

        Raises:
            AgenticRagError: both searches failed.
        """
        outcome = await search_all(query, {name: each.retrieve(query) for name, each in self._retrievers.items()})
        low, high = outcome.found.get("passages"), outcome.found.get("themes")
        found = low or replace(outcome.found["themes"], hits=())
        trace = found.trace
        if low is not None and high is not None:
            found = replace(low, themes=high.themes, usage=low.usage + high.usage)
            trace = replace(
                trace,
                methods_used=tuple(dict.fromkeys((*trace.methods_used, high.trace.strategy))),
                failures=tuple(dict.fromkeys((*trace.failures, *high.trace.failures))),
                hidden=tuple(dict.fromkeys((*trace.hidden, *high.trace.hidden))),
            )
        lost = tuple(f"the search of {name} failed: {code}" for name, code in outcome.failed.items())
        return replace(found, trace=replace(trace, failures=(*trace.failures, *lost), hidden=(*trace.hidden, *lost)))


class Auto:
    """Chooses a strategy for each request, so that a changed flag applies to the next request.

    Args:
        strategies: those of `CHEAPER` and `WITH_TREE`, by name. The low level chooses between `graph` and `hybrid` itself.
        graphs: tells whether a question names an entity.
        trees: tells whether the tenant has a RAPTOR tree.
        encoder: estimates the cost of the vector of a question.
        latencies: recent durations. This class records those of its own choices.
        rounds: whether the low level may search in rounds: no setting names another strategy.
    """

    def __init__(
        self,
        strategies: Mapping[str, Retriever],
        *,
        graphs: TenantGraphs,
        trees: TreeCatalogue,
        encoder: QueryEncoder,
        latencies: Latencies,
        rounds: bool = True,
    ) -> None:
        self._rounds = rounds
        self._strategies = strategies
        self._graphs = graphs
        self._trees = trees
        self._encoder = encoder
        self._latencies = latencies

    async def retrieve(self, query: Query) -> Retrieval:
        """Retrieve with the chosen strategy. ``trace.details.auto`` has the choice; the methods begin with the strategy."""
        choice = self._affordable(query) or self._within(query, await self._suited(query))
        asked = replace(query, options={**query.options, "low_strategy": IN_ROUNDS}) if choice.rounds else query
        started = time.perf_counter()
        found = await self._strategies[choice.strategy].retrieve(asked)
        self._latencies.record(query.tenant_id, choice.timed, (time.perf_counter() - started) * 1000)
        name = found.trace.strategy
        about: dict[str, Any] = {"strategy": name, "because": choice.because}
        if choice.expected_ms is not None:
            about["expected_ms"] = round(choice.expected_ms, 1)
        methods = tuple(dict.fromkeys((name, *found.trace.methods_used)))
        details = {**found.trace.details, "auto": about}
        if choice.rounds and "low_level" in details:
            details["low_level"] = {**details["low_level"], "chosen_by": "auto"}
        return replace(found, trace=replace(found.trace, strategy="auto", methods_used=methods, details=details))

    def _affordable(self, query: Query) -> Choice | None:
        """Return the strategy without cost if the others cost more than ``options.max_cost``."""
        allowed, cost = query.options.get("max_cost"), self._encoder.tokens(query)
        if allowed is None or cost <= allowed:
            return None
        return Choice(FREE, f"an embedding of the question is expected to cost {cost} tokens, more than max_cost ({allowed})")

    async def _suited(self, query: Query) -> Choice:
        """Return the choice without regard to time.

        A question for a fact may have several hops. `agentic` searches a second round only if no passage covers the question.
        """
        fact = asked_for(query.text) is not AnswerKind.THEME
        rounds = fact and self._rounds and "low_strategy" not in query.options
        if query.dual_level:
            return Choice(DUAL, "dual-level retrieval is switched on", rounds=rounds)
        if "low_strategy" in query.options:
            return Choice(LOW, "the request names the strategy")
        if fact:
            return Choice(LOW, "the question asks for a fact", rounds=rounds)
        graph, _ = await shown_graph(self._graphs, query)
        if graph is not None and link_question(graph, query.text):
            return Choice(LOW, "the question asks for an account of entities that it names")
        if (await self._trees.pointer(query.tenant_id)).generation:
            return Choice(WITH_TREE, "the question asks for an account, names no entity, and the tenant has a tree of summaries")
        return Choice(LOW, "the question asks for an account and names no entity")

    def _within(self, query: Query, suited: Choice) -> Choice:
        """Return the best choice within ``options.max_latency_ms``; without one, the cheapest strategy."""
        allowed = query.options.get("max_latency_ms")
        if allowed is None:
            return suited
        expected = self._expected(query, suited.strategy)
        if expected is None or expected <= allowed:
            in_rounds = self._expected(query, suited.timed)
            if in_rounds is None or in_rounds <= allowed:
                return replace(suited, expected_ms=in_rounds if suited.rounds else expected)
            forbid_reuse()
            return replace(suited, expected_ms=expected, rounds=False)
        forbid_reuse()  # the next search may have the time
        slow = f"{suited.strategy} is expected to take {expected:.0f} ms, longer than max_latency_ms"
        cheaper = [name for name in CHEAPER if name not in (DUAL, suited.strategy)]
        for name in cheaper:
            expected = self._expected(query, name)
            if expected is None or expected <= allowed:
                return Choice(name, slow, expected)
        return Choice(cheaper[-1], f"every strategy is expected to take longer than max_latency_ms ({allowed})", expected)

    def _expected(self, query: Query, strategy: str) -> float | None:
        return self._latencies.expected(query.tenant_id, strategy)
