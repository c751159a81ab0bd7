"""The weight of a relationship: how many documents state it, how clearly and how recently.

The weight is ``Σ confidence × recency`` over the visible documents. The confidence of a document is the sum over its sentences.
The recency falls from 1 for a document of today towards ½, with half of the way in `HALF_LIFE_DAYS`: an old statement of a
lasting fact keeps at least half of its weight. Functions of values only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime

HALF_LIFE_DAYS = 365
OLD_RECENCY = 0.5
"""Recency that the oldest documents come near."""
MAX_DOCUMENTS = 20
"""Documents that count: those with the most weight."""


def recency(since: datetime | None, moment: datetime | None) -> float:
    """Return the recency at ``moment`` of a document of the time ``since``, in (0.5, 1].

    Age counts in whole days, so a weight does not change between two searches of one day. It is 1 where a time is not known.
    """
    if since is None or moment is None:
        return 1.0
    days = max((moment - since).days, 0)
    return OLD_RECENCY + (1 - OLD_RECENCY) * math.exp2(-days / HALF_LIFE_DAYS)


def weigh_fact(statements: Iterable[tuple[str, float, datetime | None]], moment: datetime | None) -> float:
    """Return the weight of a relationship, rounded to three digits.

    Args:
        stated: document id, confidence and time of each passage. The largest product of a document counts.
        moment: time for which the weight is asked. None gives all documents the recency 1.
    """
    documents: dict[str, float] = {}
    for document, confidence, since in statements:
        documents[document] = max(documents.get(document, 0.0), confidence * recency(since, moment))
    return round(sum(sorted(documents.values(), reverse=True)[:MAX_DOCUMENTS]), 3)
