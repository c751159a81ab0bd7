"""Scores of answers that a caller measured elsewhere, and their means over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

MAX_SCORES = 50
MAX_CONTEXTS = 50
MAX_CONTEXT_CHARACTERS = 100_000
"""Characters of all contexts together. A check of 50 sentences against them takes 1.5 s."""
MAX_TEXT_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSubmission:
    """An answer with what is known about it, and the caller's scores by metric. No text of it is stored.

    ``contexts`` are the texts that the answer was made from; without them, the chunks of ``retrieved_chunk_ids`` are.
    """

    query: str
    answer: str | None = None
    expected_answer: str | None = None
    retrieved_chunk_ids: Sequence[str] = ()
    gold_chunk_ids: Sequence[str] = ()
    contexts: Sequence[str] = ()
    scores: Mapping[str, float] = field(default_factory=dict)
    strategy: str = ""
    configuration: str = ""


@dataclass(frozen=True, slots=True)
class SubmittedScore:
    """The value of a metric. ``computed``: by this server, because the caller did not give it."""

    value: float
    computed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedScores:
    """The scores of one submission by metric. ``unknown_chunks``: number of its chunks that are not visible."""

    id: str
    scores: Mapping[str, SubmittedScore]
    unknown_chunks: int


@dataclass(frozen=True, slots=True, order=True)
class ScoreGroup:
    """Submissions of one day (UTC), strategy and configuration."""

    day: date
    strategy: str
    configuration: str


@dataclass(frozen=True, slots=True)
class MetricMean:
    """Number, mean, minimum and maximum of the scores of a metric; ``computed`` of them were computed by this server."""

    count: int
    computed: int
    mean: float
    minimum: float
    maximum: float
