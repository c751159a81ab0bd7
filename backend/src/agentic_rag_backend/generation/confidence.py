"""The confidence of an account, and the loss of confidence by sentences that fail the checks: plain functions.

The confidence of other answers is estimated by `answerability`. A question that asks for an account ("Why …", "What part does …")
names little that one passage could cover, so the best passage is a weak signal. There the mean of the five nearest passages
and themes decides: the eight theme questions of the examples have .31 to .60. Of 65 to 73 such questions of other corpora,
asked of the examples, HotpotQA and MuSiQue, 95 % stay below .306, .31 and .30.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

BREADTH_MIDPOINT = 0.311
"""Mean similarity of the nearest evidence at which an account has a probability of one half."""
BREADTH_STEEPNESS = 80.0
MATTER_ABSENT = 0.2
"""Factor on the confidence of an account, if the evidence contains no word of the question but its names. Set by hand."""
NEAREST = 5
"""Passages and themes whose similarity is averaged for an account."""
CHECKED_SHARE = 0.3
"""Maximum loss of confidence, if no sentence of the model passed the checks."""


def breadth(similarities: Iterable[float]) -> float:
    """Return the mean of the five largest similarities, in [0, 1]; fewer than five count as if the others were 0."""
    return sum(sorted((max(0.0, value) for value in similarities), reverse=True)[:NEAREST]) / NEAREST


def account_answerability(broad: float, *, matter_absent: bool = False) -> float:
    """Return the chance that the evidence holds the requested account, in [0, 1].

    Args:
        broad: `breadth` of the evidence.
        matter_absent: whether the evidence contains the question's names only. "Why did she divorce?" is not answered by passages
            about her that never speak of a divorce.
    """
    return (MATTER_ABSENT if matter_absent else 1.0) / (1.0 + math.exp(-BREADTH_STEEPNESS * (broad - BREADTH_MIDPOINT)))


def confidence(answerable: float, kept: int, dropped: int) -> float:
    """Return the confidence of an answer of ``kept`` checked sentences, ``dropped`` others having failed, in [0, 1]."""
    if not kept:
        return 0.0
    return answerable * (1.0 - CHECKED_SHARE + CHECKED_SHARE * kept / (kept + dropped))
