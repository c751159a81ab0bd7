"""The default strategy: chooses a strategy by the tenant, the form of the question, and the time and cost that a request allows.

No choice calls a language model. The measurement of the choices is in docs/reference/benchmarks/retrieval.md.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.tenant_graph.linking import link_question
from agentic_rag_backend.language.questions.kinds import AnswerKind, asked_for
from agentic_rag_backend.retrieval.base import QueryEncoder, Retriever
from agentic_rag_backend.retrieval.caching import forbid_reuse
from agentic_rag_backend.retrieval.legs import search_all
from agentic_rag_backend.retrieval.options.model import LowStrategyOption, SyntheticQuestionsOption, optional_field
from agentic_rag_backend.retrieval.passages.hydration import shown_graph
from agentic_rag_backend.retrieval.stages.part_searches import PARTS, search_parts
from agentic_rag_backend.retrieval.themes.overviews import Overviews
from agentic_rag_backend.stores.catalogue.base import TreeCatalogue

DUAL, LOW, WITH_TREE = "dual_level", "low_level", "low_level_with_raptor"
FREE = "sparse"
"""The strategy that embeds nothing. All others embed the question once, so they cost the same."""
IN_ROUNDS = "agentic"
CHEAPER = (DUAL, LOW, "hybrid", "dense", FREE)
"""Strategies by falling duration."""


class AutoRequestOptions(LowStrategyOption, SyntheticQuestionsOption):
    max_latency_ms: int = optional_field(
        ge=1,
        le=600_000,
        description="milliseconds that retrieval should take: a cheaper strategy is chosen if recent searches took longer",
    )
    max_cost: int = optional_field(
        ge=0,
        le=1_000_000,
        description="tokens of remote models that retrieval should take: if an embedding is expected to take more, none is made",
    )


@dataclass(frozen=True, slots=True)
class Choice:
    """A strategy, the reason for it, and the milliseconds that it is expected to take, if known.

    ``low_strategy`` is the strategy of its low level; None: the form of the question decides. With `agentic`, the low level
    searches a second time for what the best passages lead to. ``chosen_by`` is what chose the low level: ``auto`` or ``tuning``.
    """

    strategy: str
    because: str
    expected_ms: float | None = None
    low_strategy: str | None = None
    chosen_by: str = "auto"

    @property
    def timed(self) -> str:
        """The name that its durations are recorded under."""
        return self.strategy if self.low_strategy is None else f"{self.strategy} by {self.low_strategy}"


class WithSummaries:
    """The passages of one retriever, and the themes of another one, searched at the same time."""

    def __init__(self, passages: Retriever, themes: Retriever) -> None:
        self._retrievers = {"passages": passages, "themes": themes}

    async def retrieve(self, query: Query) -> Retrieval:
        """Return passages and themes. If one of the searches fails, the trace has the reason.

        Raises:
            AgenticRagError: both searches failed.
        """
        outcome = await search_all(query, {name: retriever.retrieve(query) for name, retriever in self._retrievers.items()})
        low, high = outcome.found.get("passages"), outcome.found.get("themes")
        retrieval = low or replace(outcome.found["themes"], hits=())
        trace = retrieval.trace
        if low is not None and high is not None:
            retrieval = replace(low, themes=high.themes, usage=low.usage + high.usage)
            trace = replace(
                trace,
                methods_used=tuple(dict.fromkeys((*trace.methods_used, high.trace.strategy))),
                failures=tuple(dict.fromkeys((*trace.failures, *high.trace.failures))),
                hidden=tuple(dict.fromkeys((*trace.hidden, *high.trace.hidden))),
            )
        lost = tuple(f"the search of {name} failed: {code}" for name, code in outcome.failed.items())
        return replace(retrieval, trace=replace(trace, failures=(*trace.failures, *lost), hidden=(*trace.hidden, *lost)))


class Auto:
    """Chooses a strategy for each request, so that a changed flag applies to the next request.

    A question about two things is also searched for each of them, unless the request limits time or cost.

    Args:
        strategies: those of `CHEAPER` and `WITH_TREE`, by name. The low level chooses between `graph` and `hybrid` itself.
        graphs: tells whether a question names an entity.
        overviews: retrieves for questions that ask for an overview of all documents, or of a document that they name.
        trees: tells whether the tenant has a RAPTOR tree.
        encoder: estimates the cost of the vector of a question.
        latencies: recent durations. This class records those of its own choices.
        rounds: whether the low level may search in rounds: no setting names another strategy.
    """

    def __init__(
        self,
        strategies: Mapping[str, Retriever],
        *,
        overviews: Overviews,
        graphs: TenantGraphs,
        trees: TreeCatalogue,
        encoder: QueryEncoder,
        latencies: Latencies,
        rounds: bool = True,
    ) -> None:
        self._rounds = rounds
        self._strategies = strategies
        self._overviews = overviews
        self._graphs = graphs
        self._trees = trees
        self._encoder = encoder
        self._latencies = latencies

    async def retrieve(self, query: Query) -> Retrieval:
        """Retrieve with the chosen strategy. ``trace.details.auto`` has the choice; the methods begin with the strategy."""
        choice = self._choose_affordable(query)
        if choice is None and "low_strategy" not in query.options:
            overview = await self._overviews.find(query)
            if overview is not None:
                return _trace_choice(overview, Choice(overview.trace.strategy, "the question asks for an overview"))
        choice = choice or self._choose_within(query, await self._choose_suited_strategy(query))
        routed_query = query
        if choice.low_strategy is not None:
            routed_query = replace(query, options={**query.options, "low_strategy": choice.low_strategy})
        started = time.perf_counter()
        search = self._strategies[choice.strategy].retrieve
        unlimited = "max_latency_ms" not in query.options and "max_cost" not in query.options
        retrieval = await (search_parts(routed_query, search) if unlimited else search(routed_query))
        if PARTS not in retrieval.trace.details:
            self._latencies.record(query.tenant_id, choice.timed, (time.perf_counter() - started) * 1000)
        return _trace_choice(retrieval, choice)

    def _choose_affordable(self, query: Query) -> Choice | None:
        """Return the strategy without cost if the others cost more than ``options.max_cost``."""
        allowed, cost = query.options.get("max_cost"), self._encoder.tokens(query)
        if allowed is None or cost <= allowed:
            return None
        return Choice(FREE, f"an embedding of the question is expected to cost {cost} tokens, more than max_cost ({allowed})")

    async def _choose_suited_strategy(self, query: Query) -> Choice:
        """Return the choice without regard to time. What tuning chose for questions of a kind is better than the rule."""
        choice, kind = await self._choose_by_rule(query), asked_for(query.text).value
        low_strategy = query.tuned.low_strategies.get(kind)
        if low_strategy is None:
            return choice
        because = f"{choice.because}; tuning chose {low_strategy} for questions of the kind {kind!r}"
        return replace(choice, because=because, low_strategy=low_strategy, chosen_by="tuning")

    async def _choose_by_rule(self, query: Query) -> Choice:
        """Return the choice without regard to time.

        A question for a fact may have several hops. `agentic` searches a second round only if no passage covers the question.
        """
        fact = asked_for(query.text) is not AnswerKind.THEME
        low_strategy = IN_ROUNDS if fact and self._rounds and "low_strategy" not in query.options else None
        if query.dual_level:
            return Choice(DUAL, "dual-level retrieval is switched on", low_strategy=low_strategy)
        if "low_strategy" in query.options:
            return Choice(LOW, "the request names the strategy")
        if fact:
            return Choice(LOW, "the question asks for a fact", low_strategy=low_strategy)
        graph, _ = await shown_graph(self._graphs, query)
        if graph is not None and link_question(graph, query.text):
            return Choice(LOW, "the question asks for an account of entities that it names")
        if (await self._trees.pointer(query.tenant_id)).generation:
            return Choice(WITH_TREE, "the question asks for an account, names no entity, and the tenant has a tree of summaries")
        return Choice(LOW, "the question asks for an account and names no entity")

    def _choose_within(self, query: Query, suited: Choice) -> Choice:
        """Return the best choice within ``options.max_latency_ms``; without one, the cheapest strategy."""
        allowed = query.options.get("max_latency_ms")
        if allowed is None:
            return suited
        expected = self._expect_duration(query, suited.strategy)
        if expected is None or expected <= allowed:
            in_rounds = self._expect_duration(query, suited.timed)
            if in_rounds is None or in_rounds <= allowed:
                return replace(suited, expected_ms=in_rounds)
            forbid_reuse()
            return replace(suited, expected_ms=expected, low_strategy=None)
        forbid_reuse()  # the next search may have the time
        slow = f"{suited.strategy} is expected to take {expected:.0f} ms, longer than max_latency_ms"
        cheaper = [name for name in CHEAPER if name not in (DUAL, suited.strategy)]
        for name in cheaper:
            expected = self._expect_duration(query, name)
            if expected is None or expected <= allowed:
                return Choice(name, slow, expected)
        return Choice(cheaper[-1], f"every strategy is expected to take longer than max_latency_ms ({allowed})", expected)

    def _expect_duration(self, query: Query, strategy: str) -> float | None:
        return self._latencies.estimate_latency(query.tenant_id, strategy)


def _trace_choice(retrieval: Retrieval, choice: Choice) -> Retrieval:
    """Return the retrieval with the choice in its trace."""
    name = retrieval.trace.strategy
    about: dict[str, Any] = {"strategy": name, "because": choice.because}
    if choice.expected_ms is not None:
        about["expected_ms"] = round(choice.expected_ms, 1)
    methods = tuple(dict.fromkeys((name, *retrieval.trace.methods_used)))
    details = {**retrieval.trace.details, "auto": about}
    if choice.low_strategy is not None and "low_level" in details:
        details["low_level"] = {**details["low_level"], "chosen_by": choice.chosen_by}
    return replace(retrieval, trace=replace(retrieval.trace, strategy="auto", methods_used=methods, details=details))


KEPT = 32
"""Durations of a strategy that count, at most."""
LEAST = 3
"""Durations without which nothing is expected."""
RECENT_S = 600.0
"""Seconds for which a duration counts: a machine that was busy is tried again."""
_SHARE = 0.9
_MAX_PAIRS = 4096
"""Pairs of tenant and strategy that are kept, the last used ones: a few megabytes."""


class Latencies:
    """Expects the next duration of a strategy from its last ones. Corpora differ in size, so tenants are kept apart.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._recent: OrderedDict[tuple[TenantId, str], deque[tuple[float, float]]] = OrderedDict()

    def record(self, tenant: TenantId, strategy: str, milliseconds: float) -> None:
        """Add a duration."""
        recent = self._recent.setdefault((tenant, strategy), deque(maxlen=KEPT))
        recent.append((self._clock(), milliseconds))
        self._recent.move_to_end((tenant, strategy))
        if len(self._recent) > _MAX_PAIRS:
            self._recent.popitem(last=False)

    def estimate_latency(self, tenant: TenantId, strategy: str) -> float | None:
        """Return the milliseconds within which nine of ten recent searches ended; None: too few are known."""
        since = self._clock() - RECENT_S
        recent = sorted(milliseconds for at, milliseconds in self._recent.get((tenant, strategy), ()) if at >= since)
        return recent[math.ceil(_SHARE * len(recent)) - 1] if len(recent) >= LEAST else None
