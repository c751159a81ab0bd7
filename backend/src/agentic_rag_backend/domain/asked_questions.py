"""Questions that users asked, and the feedback on their answers."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

_DIGEST_BYTES = 16


def hash_question(question: str) -> str:
    """Return 32 hex digits, which are equal for questions that differ in letter case and white space only."""
    return hashlib.blake2b(" ".join(question.casefold().split()).encode(), digest_size=_DIGEST_BYTES).hexdigest()


@dataclass(frozen=True, slots=True)
class Ratings:
    """Numbers of good and bad ratings of the answers to a question, without those of single citations and results."""

    good: int = 0
    bad: int = 0

    def __add__(self, ratings: Ratings) -> Ratings:
        return Ratings(self.good + ratings.good, self.bad + ratings.bad)
