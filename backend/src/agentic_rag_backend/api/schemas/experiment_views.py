"""Bodies of requests for experiments, and their responses."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import ConfigDict, Field

from agentic_rag_backend.api.schemas.base import Body, Number, View, Whole
from agentic_rag_backend.domain.experiments import Experiment, ExperimentMetric, StoppingRule
from agentic_rag_backend.domain.size_limits import MAX_NAME_CHARACTERS
from agentic_rag_backend.evaluation.experiments.experiment_service import ExperimentResult
from agentic_rag_backend.evaluation.question_asking import ConfigurationRequest


class StopBody(Body):
    """When an experiment ends by itself."""

    metric: ExperimentMetric = Field(
        ExperimentMetric.GOOD, description="what decides: `good` answers by feedback, `refused` answers, `latency_ms` or `tokens`"
    )
    cases: Whole = Field(1000, ge=100, le=20_000, description="different questions after which it ends")
    p: Number = Field(0.05, ge=0.001, le=0.2, description="it ends if the always-valid p of the metric is at most this")

    def to_rule(self) -> StoppingRule:
        """Return the rule."""
        return StoppingRule(metric=self.metric, cases=self.cases, p=self.p)


class ExperimentBody(Body):
    """Two configurations that answer requests in turn. Requests that set a field of a configuration do not take part."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "rounds",
                    "configurations": [{"name": "now", "strategy": "auto"}, {"name": "hybrid", "strategy": "hybrid"}],
                    "stop": {"metric": "refused", "cases": 2000},
                }
            ]
        }
    )

    name: str = Field(min_length=1, max_length=MAX_NAME_CHARACTERS)
    configurations: list[ConfigurationRequest] = Field(min_length=2, max_length=2)
    share: Number = Field(1.0, gt=0, le=1, description="share of the questions that take part")
    stop: StopBody = Field(default_factory=lambda: StopBody.model_validate({}))


class ExperimentView(View):
    """An experiment. Only `GET /evaluation/experiments/{id}` and `stop` have the ``result``."""

    id: str
    name: str
    state: Literal["running", "stopped"]
    configurations: list[dict[str, Any]]
    share: float
    stop: StopBody
    created_at: datetime
    created_by: str = Field(description="id of the key")
    stopped_at: datetime | None
    stopped_because: str | None = Field(description="`p`: the metric decided; `cases`: enough questions; `request`")
    stopped_by: str | None
    result: dict[str, Any] | None = Field(
        description="`cases` and `metrics` of each configuration, `differences` of the second from the first with `interval` and "
        "an always-valid `p`, and `better`: the configuration that the metric prefers, or null"
    )

    @classmethod
    def of(cls, experiment: Experiment, *, result: dict[str, Any] | None = None) -> ExperimentView:
        """Return the view of an experiment."""
        active = experiment.active
        names = ("created_at", "created_by", "stopped_at", "stopped_because", "stopped_by")
        return cls(
            **{name: getattr(experiment, name) for name in names},
            id=active.id,
            name=active.name,
            state="running" if experiment.stopped_at is None else "stopped",
            configurations=[dict(configuration) for configuration in active.configurations],
            share=active.share,
            stop=StopBody(metric=active.rule.metric, cases=active.rule.cases, p=active.rule.p),
            result=result,
        )

    @classmethod
    def of_result(cls, outcome: ExperimentResult) -> ExperimentView:
        """Return the view of an experiment with its figures."""
        return cls.of(outcome.experiment, result=dict(outcome.result))
