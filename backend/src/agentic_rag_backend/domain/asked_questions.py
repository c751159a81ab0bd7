"""Questions that users asked, and the ratings of their answers."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

QUESTION_DAYS = 30
"""Days after which a kept question is deleted."""
_DIGEST_BYTES = 16


def hash_question(question: str) -> str:
    """Return 32 hex digits, which are equal for questions that differ in letter case and white space only."""
    return hashlib.blake2b(" ".join(question.casefold().split()).encode(), digest_size=_DIGEST_BYTES).hexdigest()


class Rating(StrEnum):
    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class RatingCounts:
    """Numbers of good and bad ratings of the answers to a question, without those of single citations and results."""

    good: int = 0
    bad: int = 0

    def __add__(self, ratings: RatingCounts) -> RatingCounts:
        return RatingCounts(self.good + ratings.good, self.bad + ratings.bad)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """A question that the tenant allowed to keep, and how it was answered. ``id`` is that of the answer."""

    id: str
    question: str
    strategy: str
    grounded: bool
    confidence: float
    asked_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionFilter:
    """Selects questions by a rating of their answers, and by whether these were no refusals. None: any."""

    rating: Rating | None = None
    grounded: bool | None = None
