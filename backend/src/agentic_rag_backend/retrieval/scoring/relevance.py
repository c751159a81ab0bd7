"""Relevance: how well the best passages answer a question, comparable across questions.

Measured on MuSiQue and HotpotQA, with each corpus asked its own and the other's questions. The measure is the nearest
passage's cosine plus half the best coverage of the question's terms by one passage. At the threshold that still answers 90 %
of a corpus' own questions it refuses 98 % of the other's (cosine alone: 94 %).
"""

from __future__ import annotations

from agentic_rag_backend.models.embedding.calibration import Calibration

COVERAGE_SHARE = 0.5
MEASURED = 5
"""Number of top hits that the relevance is measured on, regardless of the request's limit."""


def relevance(cosine: float, coverage: float, calibration: Calibration) -> float:
    """Return the relevance in [0, 1].

    Args:
        cosine: cosine of the question and the nearest passage, in [-1, 1].
        coverage: largest share of the question's term weight that one passage contains, in [0, 1].
        calibration: of the encoder of question and passage.
    """
    closeness = calibration.questions.convert_cosine(cosine)
    return max(0.0, min(1.0, (max(closeness, 0.0) + COVERAGE_SHARE * coverage) / (1.0 + COVERAGE_SHARE)))
