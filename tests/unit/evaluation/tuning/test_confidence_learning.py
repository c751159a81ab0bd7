"""A scale of confidence is learned from ratings of one half, and proposed only if the other half proves it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.domain.feedback import Feedback, FeedbackDraft, Rating
from agentic_rag_backend.domain.tuning import ConfidenceScale
from agentic_rag_backend.evaluation.tuning.confidence_learning import (
    RatedQuestion,
    collect_ratings,
    fit_scale,
    learn_confidence,
)

TRUE_SCALE = ConfidenceScale(slope=0.5, shift=-1.0)
SHARES = st.floats(0, 1)


def rated_questions(count: int, scale: ConfidenceScale | None, seed: int = 0) -> list[RatedQuestion]:
    """Return questions whose answers are right as often as ``scale`` says; None: as often as the estimate says."""
    random = np.random.default_rng(seed)
    estimates = [round(float(chance), 4) for chance in random.uniform(0.25, 0.98, count)]
    chances = [scale.convert_confidence(estimate) if scale else estimate for estimate in estimates]
    right = random.random(count) < chances
    return [RatedQuestion(f"{number}", (estimate,), (bool(right[number]),)) for number, estimate in enumerate(estimates)]


def test_a_confidence_that_is_too_high_is_corrected() -> None:
    finding = learn_confidence(rated_questions(400, TRUE_SCALE), seed=0, in_use=None)
    assert finding.choice is not None, finding.reason
    scale = ConfidenceScale(**finding.choice)  # type: ignore[arg-type]
    assert scale.slope == pytest.approx(TRUE_SCALE.slope, abs=0.25)
    assert scale.shift == pytest.approx(TRUE_SCALE.shift, abs=0.4)
    errors = finding.evidence["check"]["calibration_error"]
    assert errors["after"] < errors["before"] / 2


def test_a_right_confidence_is_declined() -> None:
    declined = [learn_confidence(rated_questions(200, None, seed), seed=0, in_use=None).choice is None for seed in range(20)]
    assert sum(declined) >= 18, "by chance, one in forty is not"
    in_use = learn_confidence(rated_questions(400, TRUE_SCALE), seed=0, in_use=TRUE_SCALE)
    assert in_use.choice is None, "the scale in use is right already"


def test_few_ratings_are_declined_and_change_a_scale_little() -> None:
    finding = learn_confidence(rated_questions(30, TRUE_SCALE), seed=0, in_use=None)
    assert (finding.choice, finding.reason.split(":")[0]) == (None, "too few cases")
    assert learn_confidence([], seed=0, in_use=None).choice is None
    scale = fit_scale([RatedQuestion("1", (0.9,), (False,))])
    assert 0.5 < scale.convert_confidence(0.9) < 0.9


@given(st.lists(st.tuples(SHARES, st.booleans()), max_size=30), st.lists(SHARES, min_size=2, max_size=9))
def test_a_scale_keeps_the_order_of_answers(ratings: list[tuple[float, bool]], estimates: list[float]) -> None:
    scale = fit_scale([RatedQuestion(f"{number}", (chance,), (good,)) for number, (chance, good) in enumerate(ratings)])
    converted = [scale.convert_confidence(estimate) for estimate in sorted(estimates)]
    assert converted == sorted(converted)
    assert all(0.0 <= confidence <= 1.0 for confidence in converted)


def feedback_on(answer_id: str, rating: Rating = Rating.GOOD, **fields: Any) -> Feedback:
    """Return feedback on an answer with the estimate .8 and the confidence .5."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    about: dict[str, Any] = {
        "id": answer_id,
        "key_id": "k",
        "chunk_id": None,
        "strategy": "hybrid",
        "generator": "attributed",
        "confidence": 0.5,
        "estimate": 0.8,
        "grounded": True,
        "question_hash": "q",
        "texts_removed": False,
        "created_at": now,
        "updated_at": now,
    }
    return Feedback(draft=FeedbackDraft(answer_id=answer_id, rating=rating), **(about | fields))


async def test_ratings_of_answers_count_once_for_each_question() -> None:
    async def feedback() -> AsyncIterator[Feedback]:
        yield feedback_on("a")
        yield feedback_on("b", Rating.BAD)
        yield feedback_on("c", question_hash=None, estimate=None)
        yield feedback_on("d", chunk_id="a citation")
        yield feedback_on("e", grounded=False)

    first, second = await collect_ratings(feedback())
    assert (first.id, first.estimates, first.right) == ("c", (0.5,), (True,))
    assert (second.id, second.estimates, second.right) == ("q", (0.8, 0.8), (False, True))
    assert second.score_scale(None) == pytest.approx(1 - (0.8**2 + 0.2**2) / 2)
