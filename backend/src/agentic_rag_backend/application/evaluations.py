"""Datasets and evaluation runs of a caller's tenant."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from agentic_rag_backend.application.access import requires
from agentic_rag_backend.container.services import Container
from agentic_rag_backend.domain.asked_questions import AskedQuestion, QuestionFilter
from agentic_rag_backend.domain.evaluation import CaseOutcome, Dataset, EvaluationCase, EvaluationRun, RunPlan
from agentic_rag_backend.domain.tenant import Principal, Scope
from agentic_rag_backend.evaluation.evaluation_runs import RunEstimate
from agentic_rag_backend.stores.catalogue.base import Page


@dataclass(frozen=True, slots=True)
class EvaluationService:
    """Measures configurations on datasets of questions. What belongs to another tenant does not exist: `NotFound`."""

    container: Container

    @requires(Scope.WRITE)
    async def create_dataset(self, caller: Principal, name: str, cases: Sequence[EvaluationCase]) -> Dataset:
        """Create a dataset with its cases."""
        return await self.container.datasets.create(caller.tenant.id, name, cases)

    @requires(Scope.WRITE)
    async def upload_dataset(self, caller: Principal, name: str, content: bytes, media_type: str) -> Dataset:
        """Create a dataset from a file of JSON Lines or CSV."""
        return await self.container.datasets.create_from_file(caller.tenant.id, name, content, media_type)

    @requires(Scope.WRITE)
    async def generate_dataset(self, caller: Principal, name: str, *, count: int, kinds: Sequence[str], seed: int) -> Dataset:
        """Create a dataset, and queue the job that generates its cases from the tenant's documents."""
        return await self.container.datasets.generate(caller.tenant.id, name, count=count, kinds=kinds, seed=seed)

    @requires(Scope.ADMIN)
    async def create_from_questions(self, caller: Principal, name: str, *, count: int, chosen: QuestionFilter) -> Dataset:
        """Create a dataset from questions that users of the tenant asked, whoever they are."""
        await self.container.feedback.write_answers()
        return await self.container.datasets.create_from_questions(caller.tenant.id, name, count=count, chosen=chosen)

    @requires(Scope.ADMIN)
    async def add_questions(self, caller: Principal, dataset_id: str, *, count: int, chosen: QuestionFilter) -> Dataset:
        """Add questions that users of the tenant asked as a new version."""
        await self.container.feedback.write_answers()
        return await self.container.datasets.add_questions(caller.tenant.id, dataset_id, count=count, chosen=chosen)

    @requires(Scope.ADMIN)
    async def list_questions(
        self, caller: Principal, *, limit: int, cursor: str | None = None, chosen: QuestionFilter
    ) -> Page[AskedQuestion]:
        """List the questions that are kept, newest first."""
        await self.container.feedback.write_answers()
        return await self.container.catalogue.asked_questions.page(caller.tenant.id, limit=limit, cursor=cursor, chosen=chosen)

    @requires(Scope.ADMIN)
    async def forget_question(self, caller: Principal, question_id: str) -> None:
        """Delete a question that is kept."""
        await self.container.catalogue.asked_questions.forget(caller.tenant.id, question_id)

    @requires(Scope.ADMIN)
    async def forget_questions(self, caller: Principal) -> int:
        """Delete all questions that are kept, and return their number."""
        await self.container.feedback.write_answers()
        return await self.container.catalogue.asked_questions.forget_all(caller.tenant.id)

    @requires(Scope.READ)
    async def list_datasets(self, caller: Principal, *, limit: int, cursor: str | None = None) -> Page[Dataset]:
        """List datasets, newest first."""
        return await self.container.catalogue.datasets.datasets(caller.tenant.id, limit=limit, cursor=cursor)

    @requires(Scope.READ)
    async def get_dataset(self, caller: Principal, dataset_id: str) -> Dataset:
        """Return a dataset without its cases."""
        return await self.container.catalogue.datasets.dataset(caller.tenant.id, dataset_id)

    @requires(Scope.WRITE)
    async def delete_dataset(self, caller: Principal, dataset_id: str) -> None:
        """Delete a dataset with its cases, its runs and their outcomes."""
        await self.container.catalogue.datasets.delete(caller.tenant.id, dataset_id)

    @requires(Scope.READ)
    async def list_cases(
        self, caller: Principal, dataset_id: str, *, limit: int, cursor: str | None = None, version: int | None = None
    ) -> Page[EvaluationCase]:
        """List the cases of a version; None: of the current one."""
        datasets = self.container.catalogue.datasets
        return await datasets.cases(caller.tenant.id, dataset_id, limit=limit, cursor=cursor, version=version)

    @requires(Scope.READ)
    async def export_dataset(
        self, caller: Principal, dataset_id: str, *, version: int | None = None
    ) -> AsyncGenerator[bytes, None]:
        """Yield a version as lines of JSON."""
        async for lines in self.container.datasets.export(caller.tenant.id, dataset_id, version=version):
            yield lines

    @requires(Scope.WRITE)
    async def add_cases(self, caller: Principal, dataset_id: str, cases: Sequence[EvaluationCase]) -> Dataset:
        """Add cases as a new version."""
        return await self.container.datasets.add_cases(caller.tenant.id, dataset_id, cases)

    @requires(Scope.WRITE)
    async def save_answer(self, caller: Principal, dataset_id: str, case: EvaluationCase) -> Dataset:
        """Add a case that was made from an answer."""
        return await self.container.datasets.save_answer(caller.tenant.id, dataset_id, case)

    @requires(Scope.WRITE)
    async def remove_case(self, caller: Principal, dataset_id: str, case_id: str) -> Dataset:
        """Remove a case from the next version."""
        return await self.container.catalogue.datasets.remove_case(caller.tenant.id, dataset_id, case_id)

    @requires(Scope.WRITE)
    async def start_run(self, caller: Principal, plan: RunPlan) -> EvaluationRun:
        """Queue a run."""
        return await self.container.evaluation_runs.request_run(caller, plan)

    @requires(Scope.WRITE)
    async def estimate_run(self, caller: Principal, plan: RunPlan) -> RunEstimate:
        """Return the expected work of a run."""
        return await self.container.evaluation_runs.estimate_run(caller, plan)

    @requires(Scope.READ)
    async def list_runs(
        self, caller: Principal, *, limit: int, cursor: str | None = None, dataset_id: str | None = None
    ) -> Page[EvaluationRun]:
        """List runs, newest first."""
        runs = self.container.catalogue.evaluation_runs
        return await runs.runs(caller.tenant.id, limit=limit, cursor=cursor, dataset_id=dataset_id)

    @requires(Scope.READ)
    async def get_run(self, caller: Principal, run_id: str, *, baseline: str | None = None) -> EvaluationRun:
        """Return a run with its result, compared with another run if ``baseline`` names one."""
        return await self.container.evaluation_runs.read_run(caller.tenant.id, run_id, baseline_id=baseline)

    @requires(Scope.READ)
    async def list_outcomes(self, caller: Principal, run_id: str, *, limit: int, cursor: str | None = None) -> Page[CaseOutcome]:
        """List the outcomes of a run's questions."""
        runs = self.container.catalogue.evaluation_runs
        return await runs.outcomes(caller.tenant.id, run_id, limit=limit, cursor=cursor)

    @requires(Scope.WRITE)
    async def delete_run(self, caller: Principal, run_id: str) -> None:
        """Delete a run with its outcomes."""
        await self.container.catalogue.evaluation_runs.delete(caller.tenant.id, run_id)
