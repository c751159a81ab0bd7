"""Bodies of requests for proposals of tuning, and their responses."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from agentic_rag_backend.api.schemas.base import Body, Switch, View, Whole
from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.domain.tuning import MAX_TUNING_DATASETS, Parameter, Proposal, ProposalStatus, TuningPlan
from agentic_rag_backend.evaluation.tuning.tuning_service import TuningEstimate

Metric = Literal["recall", "all_gold", "ndcg", "mrr"]
DatasetId = Annotated[str, Field(min_length=1, max_length=64)]


class TuningBody(Body):
    """What values are learned from. Half of the cases choose values, the other half decides whether they are better."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"datasets": ["0a1b2c3d-4e5f-4071-8293-a4b5c6d7e8f9"], "feedback": True}]}
    )

    datasets: list[DatasetId] | None = Field(
        None, max_length=MAX_TUNING_DATASETS, description="ids of datasets; default: all; an empty list: none"
    )
    feedback: Switch = Field(
        False,
        description="rated answers are cases, too: feedback that has its `question`, and good citations or a correction; "
        "`confidence` is learned from all rated answers",
    )
    parameters: list[Parameter] | None = Field(
        None, min_length=1, description="what may change; default: all that searches of the tenant use"
    )
    metric: Metric = Field("ndcg", description="measure of results that must improve")
    k: Whole = Field(5, ge=1, le=100, description="results of each question that count")
    seed: Whole = Field(0, ge=0, le=2**31 - 1, description="another seed splits the cases into other halves")
    dry_run: Switch = Field(False, description="return the expected work, and start nothing")

    def to_plan(self) -> TuningPlan:
        """Return the plan without its datasets, whose versions the service reads."""
        return TuningPlan(
            datasets=(),
            feedback=self.feedback,
            parameters=tuple(dict.fromkeys(self.parameters or ())),
            metric=self.metric,
            k=self.k,
            seed=self.seed,
        )


class TuningEstimateView(View):
    cases: dict[str, int] = Field(
        description="`total`, `learn` and `check`; then by origin, and what is left out; evidence is not looked for"
    )
    parameters: list[Parameter]
    searches: int

    @classmethod
    def of(cls, estimate: TuningEstimate) -> TuningEstimateView:
        """Return the view of an estimate."""
        return cls(cases=dict(estimate.counts), parameters=list(estimate.parameters), searches=estimate.searches)


class TuningAccepted(View):
    """A queued proposal and its job, or the expected work of a dry run."""

    proposal_id: str | None
    job_id: str | None
    state: JobState | None
    dry_run: bool
    estimate: TuningEstimateView | None


class ProposalView(View):
    """A proposal. ``result`` is null until its job has ended; `GET /jobs/{job_id}` shows the progress."""

    id: str
    status: ProposalStatus
    datasets: list[str]
    feedback: bool
    parameters: list[Parameter]
    metric: str
    k: int
    seed: int
    job_id: str
    state: JobState
    done: int
    total: int
    error: dict[str, Any] | None
    created_at: datetime
    finished_at: datetime | None
    values: dict[str, Any] | None = Field(
        description="all tuned values after an acceptance, by parameter; null: tuning declines to change anything"
    )
    result: dict[str, Any] | None = Field(
        description="the evidence: `cases` by half and origin, `values_before`, and for each of `parameters` whether it "
        "`improves`, the `reason`, and on the halves `learn` and `check` the numbers before and after, and their difference with "
        "`interval` and `p`"
    )
    accepted_at: datetime | None
    accepted_by: str | None = Field(description="id of the key")
    rolled_back_at: datetime | None
    rolled_back_by: str | None
    warnings: list[str]

    @classmethod
    def of(cls, proposal: Proposal, *, with_result: bool = True, warnings: tuple[str, ...] = ()) -> ProposalView:
        """Return the view of a proposal; without its evidence unless ``with_result``."""
        plan = proposal.plan
        names = ("id", "status", "job_id", "state", "done", "total", "created_at", "finished_at")
        changes = ("accepted_at", "accepted_by", "rolled_back_at", "rolled_back_by")
        return cls(
            **{name: getattr(proposal, name) for name in (*names, *changes)},
            datasets=[dataset_id for dataset_id, _ in plan.datasets],
            feedback=plan.feedback,
            parameters=list(plan.parameters),
            metric=plan.metric,
            k=plan.k,
            seed=plan.seed,
            error=dict(proposal.error) if proposal.error is not None else None,
            values=proposal.values.describe() if proposal.values is not None else None,
            result=dict(proposal.result) if with_result and proposal.result is not None else None,
            warnings=list(warnings),
        )
