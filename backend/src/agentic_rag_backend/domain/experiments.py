"""Experiments: two configurations that answer a tenant's requests in turn, and their outcomes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

MAX_EXPERIMENTS = 200
"""Experiments of a tenant."""
_DRAWN = 2.0**64


class ExperimentMetric(StrEnum):
    """What an experiment decides on: rated answers that are good, refused answers, time, or tokens."""

    GOOD = "good"
    REFUSED = "refused"
    LATENCY = "latency_ms"
    TOKENS = "tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRule:
    """An experiment ends after ``cases`` different questions, or when the always-valid p of ``metric`` is at most ``p``."""

    metric: ExperimentMetric = ExperimentMetric.GOOD
    cases: int = 1000
    p: float = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveExperiment:
    """The part of a running experiment that requests need.

    ``share`` in [0, 1] of the questions takes part, half of them in each of the two ``configurations``. ``rule`` ends it.
    """

    id: str
    name: str
    configurations: tuple[Mapping[str, Any], ...]
    share: float = 1.0
    rule: StoppingRule = field(default_factory=StoppingRule)

    def assign_question(self, tenant: str, question: str) -> QuestionAssignment | None:
        """Return the configuration of a question, which is always the same. None: the question does not take part.

        SHA-256 of tenant, experiment and question decides. Letter case and white space do not matter.
        """
        words = " ".join(question.casefold().split())
        digest = hashlib.sha256(f"{tenant}\0{self.id}\0{words}".encode("utf-8", "surrogatepass")).digest()
        if int.from_bytes(digest[:8]) / _DRAWN >= self.share:
            return None
        return QuestionAssignment(experiment=self, configuration=self.configurations[digest[8] & 1], unit=digest[9:].hex())


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAssignment:
    """The configuration that answers a question. ``unit`` identifies the question in the experiment without its text."""

    experiment: ActiveExperiment
    configuration: Mapping[str, Any]
    unit: str

    @property
    def details(self) -> dict[str, Any]:
        """The details for the trace."""
        return {"id": self.experiment.id, "name": self.experiment.name, "configuration": self.configuration["name"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentOutcome:
    """What a request cost. ``refused`` is None for a search, ``answer_id`` names an answer in feedback."""

    experiment_id: str
    unit: str
    configuration: str
    latency_ms: float
    tokens: int
    created_at: datetime
    refused: bool | None = None
    answer_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Count, sum and sum of squares of a measure."""

    count: int
    total: float
    squares: float


MeasureSums = Mapping[str, Mapping[ExperimentMetric, Sums]]
"""Sums by the name of a configuration and by metric. Times and tokens are logarithms: ln(ms), ln(1 + tokens)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """An experiment with its state. ``stopped_because`` is ``p``, ``cases`` or ``request``; None: it runs.

    ``stopped_by`` is the id of the key whose request stopped it.
    """

    active: ActiveExperiment
    created_at: datetime
    created_by: str
    stopped_at: datetime | None = None
    stopped_because: str | None = None
    stopped_by: str | None = None
