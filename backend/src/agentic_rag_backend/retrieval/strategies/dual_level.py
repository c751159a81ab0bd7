"""Dual-level retrieval: chunks and entities (low) and communities (high) at the same time, blended by weight.

Either level may fail or find nothing above its floor; then the other answers alone and the trace says why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import structlog

from agentic_rag_backend.domain.query import Backing, LevelWeights, Query, Retrieval, Trace
from agentic_rag_backend.domain.questions import Asked, asked_for
from agentic_rag_backend.errors import AgenticRagError, FeatureDisabled, InvalidRequest, StoreUnavailable
from agentic_rag_backend.retrieval.base import Retriever, timed
from agentic_rag_backend.retrieval.queries.weights import shares
from agentic_rag_backend.retrieval.strategies.low_level import BY_FORM, LowStrategy
from agentic_rag_backend.retrieval.themes.backing import PassagesBehind

_log = structlog.get_logger(__name__)

PRESETS: Mapping[str, LevelWeights] = MappingProxyType(
    {
        "factoid": LevelWeights(0.8, 0.2),
        "conceptual": LevelWeights(0.3, 0.7),
        "balanced": LevelWeights(0.6, 0.4),
        "research": LevelWeights(0.5, 0.5),
    }
)
AUTO = "auto"
"""In place of a preset's name: the one that fits the question's form."""
BEHIND = 50
"""Themes whose passages an answer may rest on where the high level answers alone."""
_BY_FORM: Mapping[Asked, str] = MappingProxyType(
    {Asked.THEME: "conceptual", Asked.NAME: "factoid", Asked.TIME: "factoid", Asked.NUMBER: "factoid"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DualLevelOptions:
    """Defaults of a tenant or deployment. Scores and weights in [0, 1]; a level below its floor counts as empty.

    ``low_strategy`` finds the chunks where a request does not say what should.
    """

    weights: LevelWeights = PRESETS["balanced"]
    low_min_score: float = 0.0
    high_min_score: float = 0.0
    low_strategy: LowStrategy = BY_FORM


def preset_for(question: str) -> str | None:
    """Return the preset that fits what a question asks for, an account or a name, time or number; None if it does not tell."""
    return _BY_FORM.get(asked_for(question))


def choose_weights(
    low: float | None, high: float | None, *, preset: str | None = None, default: LevelWeights = PRESETS["balanced"]
) -> tuple[LevelWeights, tuple[str, ...]]:
    """Return weights that sum to 1, and warnings: explicit weights win over a preset, a preset over the default.

    One of the two given makes the other 1 − it.

    Raises:
        InvalidRequest: a weight is not a number in [0, 1], both are 0, or the preset is unknown.
    """
    given = shares(low, high, names=("low_weight", "high_weight"))
    if preset is not None and preset not in PRESETS:
        raise InvalidRequest(f"preset must be one of {', '.join(PRESETS)}; got {preset!r}")
    if given is None:
        return (PRESETS[preset] if preset else default), ()
    if given.warning is None:
        return LevelWeights(given.first, given.second), ()
    _log.warning("dual_level_weights_normalised", low=low, high=high)
    return LevelWeights(given.first, given.second), (given.warning,)


class DualLevel:
    """Runs a low and a high retriever in parallel.

    Args:
        low: finds chunks; empty if its relevance is below ``options.low_min_score``.
        high: finds themes; those below ``options.high_min_score`` are dropped.
        behind: finds the passages behind themes that answer alone; None: their own findings are all there is.
    """

    def __init__(
        self, low: Retriever, high: Retriever, options: DualLevelOptions, *, behind: PassagesBehind | None = None
    ) -> None:
        self._low = low
        self._high = high
        self._options = options
        self._behind = behind

    @timed
    async def retrieve(self, query: Query) -> Retrieval:
        """Return chunks in ``hits`` and communities in ``themes``, each with its level's own score, and the weights.

        Raises:
            FeatureDisabled: dual-level retrieval is switched off for the query's tenant.
            StoreUnavailable: both levels failed, or one did and the other found nothing (or the failed level's own error).
        """
        if not query.dual_level:
            raise FeatureDisabled("dual-level retrieval is switched off for this tenant (DUAL_LEVEL_RETRIEVAL_ENABLED)")
        weights = query.weights or self._options.weights
        outcome = await asyncio.gather(self._low.retrieve(query), self._high.retrieve(query), return_exceptions=True)
        low, low_problem = self._level(outcome[0], "low", self._options.low_min_score)
        # The floor says which level may answer; it says nothing where only one is left.
        floor = 0.0 if isinstance(outcome[0], BaseException) else self._options.high_min_score
        high, high_problem = self._level(outcome[1], "high", floor)
        failed = [each for each in outcome if isinstance(each, BaseException)]
        if failed and low is None and high is None:
            # What the failed level would have found is not known: nothing found is no answer.
            raise _no_level_answers(failed)
        problems = [problem for problem in (low_problem, high_problem) if problem]
        for problem in problems:
            _log.info("dual_level_fallback", tenant_id=query.tenant_id.value, reason=problem)
        backing = await self._backing(query) if high is not None and low is None else None
        return Retrieval(
            hits=low.hits if low else (),
            facts=low.facts if low else (),
            themes=high.themes if high else (),
            weights=_effective(weights, low, high),
            backing=backing,
            relevance=max(low.relevance if low else 0.0, high.relevance if high else 0.0),
            trace=_trace(
                [level for level in (low, high) if level is not None],
                [each.trace for each in outcome if isinstance(each, Retrieval)],
                problems,
                tuple(
                    problem
                    for problem, each in zip((low_problem, high_problem), outcome, strict=True)
                    if problem and isinstance(each, BaseException)
                ),
            ),
        )

    async def _backing(self, query: Query) -> Backing | None:
        """Return the passages nearest to the question behind all themes that search reads, of whatever score."""
        if self._behind is None:
            return None
        try:
            wide = await self._high.retrieve(replace(query, high_limit=BEHIND, options={}))
            return await self._behind.find(query, wide.themes)
        except AgenticRagError as error:
            # The low level may have failed for the same reason; the themes are an answer without it.
            _log.warning("dual_level_without_passages", tenant_id=query.tenant_id.value, code=error.code, reason=error.message)
            return None

    def _level(self, outcome: Retrieval | BaseException, name: str, floor: float) -> tuple[Retrieval | None, str | None]:
        """Return what the level found above its floor, or None and the reason why it counts as empty."""
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
    """Return the weights as given while both levels answer; all of it on the one that does, otherwise."""
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


def _trace(levels: list[Retrieval], traces: list[Trace], problems: list[str], failed: tuple[str, ...]) -> Trace:
    """Return the trace: methods of the ``levels`` that answer, warnings, details and failures of every level that ran."""
    return Trace(
        strategy="dual_level",
        methods_used=tuple(dict.fromkeys(method for level in levels for method in level.trace.methods_used)),
        fusion="weighted levels",
        fallbacks=tuple(problems),
        failures=tuple(failure for trace in traces for failure in trace.failures),
        hidden=(*failed, *(reason for trace in traces for reason in trace.hidden)),
        warnings=tuple(warning for trace in traces for warning in trace.warnings),
        details={key: value for trace in traces for key, value in trace.details.items()},
    )
