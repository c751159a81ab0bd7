"""Experiments of a caller's tenant: their management, and the requests that take part in them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from agentic_rag_backend.answering.base import with_details
from agentic_rag_backend.application.access import requires
from agentic_rag_backend.container.services import Container
from agentic_rag_backend.domain.answer import Answer
from agentic_rag_backend.domain.experiments import Experiment, QuestionAssignment, StoppingRule
from agentic_rag_backend.domain.query import Retrieval
from agentic_rag_backend.domain.tenant import Principal, Scope
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.evaluation.experiments.experiment_service import ExperimentResult
from agentic_rag_backend.evaluation.question_asking import CONFIGURABLE
from agentic_rag_backend.retrieval.registry import DUAL_LEVEL
from agentic_rag_backend.retrieval.requests.search_requests import SearchRequest, Weights
from agentic_rag_backend.stores.catalogue.base import Page
from agentic_rag_backend.tenancy.features import DUAL_LEVEL as DUAL_LEVEL_FLAG

Request = TypeVar("Request", bound=SearchRequest)


@dataclass(frozen=True, slots=True)
class Participation:
    """A request's place in the tenant's experiment. Without an assignment, it has none."""

    container: Container
    caller: Principal
    assignment: QuestionAssignment | None
    started: float

    def trace_results(self, retrieval: Retrieval) -> Retrieval:
        """Return results whose trace names the configuration."""
        if self.assignment is None:
            return retrieval
        return replace(retrieval, trace=with_details(retrieval.trace, experiment=self.assignment.details))

    def record_search(self, retrieval: Retrieval) -> Retrieval:
        """Record a search that has ended, and return its results with the configuration."""
        self._record_outcome(retrieval.usage)
        return self.trace_results(retrieval)

    def record_answer(self, answer: Answer) -> Answer:
        """Record an answer, which has its id, and return it with the configuration."""
        self._record_outcome(answer.usage, refused=not answer.grounded, answer_id=answer.id)
        return replace(answer, retrieval=self.trace_results(answer.retrieval))

    def _record_outcome(self, usage: Usage, *, refused: bool | None = None, answer_id: str | None = None) -> None:
        if self.assignment is not None:
            self.container.experiments.record(
                self.caller.tenant.id,
                self.assignment,
                latency_ms=(time.perf_counter() - self.started) * 1000,
                tokens=usage.prompt_tokens + usage.completion_tokens,
                refused=refused,
                answer_id=answer_id,
            )


def take_part(container: Container, caller: Principal, request: Request) -> tuple[Request, Participation]:
    """Return the request with the fields of its configuration in the tenant's experiment.

    A request that sets one of these fields itself does not take part. Neither does one whose configuration needs dual-level
    retrieval, if that was switched off since the experiment began.
    """
    experiment, assignment = caller.tenant.experiment, None
    if experiment is not None and all(getattr(request, name, None) in (None, {}) for name in CONFIGURABLE):
        assignment = experiment.assign_question(caller.tenant.id.value, request.query)
    if assignment is not None and not _is_available(container, caller, assignment.configuration):
        assignment = None
    if assignment is not None:
        fields = {name: value for name, value in assignment.configuration.items() if name in type(request).model_fields}
        if "weights" in fields:
            fields["weights"] = Weights.model_validate(fields["weights"])
        request = request.model_copy(update=fields)
    return request, Participation(container, caller, assignment, time.perf_counter())


def _is_available(container: Container, caller: Principal, configuration: Mapping[str, Any]) -> bool:
    strategy = configuration.get("strategy")
    needs_levels = strategy is not None and container.retrievers.canonical(strategy) == DUAL_LEVEL
    return not needs_levels or container.features.is_on(DUAL_LEVEL_FLAG, caller.flags)


@dataclass(frozen=True, slots=True)
class TenantExperiments:
    """Compares two configurations on requests. An experiment of another tenant does not exist: `NotFound`."""

    container: Container

    @requires(Scope.ADMIN)
    async def start_experiment(
        self, caller: Principal, name: str, configurations: Sequence[Mapping[str, Any]], *, share: float, rule: StoppingRule
    ) -> Experiment:
        """Start an experiment. See `ExperimentService.start`."""
        return await self.container.experiments.start(caller, name, configurations, share=share, rule=rule)

    @requires(Scope.READ)
    async def list_experiments(self, caller: Principal, *, limit: int, cursor: str | None = None) -> Page[Experiment]:
        """List experiments without their figures, newest first."""
        return await self.container.catalogue.experiments.experiments(caller.tenant.id, limit=limit, cursor=cursor)

    @requires(Scope.READ)
    async def get_experiment(self, caller: Principal, experiment_id: str) -> ExperimentResult:
        """Return an experiment with its figures."""
        return await self.container.experiments.read_result(caller.tenant.id, experiment_id)

    @requires(Scope.ADMIN)
    async def stop_experiment(self, caller: Principal, experiment_id: str) -> ExperimentResult:
        """End an experiment. Its figures stay."""
        await self.container.experiments.write_outcomes()
        stop = self.container.catalogue.experiments.stop_experiment
        await stop(caller.tenant.id, experiment_id, because="request", key_id=caller.key_id)
        return await self.container.experiments.read_result(caller.tenant.id, experiment_id)

    @requires(Scope.ADMIN)
    async def delete_experiment(self, caller: Principal, experiment_id: str) -> None:
        """Delete an experiment that has ended, with its outcomes."""
        await self.container.catalogue.experiments.delete(caller.tenant.id, experiment_id)
