"""Dual-level retrieval: chunks and entities (low) and communities (high) at the same time, blended by weight.

Either level may fail or find nothing above its floor; then the other answers alone and the trace says why.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import structlog

from agentic_rag_backend.domain.query import LevelWeights, Query, Retrieval, Trace
from agentic_rag_backend.domain.questions import Asked, asked_for
from agentic_rag_backend.errors import AgenticRagError, FeatureDisabled, InvalidRequest, StoreUnavailable
from agentic_rag_backend.retrieval.base import Retriever
from agentic_rag_backend.retrieval.low_level import BY_FORM, LowStrategy

log = structlog.get_logger(__name__)

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
_BY_FORM: Mapping[Asked, str] = MappingProxyType(
    {Asked.THEME: "conceptual", Asked.NAME: "factoid", Asked.TIME: "factoid", Asked.NUMBER: "factoid"}
)
_SUM_TOLERANCE = 1e-9


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
    for name, value in (("low_weight", low), ("high_weight", high)):
        if value is not None and not 0.0 <= value <= 1.0:  # also false for NaN
            raise InvalidRequest(f"{name} must be a number from 0 to 1; got {value}")
    if preset is not None and preset not in PRESETS:
        raise InvalidRequest(f"preset must be one of {', '.join(PRESETS)}; got {preset!r}")
    if low is None and high is None:
        return (PRESETS[preset] if preset else default), ()
    low_weight = low if low is not None else 1.0 - (high or 0.0)
    high_weight = high if high is not None else 1.0 - low_weight
    total = low_weight + high_weight
    if total <= 0:
        raise InvalidRequest(f"low_weight and high_weight must not both be 0; got {low_weight} and {high_weight}")
    if abs(total - 1.0) <= _SUM_TOLERANCE:
        return LevelWeights(low_weight, high_weight), ()
    warning = f"weights {low_weight} and {high_weight} sum to {total:g}, not 1: normalised"
    log.warning("dual_level_weights_normalised", low=low_weight, high=high_weight, total=total)
    return LevelWeights(low_weight / total, high_weight / total), (warning,)


class DualLevel:
    """Runs a low and a high retriever in parallel.

    Args:
        low: finds chunks; empty if its relevance is below ``options.low_min_score``.
        high: finds themes; those below ``options.high_min_score`` are dropped.
    """

    def __init__(self, low: Retriever, high: Retriever, options: DualLevelOptions) -> None:
        self._low = low
        self._high = high
        self._options = options

    async def retrieve(self, query: Query) -> Retrieval:
        """Return chunks in ``hits`` and communities in ``themes``, each with its level's own score, and the weights.

        Raises:
            FeatureDisabled: dual-level retrieval is switched off for the query's tenant.
            StoreUnavailable: both levels failed (or the error of the low level, if it was another of ours).
        """
        if not query.dual_level:
            raise FeatureDisabled("dual-level retrieval is switched off for this tenant (DUAL_LEVEL_RETRIEVAL_ENABLED)")
        started = time.perf_counter()
        weights = query.weights or self._options.weights
        outcome = await asyncio.gather(self._low.retrieve(query), self._high.retrieve(query), return_exceptions=True)
        low, low_problem = self._level(outcome[0], "low", self._options.low_min_score)
        high, high_problem = self._level(outcome[1], "high", self._options.high_min_score)
        if isinstance(outcome[0], BaseException) and isinstance(outcome[1], BaseException):
            raise _both_failed(outcome[0], outcome[1])
        problems = [problem for problem in (low_problem, high_problem) if problem]
        for problem in problems:
            log.info("dual_level_fallback", tenant_id=query.tenant_id.value, reason=problem)
        elapsed = (time.perf_counter() - started) * 1000
        return Retrieval(
            hits=low.hits if low else (),
            facts=low.facts if low else (),
            themes=high.themes if high else (),
            weights=_effective(weights, low, high),
            relevance=max(low.relevance if low else 0.0, high.relevance if high else 0.0),
            trace=_trace(
                [level for level in (low, high) if level is not None],
                [each.trace for each in outcome if isinstance(each, Retrieval)],
                problems,
                elapsed,
            ),
        )

    def _level(self, outcome: Retrieval | BaseException, name: str, floor: float) -> tuple[Retrieval | None, str | None]:
        """Return what the level found above its floor, or None and the reason why it counts as empty."""
        if isinstance(outcome, BaseException):
            if not isinstance(outcome, Exception):
                raise outcome
            code = outcome.code if isinstance(outcome, AgenticRagError) else type(outcome).__name__
            log.error("dual_level_failed", level=name, code=code, exc_info=outcome)
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


def _both_failed(low: BaseException, high: BaseException) -> BaseException:
    for error in (low, high):
        if isinstance(error, AgenticRagError):
            return error
    failure = StoreUnavailable("both levels of retrieval failed; see the server's log")
    failure.__cause__ = low
    return failure


def _trace(levels: list[Retrieval], traces: list[Trace], problems: list[str], elapsed: float) -> Trace:
    """Return the trace: methods of the ``levels`` that answer, warnings, details and failures of every level that ran."""
    failures = tuple(failure for trace in traces for failure in trace.failures)
    return Trace(
        strategy="dual_level",
        methods_used=tuple(dict.fromkeys(method for level in levels for method in level.trace.methods_used)),
        fusion="weighted levels",
        fallback_used=bool(problems or failures),
        fallback_reason="; ".join((*problems, *failures)) or None,
        failures=failures,
        processing_time_ms={"retrieval": elapsed},
        warnings=tuple(warning for trace in traces for warning in trace.warnings),
        details={key: value for trace in traces for key, value in trace.details.items()},
    )
