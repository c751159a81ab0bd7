"""Values that tuning sets for a tenant, and proposals of such values with their evidence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from agentic_rag_backend.domain.job import JobState

MAX_PROPOSALS = 200
"""Proposals of a tenant."""
MAX_TUNING_CASES = 2_000
"""Cases of a proposal."""
MAX_TUNING_DATASETS = 50
"""Datasets that a proposal may name."""


class Parameter(StrEnum):
    """What tuning may change: weights of dual-level retrieval and of `hybrid`, the low level of `auto`, and the confidence."""

    LEVEL_WEIGHTS = "level_weights"
    HYBRID_WEIGHTS = "hybrid_weights"
    AUTO_STRATEGIES = "auto_strategies"
    CONFIDENCE = "confidence"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceScale:
    """Converts the estimated chance that an answer is right: its log odds times ``slope`` plus ``shift`` (Platt, 1999).

    ``slope`` is above 0, so the order of answers stays.
    """

    slope: float
    shift: float

    def convert_confidence(self, estimate: float) -> float:
        """Return the confidence for an estimate in [0, 1]. 0 and 1 stay."""
        if not 0.0 < estimate < 1.0:
            return estimate
        log_odds = self.slope * math.log(estimate / (1.0 - estimate)) + self.shift
        return round((1.0 + math.tanh(log_odds / 2.0)) / 2.0, 4)  # the logistic function; `exp` would overflow


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedValues:
    """Values that tuning set for a tenant. For None, and for kinds that are absent, flags and settings apply.

    ``low_weight`` in [0, 1] is the share of the low level, ``dense_weight`` in [0, 1] the share of the dense leg of `hybrid`.
    ``low_strategies`` has strategies of the low level of `auto` by kind of question. ``confidence`` converts the confidence of
    answers. ``proposal_id`` is the proposal that was accepted last.
    """

    low_weight: float | None = None
    dense_weight: float | None = None
    low_strategies: Mapping[str, str] = field(default_factory=dict)
    confidence: ConfidenceScale | None = None
    proposal_id: str | None = None

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> TunedValues:
        """Return the values of a record that `dataclasses.asdict` made."""
        scale = record.get("confidence")
        return cls(**{**record, "confidence": None if scale is None else ConfidenceScale(**scale)})

    def describe(self) -> dict[str, Any]:
        """Return the values by parameter, without those that are not tuned."""
        values: dict[str, Any] = {}
        if self.low_weight is not None:
            values[Parameter.LEVEL_WEIGHTS.value] = {"low": self.low_weight, "high": round(1 - self.low_weight, 6)}
        if self.dense_weight is not None:
            values[Parameter.HYBRID_WEIGHTS.value] = {"dense": self.dense_weight, "sparse": round(1 - self.dense_weight, 6)}
        if self.low_strategies:
            values[Parameter.AUTO_STRATEGIES.value] = dict(self.low_strategies)
        if self.confidence is not None:
            values[Parameter.CONFIDENCE.value] = asdict(self.confidence)
        return values


NOT_TUNED = TunedValues()


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningPlan:
    """What a proposal is learned from. ``datasets`` are pairs of id and version.

    ``feedback``: rated answers are cases, too. ``metric`` is a measure of results without ``@k``. Another ``seed`` splits the
    cases into other halves.
    """

    datasets: tuple[tuple[str, int], ...]
    feedback: bool
    parameters: tuple[Parameter, ...]
    metric: str = "ndcg"
    k: int = 5
    seed: int = 0


class ProposalStatus(StrEnum):
    """State of a proposal. ``failed`` includes cancelled ones."""

    MEASURING = "measuring"
    FAILED = "failed"
    DECLINED = "declined"
    PROPOSED = "proposed"
    ACCEPTED = "accepted"
    ROLLED_BACK = "rolled_back"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseScores:
    """The measure of one case with every candidate for a parameter, by the candidate's name."""

    case_id: str
    parameter: Parameter
    scores: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A proposal and the state of its job. ``result`` is the evidence, None until the job has ended, and in lists.

    ``base`` are the tuned values at the request, against which it is measured; ``values`` are the proposed ones, None if it
    declines to change anything.
    """

    id: str
    plan: TuningPlan
    base: TunedValues
    job_id: str
    state: JobState
    done: int
    total: int
    created_at: datetime
    values: TunedValues | None = None
    finished_at: datetime | None = None
    error: Mapping[str, Any] | None = None
    result: Mapping[str, Any] | None = None
    accepted_at: datetime | None = None
    accepted_by: str | None = None
    """Id of the key."""
    rolled_back_at: datetime | None = None
    rolled_back_by: str | None = None

    @property
    def status(self) -> ProposalStatus:
        """What became of it."""
        if self.rolled_back_at is not None:
            return ProposalStatus.ROLLED_BACK
        if self.accepted_at is not None:
            return ProposalStatus.ACCEPTED
        if not self.state.ended:
            return ProposalStatus.MEASURING
        if self.state in (JobState.FAILED, JobState.CANCELLED):
            return ProposalStatus.FAILED
        return ProposalStatus.DECLINED if self.values is None else ProposalStatus.PROPOSED
