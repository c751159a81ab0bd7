"""Votes of labelled documents: a nearest-neighbour rule whose weights fall with the distance (Dudani, "The distance-weighted
k-nearest-neighbor rule", IEEE Transactions on Systems, Man, and Cybernetics, 1976)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

VOTE_SCALE = 0.1
"""Difference of proximity at which a vote has 1/e of the nearest document's weight. Accuracy with .07, .1, .13 on two sets of
intents, 30 documents for each label: .90, .90, .89 and .88, .90, .91."""
_LEAST_SHARE = 0.02
_INTERCEPT, _OF_SHARE, _OF_SIMILARITY = -2.4, 1.15, 4.6
"""Fitted to BANKING77 and CLINC150, with 5 and 30 documents for each label and with texts that no label fits. Fitted to one of
the sets, the ranking of right and wrong labels on the other has an AUC of .90 and .92."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledDocument:
    """A labelled document near to the text.

    Attributes:
        labels: its labels, at least one.
        proximity: how near it is, at most about 1. Only differences matter.
        similarity: its cosine with the text on the bundled encoder's scale, in [-1, 1]. None: the strategy compares no vectors.
    """

    document_id: str
    chunk_id: str
    title: str
    text: str
    labels: tuple[str, ...]
    proximity: float
    score: float
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class Vote:
    """The share of a label, in (0, 1], and the number of documents that have it. The shares of all labels sum to 1."""

    label: str
    share: float
    documents: int


def count_votes(documents: Sequence[LabelledDocument]) -> list[Vote]:
    """Return the vote for each label, the largest share first. A document with several labels votes for each of them."""
    if not documents:
        return []
    highest = max(document.proximity for document in documents)
    weights, counts = defaultdict[str, float](float), defaultdict[str, int](int)
    for document in documents:
        for label in dict.fromkeys(document.labels):
            weights[label] += math.exp((document.proximity - highest) / VOTE_SCALE)
            counts[label] += 1
    total = sum(weights.values())
    votes = (Vote(label, weight / total, counts[label]) for label, weight in weights.items())
    return sorted(votes, key=lambda vote: (-vote.share, vote.label))


def confidence_of(share: float, similarity: float | None) -> float:
    """Return the estimated probability, in [0, 1], that a label is right.

    Args:
        share: of the votes, in [0, 1].
        similarity: cosine of the text and its nearest labelled document. None: it is unknown, and the share is the estimate.
    """
    if similarity is None or share == 0.0:
        return share
    share = min(1 - _LEAST_SHARE, max(_LEAST_SHARE, share))
    return 1 / (1 + math.exp(-(_INTERCEPT + _OF_SHARE * math.log(share / (1 - share)) + _OF_SIMILARITY * similarity)))
