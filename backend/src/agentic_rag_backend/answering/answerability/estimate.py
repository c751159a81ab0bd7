"""Estimates the chance that the chosen sentences answer the question, or that the passages hold the requested account."""

from __future__ import annotations

import math

import numpy as np

from agentic_rag_backend.answering.answerability.evidence import EvidenceReading
from agentic_rag_backend.answering.answerability.selection import Coefficients, Linear, Selection
from agentic_rag_backend.answering.answerability.sentence_features import flag_missing

MATTER_WORDS = 2
SPECIFIC = 0.25
"""Confidence from which one place in the documents holds a requested account ("Why was it withdrawn?"), so that it is quoted."""
NEAREST = 5
"""Passages whose similarity is averaged for an account."""


def estimate_confidence(selection: Selection, weights: Coefficients) -> float:
    """Return the chance in [0, 1] that the chosen sentences hold the right answer.

    A logistic of `answer_features`. Sentences of several documents that a name connects have weights of their own.
    """
    features = answer_features(selection)
    return apply_logistic(kind_of(features, weights), features)


def account_confidence(selection: Selection, nearness: float, weights: Coefficients) -> float:
    """Return the chance in [0, 1] that many passages together hold the account that the question asks for.

    Args:
        nearness: see `account_features`.
    """
    return apply_logistic(weights.account, account_features(selection, nearness))


def account_features(selection: Selection, nearness: float) -> dict[str, float]:
    """Return the features of an account that rests on many passages.

    ``nearness`` is the mean cosine of the question and the `NEAREST` of the best passages.
    ``matter_absent`` is 1 if `lacks_matter`.
    """
    return {"nearness": nearness, "matter_absent": float(lacks_matter(selection.reading))}


def kind_of(features: dict[str, float], weights: Coefficients) -> Linear:
    """Return the function for the kind of evidence: one document, or several that are connected."""
    return weights.hops if features["connected"] > 0.0 else weights.fact


def apply_logistic(function: Linear, features: dict[str, float]) -> float:
    """Return 1 / (1 + e^-z) of the linear function's value."""
    return 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, function.at(features)))))


def answer_features(selection: Selection) -> dict[str, float]:
    """Return the features of an answer, each in [0, 1].

    ``cosine`` is the best of a candidate. ``similar_window``, ``negation`` and ``opposite`` are of the best sentence, ``share``
    is its share of the candidates. ``connected`` is the rarity of terms that connected sentences add to it. ``year_differs``,
    ``numbers_absent`` and ``count_absent`` are of the best sentence and those connected with it. ``type_absent`` and
    ``value_absent`` are 1 if no chosen sentence has an item or a value of the requested kind. ``names_absent`` is the rarity of
    the question's names that no chosen sentence has near it, ``covered`` the rarity of the terms that some passage contains.
    """
    reading, features, number = selection.reading, selection.features, selection.first
    window = reading.in_window[:, selection.numbers]
    covered = window.max(axis=1, initial=0.0)
    connected = float(reading.rarity @ (covered - window[:, 0])) * selection.connection
    places = selection.places if connected > 0.0 else [number]
    evidence = covered if connected > 0.0 else window[:, 0]
    exponentials = np.exp(selection.scores - selection.scores.max())
    names = reading.question.named
    return {
        "cosine": float(features["cosine"].max()),
        "similar_window": float(features["similar_window"][number]),
        "share": float(exponentials[number] / exponentials.sum()),
        "names_absent": float(reading.rarity[names] @ (1.0 - covered[names])),
        "numbers_absent": float(flag_missing(reading.question.numbers, evidence[:, None])[0]),
        "count_absent": float(flag_missing(reading.question.counted, evidence[:, None])[0]),
        **{name: float(features[name][number]) for name in ("negation", "opposite")},
        "year_differs": float(features["year_differs"][places].min()),
        **{name: float(features[name][selection.places].min()) for name in ("type_absent", "value_absent")},
        "covered": covered_share(reading),
        "connected": connected,
    }


def covered_share(reading: EvidenceReading) -> float:
    """Return the rarity of the question's terms that some passage contains, in [0, 1]."""
    return float(reading.rarity @ reading.anywhere) if len(reading.rarity) else 1.0


def lacks_matter(reading: EvidenceReading) -> bool:
    """Return whether the question has one or two words that are neither names nor numbers, and no passage contains any of them.

    Longer questions are paraphrased, so that the absence of their words says little.
    """
    matter = ~(reading.question.named | reading.question.numbers)
    return 0 < int(matter.sum()) <= MATTER_WORDS and not bool(reading.anywhere[matter].any())
