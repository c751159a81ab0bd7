"""Learns from rated answers how likely an answer of an estimated confidence is right.

The scale is fitted on one half of the questions, with a prior that it changes nothing: few ratings change little. The decision
is that of every parameter, on the other half, with the squared error of the confidence as the measure (Brier, 1950).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.domain.feedback import Feedback, Rating
from agentic_rag_backend.domain.tuning import ConfidenceScale, Parameter
from agentic_rag_backend.evaluation.estimate_metrics import calibration_error
from agentic_rag_backend.evaluation.tuning.candidates import BEFORE
from agentic_rag_backend.evaluation.tuning.learning import ParameterEvidence, ScoredCase, is_learned_from, learn_parameter

_UNCHANGED = ConfidenceScale(slope=1.0, shift=0.0)
_FITTED = "fitted"
_LEAST, _MOST = 1e-3, 1 - 1e-3
"""Estimates are moved into these limits before they are fitted, so that none has infinite log odds."""
_BOUNDS = ((-3.0, 2.0), (-8.0, 8.0))
"""Of the logarithm of the slope, and of the shift."""


@dataclass(frozen=True, slots=True)
class RatedQuestion:
    """The rated answers to one question: estimated confidences, and whether the ratings are good."""

    id: str
    estimates: tuple[float, ...]
    right: tuple[bool, ...]

    def score_scale(self, scale: ConfidenceScale | None) -> float:
        """Return 1 less the mean squared error of the converted estimates, in [0, 1]."""
        scale = scale or _UNCHANGED
        errors = [
            (scale.convert_confidence(chance) - right) ** 2 for chance, right in zip(self.estimates, self.right, strict=True)
        ]
        return 1.0 - sum(errors) / len(errors)


async def collect_ratings(feedback: AsyncIterator[Feedback]) -> list[RatedQuestion]:
    """Return the questions with rated answers. Ratings of citations, of results and of refusals say nothing of the answer."""
    ratings: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    async for item in feedback:
        if item.grounded and item.chunk_id is None:
            estimate = item.confidence if item.estimate is None else item.estimate
            ratings[item.question_hash or item.draft.answer_id].append((estimate, item.draft.rating is Rating.GOOD))
    return [RatedQuestion(name, *zip(*sorted(pairs), strict=True)) for name, pairs in sorted(ratings.items())]


def fit_scale(questions: Sequence[RatedQuestion]) -> ConfidenceScale:
    """Return the most likely scale. Every question has the weight of one rating.

    The prior of the logarithm of the slope and of the shift is normal, with mean 0 and deviation 1.
    """
    from scipy.optimize import minimize  # takes a second to import

    rows = [
        (chance, right, 1 / len(question.right))
        for question in questions
        for chance, right in zip(question.estimates, question.right, strict=True)
    ]
    if not rows:
        return _UNCHANGED
    chances, right, weights = np.array(rows, dtype=float).T
    chances = np.clip(chances, _LEAST, _MOST)
    log_odds = np.log(chances / (1 - chances))

    def surprise(parameters: NDArray[np.float64]) -> float:
        log_slope, shift = parameters
        converted = np.exp(log_slope) * log_odds + shift
        return float(weights @ (np.logaddexp(0, converted) - right * converted) + (log_slope**2 + shift**2) / 2)

    log_slope, shift = minimize(surprise, np.zeros(2), bounds=_BOUNDS, method="L-BFGS-B").x
    return ConfidenceScale(slope=round(float(np.exp(log_slope)), 4), shift=round(float(shift), 4))


def learn_confidence(questions: Sequence[RatedQuestion], *, seed: int, in_use: ConfidenceScale | None) -> ParameterEvidence:
    """Fit a scale on one half of the questions, and check it on the other."""
    halves = {question: is_learned_from(question.id, seed) for question in questions}
    scale = fit_scale([question for question, learns in halves.items() if learns])
    cases = [
        ScoredCase(kind="", learns=learns, scores={BEFORE: question.score_scale(in_use), _FITTED: question.score_scale(scale)})
        for question, learns in halves.items()
    ]
    finding = learn_parameter(Parameter.CONFIDENCE, cases, share=None)
    evidence: dict[str, Any] = {**finding.evidence, "measure": "1 - squared error"}
    for name, learning in (("learn", True), ("check", False)):
        half = [question for question, learns in halves.items() if learns is learning]
        if half and "difference" in evidence[name]:
            evidence[name] = {**evidence[name], "calibration_error": _compare_errors(half, in_use, scale)}
    if "tried" in evidence:
        evidence["tried"] = asdict(scale)
    return replace(finding, choice=None if finding.choice is None else asdict(scale), evidence=evidence)


def _compare_errors(half: Sequence[RatedQuestion], in_use: ConfidenceScale | None, scale: ConfidenceScale) -> dict[str, float]:
    right = [is_right for question in half for is_right in question.right]
    errors = {}
    for name, used in (("before", in_use or _UNCHANGED), ("after", scale)):
        chances = [used.convert_confidence(estimate) for question in half for estimate in question.estimates]
        errors[name] = round(calibration_error(chances, right), 4)
    return errors
