"""The confidence of an answer, and the decision to refuse one: plain functions.

Measured on MuSiQue and HotpotQA with the bundled embedder: each corpus answered its own 100 questions (answerable) and the
other's 100 (not). Retrieval's relevance carries the decision (alone, at its best threshold: 94.5 % answered, 94.5 %
refused). Weighing it with the share of the question's words that the evidence covers, names and numbers double, gives
94.5 % and 95 % there, and 96 % and 92.5 % at ``ANSWER_MIN_CONFIDENCE`` = .35.

A question that wants an account ("Why …", "What part does …") names little that one passage could cover, so the best
passage is a weak signal. There the mean of the five nearest passages and themes decides: the eight theme questions of
the examples have .31 to .60. Of 65 to 73 such questions of other corpora, asked of the examples, HotpotQA and MuSiQue, 95 %
stay below .306, .31 and .30 (the best passage's relevance: .30 to .54 against .28, .38 and .33).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from agentic_rag_backend.domain.text.words import content_forms, coverage, names_and_numbers

NAME_WEIGHT = 2.0
"""Weight of a name or number of the question relative to other words."""
STEEPNESS = 33.0
"""Steepness of the logistic curve, fitted to the measurement above."""
MIDPOINT = 0.37
"""Weighted relevance at which an answer is as likely as not, from the same fit."""
BREADTH_MIDPOINT = 0.305
"""Mean similarity of the nearest evidence at which an account has a probability of one half."""
BREADTH_STEEPNESS = 80.0
NEAREST = 5
"""Passages and themes whose similarity is averaged for an account."""
CHECKED_SHARE = 0.3
"""Maximum loss of confidence, if no sentence of the model passed the checks."""


def question_coverage(question: str, texts: Iterable[str]) -> float:
    """Return the share of the question's words that ``texts`` hold, in [0, 1]; 1 for a question of stop words only."""
    names = names_and_numbers(question)
    weights = {form: NAME_WEIGHT if form in names else 1.0 for form in content_forms(question)}
    held: set[str] = set()
    for text in texts:
        held |= content_forms(text)
    return coverage(weights, held, weights, default=1.0) if weights else 1.0


def answerability(relevance: float, covered: float) -> float:
    """Return the chance that the evidence answers the question, in [0, 1].

    Args:
        relevance: `Retrieval.relevance`, in [0, 1].
        covered: `question_coverage` of the evidence, in [0, 1].
    """
    weighted = relevance * (1.0 + covered) / 2.0
    return 1.0 / (1.0 + math.exp(-STEEPNESS * (weighted - MIDPOINT)))


def breadth(similarities: Iterable[float]) -> float:
    """Return the mean of the five largest similarities, in [0, 1]; fewer than five count as if the others were 0."""
    return sum(sorted((max(0.0, value) for value in similarities), reverse=True)[:NEAREST]) / NEAREST


def account_answerability(broad: float) -> float:
    """Return the chance that the evidence holds the requested account, in [0, 1], from its `breadth`."""
    return 1.0 / (1.0 + math.exp(-BREADTH_STEEPNESS * (broad - BREADTH_MIDPOINT)))


def confidence(answerable: float, kept: int, dropped: int) -> float:
    """Return the confidence of an answer of ``kept`` checked sentences, ``dropped`` others having failed, in [0, 1]."""
    if not kept:
        return 0.0
    return answerable * (1.0 - CHECKED_SHARE + CHECKED_SHARE * kept / (kept + dropped))
