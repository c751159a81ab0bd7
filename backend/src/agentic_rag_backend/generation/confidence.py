"""The loss of confidence by sentences that fail the checks. `answerability` estimates the confidence of the evidence."""

from __future__ import annotations

CHECKED_SHARE = 0.3
"""Maximum loss of confidence, if no sentence of the model passed the checks."""


def confidence(answerable: float, kept: int, dropped: int) -> float:
    """Return the confidence of an answer of ``kept`` checked sentences, ``dropped`` others having failed, in [0, 1]."""
    if not kept:
        return 0.0
    return answerable * (1.0 - CHECKED_SHARE + CHECKED_SHARE * kept / (kept + dropped))
