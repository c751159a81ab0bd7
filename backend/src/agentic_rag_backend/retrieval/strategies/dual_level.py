"""Dual-level retrieval: chunks and entities (low) and communities (high), searched in parallel and blended by weight.

If one level fails or finds nothing above its floor, the other answers alone and the trace has the reason.

The low level: `graph`, `hybrid` with the same facts for questions about a theme, or `agentic` by rules.

The graph walk stays near the names in a question, which suits questions about those names. Passages about a theme need not
share a name, so hybrid search suits such questions better.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

from agentic_rag_backend.domain.query import Backing, LevelWeights, Query, Retrieval, Trace
from agentic_rag_backend.errors import AgenticRagError, FeatureDisabled, StoreUnavailable
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.language.questions.kinds import AnswerKind, asked_for
from agentic_rag_backend.retrieval.base import Retriever, Stores
from agentic_rag_backend.retrieval.caching import forbid_reuse
from agentic_rag_backend.retrieval.legs import NEAR, Facts
from agentic_rag_backend.retrieval.options.model import EntitiesOption, LowStrategyOption, SyntheticQuestionsOption, ThemesOptions
from agentic_rag_backend.retrieval.passages.hydration import shown_graph
from agentic_rag_backend.retrieval.strategies.hybrid import Hybrid
from agentic_rag_backend.retrieval.themes.community import PassagesBehind
from agentic_rag_backend.telemetry.logs import get_logger

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


_log = get_logger(__name__)

SWITCHED_OFF = "dual-level retrieval is switched off for this tenant (DUAL_LEVEL_RETRIEVAL_ENABLED)"
BEHIND = 50
"""Number of themes whose passages may support an answer if the high level answers alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DualLevelOptions:
    """Options of the levels. Scores in [0, 1]. A level below its floor counts as empty.

    ``low_strategy`` finds chunks unless the request names a strategy for the low level.
    """

    low_min_score: float = 0.0
    high_min_score: float = 0.0
    low_strategy: LowStrategy = BY_FORM


class DualLevelRequestOptions(EntitiesOption, LowStrategyOption, SyntheticQuestionsOption, ThemesOptions):
    pass


class DualLevel:
    """Runs a low and a high retriever in parallel.

    Args:
        low: finds chunks. Counts as empty if its relevance is below ``options.low_min_score``.
        high: finds themes. Themes below ``options.high_min_score`` are dropped.
        behind: finds the passages of themes that answer alone. None: only the themes' own findings are used.
    """

    def __init__(
        self, low: Retriever, high: Retriever, options: DualLevelOptions, *, behind: PassagesBehind | None = None
    ) -> None:
        self._low = low
        self._high = high
        self._options = options
        self._behind = behind

    async def retrieve(self, query: Query) -> Retrieval:
        """Return chunks in ``hits`` and communities in ``themes``, each with its level's own score, and the weights.

        Raises:
            FeatureDisabled: dual-level retrieval is switched off for the query's tenant.
            StoreUnavailable: both levels failed, or one failed and the other found nothing (or the failed level's own error).
        """
        if not query.dual_level:
            raise FeatureDisabled(SWITCHED_OFF)
        outcome = await asyncio.gather(self._low.retrieve(query), self._high.retrieve(query), return_exceptions=True)
        low, low_problem = self._level(outcome[0], "low", self._options.low_min_score)
        # The floor chooses between two levels. It does not apply if only one is left.
        floor = 0.0 if isinstance(outcome[0], BaseException) else self._options.high_min_score
        high, high_problem = self._level(outcome[1], "high", floor)
        failed = [result for result in outcome if isinstance(result, BaseException)]
        if failed and low is None and high is None:
            # The failed level might have found results, so an empty answer would be wrong.
            raise _no_level_answers(failed)
        for problem in (problems := [problem for problem in (low_problem, high_problem) if problem]):
            _log.info("dual_level_fallback", tenant_id=query.tenant_id.value, reason=problem)
        backing = await self._backing(query) if high is not None and low is None else None
        return Retrieval(
            hits=low.hits if low else (),
            facts=low.facts if low else (),
            themes=high.themes if high else (),
            weights=_effective(query.weights, low, high),
            backing=backing,
            relevance=max(low.relevance if low else 0.0, high.relevance if high else 0.0),
            trace=_trace(
                [level for level in (low, high) if level is not None],
                [result.trace for result in outcome if isinstance(result, Retrieval)],
                problems,
                tuple(
                    problem
                    for problem, result in zip((low_problem, high_problem), outcome, strict=True)
                    if problem and isinstance(result, BaseException)
                ),
                {"level_weights": {**asdict(query.weights), "by": "tuning"}} if query.tuned.low_weight is not None else {},
            ),
        )

    async def _backing(self, query: Query) -> Backing | None:
        """Return the passages nearest to the question among those behind all found themes, regardless of the themes' scores."""
        if self._behind is None:
            return None
        try:
            wide = await self._high.retrieve(replace(query, high_limit=BEHIND, options={}))
            return await self._behind.find(query, wide.themes)
        except AgenticRagError as error:
            # The low level may have failed for the same reason. The themes are an answer without passages.
            forbid_reuse()
            _log.warning("dual_level_without_passages", tenant_id=query.tenant_id.value, code=error.code, reason=error.message)
            return None

    def _level(self, outcome: Retrieval | BaseException, name: str, floor: float) -> tuple[Retrieval | None, str | None]:
        """Return the level's results above its floor. Return None and the reason if the level counts as empty."""
        if isinstance(outcome, BaseException):
            if not isinstance(outcome, Exception):
                raise outcome
            code = outcome.code if isinstance(outcome, AgenticRagError) else type(outcome).__name__
            _log.error("dual_level_failed", level=name, code=code, exc_info=outcome)
            return None, f"the {name} level failed: {code}"
        if name == "high":
            themes = tuple(theme for theme in outcome.themes if theme.score >= floor)
            return (replace(outcome, themes=themes), None) if themes else (None, "the high level found nothing above its floor")
        if outcome.hits and outcome.relevance >= floor:
            return outcome, None
        return None, "the low level found nothing above its floor"


def _effective(weights: LevelWeights, low: Retrieval | None, high: Retrieval | None) -> LevelWeights:
    """Return the given weights if both levels answer. Otherwise the answering level has the whole weight."""
    if low is not None and high is None:
        return LevelWeights(1.0, 0.0)
    if high is not None and low is None:
        return LevelWeights(0.0, 1.0)
    return weights


def _no_level_answers(failed: list[BaseException]) -> BaseException:
    for error in failed:
        if isinstance(error, AgenticRagError):
            return error
    failure = StoreUnavailable("a level of retrieval failed and the other found nothing; see the server's log")
    failure.__cause__ = failed[0]
    return failure


def _trace(
    levels: list[Retrieval], traces: list[Trace], problems: list[str], failed: tuple[str, ...], details: Mapping[str, Any]
) -> Trace:
    """Return the trace: methods of the ``levels`` that answer, and warnings, details and failures of every level that ran."""
    return Trace(
        strategy="dual_level",
        methods_used=tuple(dict.fromkeys(method for level in levels for method in level.trace.methods_used)),
        fusion="weighted levels",
        fallbacks=tuple(problems),
        failures=tuple(failure for trace in traces for failure in trace.failures),
        hidden=(*failed, *(reason for trace in traces for reason in trace.hidden)),
        warnings=tuple(warning for trace in traces for warning in trace.warnings),
        details={key: value for trace in traces for key, value in trace.details.items()} | dict(details),
    )
