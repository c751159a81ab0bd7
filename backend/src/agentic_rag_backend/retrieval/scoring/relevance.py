"""How well the best passages answer a question, on a scale that means the same for every question.

Measured on MuSiQue and HotpotQA, each corpus asked its own questions and the other's: with the nearest passage's cosine
plus half the best share of the question's terms that one passage covers, the threshold that still answers 90 % of a
corpus' own questions refuses 98 % of the other's (cosine alone: 94 %).
"""

from __future__ import annotations

COVERAGE_SHARE = 0.5
MEASURED = 5
"""Hits that the relevance is measured on, however many are asked for."""


def relevance(cosine: float, coverage: float) -> float:
    """Return the relevance in [0, 1].

    Args:
        cosine: of the question and the nearest passage, in [-1, 1].
        coverage: the largest share of the question's term weight that a single passage holds, in [0, 1].
    """
    return max(0.0, min(1.0, (max(cosine, 0.0) + COVERAGE_SHARE * coverage) / (1.0 + COVERAGE_SHARE)))
