"""Runs: jobs that ask every case of a dataset in every configuration, and summarise the outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from dataclasses import fields as dataclass_fields
from math import ceil
from typing import Any

from agentic_rag_backend.domain.asked_questions import RatingCounts
from agentic_rag_backend.domain.evaluation import (
    MAX_OUTCOMES,
    CaseOutcome,
    Dataset,
    EvaluationCase,
    EvaluationRun,
    PairVerdict,
    RunPlan,
)
from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.domain.tenant import Principal, TenantId
from agentic_rag_backend.domain.usage import NANOS, Usage
from agentic_rag_backend.errors import Conflict, InvalidRequest, in_field
from agentic_rag_backend.evaluation.pair_judge import PairJudge, largest_comparison
from agentic_rag_backend.evaluation.question_asking import Asker, check_names
from agentic_rag_backend.evaluation.question_loop import QuestionLoop
from agentic_rag_backend.evaluation.reports.judge_summary import summarise_verdicts
from agentic_rag_backend.evaluation.reports.run_summary import list_differences, summarise_outcomes
from agentic_rag_backend.fairness import current_actor
from agentic_rag_backend.jobs.coordination.slots import lend_places
from agentic_rag_backend.jobs.coordination.tenant_locks import TenantLock
from agentic_rag_backend.jobs.queue.job_queue import JobQueue
from agentic_rag_backend.jobs.runner import Run, Runner
from agentic_rag_backend.models.llm.base import LanguageModel
from agentic_rag_backend.stores.catalogue.base import Catalogue, Page
from agentic_rag_backend.tenancy.service import TenantService

WORKFLOW = "evaluate_v1"
_PAGE = 200
_EARLIER_RUNS = 20
"""Runs whose token counts serve as estimates."""
_SUMMARISE = "summarise"


@dataclass(frozen=True, slots=True)
class TokenLimits:
    """The language model, and limits of an answer's tokens. ``concurrency`` is the number of questions that are asked at once."""

    model: str
    generative: bool
    prompt_tokens: int
    completion_tokens: int

    @property
    def largest_call(self) -> Usage:
        """One call with the largest prompt and reply."""
        return current_actor().prices.price_usage(self.model, Usage(self.prompt_tokens, self.completion_tokens, calls=1))

    @property
    def concurrency(self) -> int:
        """Questions that wait for a model can wait together. Otherwise one at a time, so that times are comparable."""
        return 4 if self.generative else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEstimate:
    """The expected work of a run. With the ``basis`` ``limits``, the tokens are those of one call with the largest prompt.

    ``cost`` is None if the price of the model is unknown.
    """

    cases: int
    configurations: int
    questions: int
    comparisons: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    basis: str


class EvaluationRuns:
    """Requests, runs, summarises and compares runs. `evaluate` is the workflow ``evaluate_v1``.

    The outcome of each question is recorded as soon as it is measured. A run that was interrupted asks only the other ones.

    Args:
        tenants: returns the caller that a run acts as.
        limits: of the model's tokens, for estimates.
        model: judges answers, if a run asks for it.
    """

    def __init__(
        self,
        *,
        catalogue: Catalogue,
        tenants: TenantService,
        asker: Asker,
        queue: JobQueue,
        runner: Runner,
        limits: TokenLimits,
        model: LanguageModel,
    ) -> None:
        self._runs = catalogue.evaluation_runs
        self._datasets = catalogue.datasets
        self._documents = catalogue.documents
        self._tenants = tenants
        self._asker = asker
        self._queue = queue
        self._runner = runner
        self._limits = limits
        self._model = model

    async def request_run(self, caller: Principal, plan: RunPlan) -> EvaluationRun:
        """Check a plan and queue its run. ``dataset_version`` 0 stands for the dataset's current version.

        Raises:
            NotFound: there is no such dataset or version.
            InvalidRequest: the dataset has no cases, a configuration is invalid, or the run has too many questions.
        """
        return await self._runs.create(caller.tenant.id, await self._complete(caller, plan), self._queue.enqueuer(WORKFLOW))

    async def estimate_run(self, caller: Principal, plan: RunPlan) -> RunEstimate:
        """Return the expected work of a run without asking anything.

        Raises:
            NotFound, InvalidRequest: as `request_run`.
        """
        plan = await self._complete(caller, plan)
        cases = await self._count_cases(caller.tenant.id, plan)
        earlier_runs = (await self._runs.runs(caller.tenant.id, limit=_EARLIER_RUNS)).items
        total, bases = Usage(), set()
        for configuration in plan.configurations:
            measured = await self._find_earlier_usage(caller.tenant.id, earlier_runs, plan, configuration)
            if measured is not None:
                bases.add("earlier runs")
                total += _scale_usage(measured[0], cases / measured[1])
            elif self._limits.generative:
                bases.add("limits")
                total += _scale_usage(self._limits.largest_call if plan.answers else Usage(), cases)
        comparisons = cases * (len(plan.configurations) - 1) if plan.judge_model is not None else 0
        if comparisons:
            bases.add("limits")
            total += _scale_usage(self._price_comparison(plan.judge_model or ""), comparisons)
        return RunEstimate(
            cases=cases,
            configurations=len(plan.configurations),
            questions=cases * len(plan.configurations),
            comparisons=comparisons,
            prompt_tokens=total.prompt_tokens,
            completion_tokens=total.completion_tokens,
            cost=total.cost,
            basis=" and ".join(sorted(bases)) or "no model is called",
        )

    async def _complete(self, caller: Principal, plan: RunPlan) -> RunPlan:
        tenant = caller.tenant.id
        dataset = await self._datasets.dataset(tenant, plan.dataset_id)
        plan = replace(plan, dataset_version=plan.dataset_version or dataset.version)
        cases = await self._count_cases(tenant, plan)
        if not cases:
            raise InvalidRequest(f"version {plan.dataset_version} of dataset {dataset.name!r} has no cases")
        if cases * len(plan.configurations) > MAX_OUTCOMES:
            raise InvalidRequest(
                f"a run may ask at most {MAX_OUTCOMES} questions; {cases} cases in {len(plan.configurations)} configurations "
                f"are {cases * len(plan.configurations)}"
            )
        check_names(plan.configurations)
        self._check_judge(plan)
        if plan.judge_model == "":
            plan = replace(plan, judge_model=self._model.name)
        for configuration in plan.configurations:
            await self._asker.check_configuration(caller, configuration, k=plan.k)
        return plan

    def _check_judge(self, plan: RunPlan) -> None:
        if plan.judge_model is None:
            return
        with in_field("judge"):
            if not self._model.generative:
                raise InvalidRequest(f"a judge needs a language model; this server has none ({self._model.name})")
            if len(plan.configurations) == 1 or not plan.answers:
                raise InvalidRequest("a judge compares answers of configurations: give two or more, and a metric of answers")

    async def _count_cases(self, tenant: TenantId, plan: RunPlan) -> int:
        return await self._datasets.count_cases(tenant, plan.dataset_id, version=plan.dataset_version)

    def _price_comparison(self, model: str) -> Usage:
        return current_actor().prices.price_usage(model, largest_comparison(self._limits.completion_tokens))

    async def _find_earlier_usage(
        self, tenant: TenantId, earlier_runs: Sequence[EvaluationRun], plan: RunPlan, configuration: Mapping[str, Any]
    ) -> tuple[Usage, int] | None:
        """Return the usage of the newest of ``earlier_runs`` with an equal configuration, and its number of cases."""
        fields = {name: value for name, value in configuration.items() if name != "name"}
        for run in earlier_runs:
            names = {of["name"] for of in run.plan.configurations if {**of, "name": ""} == {**fields, "name": ""}}
            if not names or (run.plan.k, run.plan.answers) != (plan.k, plan.answers):
                continue
            result = (await self._runs.run(tenant, run.id)).result
            for of in result["configurations"] if result is not None else ():
                if of["name"] in names and of["cases"]:
                    return _read_usage(of["usage"]), of["cases"]
        return None

    async def read_run(self, tenant: TenantId, run_id: str, *, baseline_id: str | None = None) -> EvaluationRun:
        """Return a run. Its result has the ratings that users gave to answers to the questions of its dataset until now.

        Raises:
            NotFound, Conflict: as `compare_run`.
        """
        if baseline_id is None:
            run = await self._runs.run(tenant, run_id)
        else:
            run = await self.compare_run(tenant, run_id, baseline_id)
        if run.result is None:
            return run
        plan = run.plan
        ratings = await self._datasets.rate_questions(tenant, plan.dataset_id, version=plan.dataset_version)
        return replace(
            run, result={**run.result, "feedback": {"questions": len(ratings), **asdict(sum(ratings, RatingCounts()))}}
        )

    async def compare_run(self, tenant: TenantId, run_id: str, baseline_id: str) -> EvaluationRun:
        """Return a run whose differences are those from another run, on the cases that both have.

        Raises:
            NotFound: one of the runs does not exist.
            Conflict: one of the runs has no result yet, or they have no case in common.
        """
        run, baseline = await self._runs.run(tenant, run_id), await self._runs.run(tenant, baseline_id)
        for part in (run, baseline):
            if part.result is None:
                raise Conflict(f"run {part.id!r} is {part.state.value}; only runs with a result can be compared")
        outcomes, reference = [await self._read_measures(tenant, id) for id in (run_id, baseline_id)]
        if {outcome.case_id for outcome in outcomes}.isdisjoint(outcome.case_id for outcome in reference):
            raise Conflict(f"runs {run_id!r} and {baseline_id!r} have no case in common; compare runs over one dataset")
        names = [configuration["name"] for configuration in run.plan.configurations]
        differences = await asyncio.to_thread(list_differences, outcomes, names, reference)
        return replace(run, result={**(run.result or {}), "baseline": baseline_id, "differences": differences})

    # --- the job

    async def evaluate(self, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Workflow: ask what was not asked yet, summarise, and finish. Idempotent."""
        jobs = self._runner.jobs
        # The job stays queued while it waits for the tenant's other runs.
        run = await self._runner.begin_job(tenant, job_id, attempt, start=lambda: jobs.job(tenant, job_id))
        if run is not None:
            await self._runner.run_step(run, self._run_job)

    async def _run_job(self, run: Run) -> None:
        run_id = str(run.job.arguments["run_id"])
        plan = (await self._runs.run(run.tenant, run_id)).plan
        # A run takes hours. It must neither keep documents waiting, nor run beside the tenant's other runs.
        async with lend_places():
            result = await run.run_until_cancellation(self._ask_alone(run, run_id, plan))
        await self._runs.save_result(run.tenant, run_id, result)
        state = JobState.PARTIAL if result["reasons"] else JobState.SUCCEEDED
        counts = {name: result[name] for name in ("cases", "asked", "reasons")}
        await run.finish(state, result={"run_id": run_id, **counts})

    async def _ask_alone(self, run: Run, run_id: str, plan: RunPlan) -> dict[str, Any]:
        async with self._queue.tenant_lock(TenantLock.EVALUATE, run.tenant):
            await run.jobs.start(run.tenant, run.job.id)
            return await self._ask_all(run, run_id, plan)

    async def _ask_all(self, run: Run, run_id: str, plan: RunPlan) -> dict[str, Any]:
        tenant = run.tenant
        dataset = await self._datasets.dataset(tenant, plan.dataset_id)
        case_count = await self._count_cases(tenant, plan)
        caller = await self._tenants.act_for(tenant)
        loop = QuestionLoop(
            asker=self._asker,
            documents=self._documents,
            runs=self._runs,
            run=run,
            run_id=run_id,
            plan=plan,
            concurrency=self._limits.concurrency,
            judge=PairJudge(self._model, plan.judge_model) if plan.judge_model is not None else None,
        )
        async for verdicts in self._pages_of_verdicts(tenant, run_id):
            loop.verdicts.update({(verdict.case_id, verdict.configuration): verdict for verdict in verdicts})
        async for page in self._pages_of_outcomes(tenant, run_id):
            loop.keep_outcomes(page)
        outcomes, reasons = loop.outcomes, []
        async for cases in self._pages_of_cases(tenant, plan):
            reasons = await loop.ask_cases(caller, cases, case_count=case_count)
            if reasons:
                break
        changed = (await self._tenants.get(tenant)).state_version != caller.tenant.state_version
        await run.report_progress(_SUMMARISE, len(outcomes), case_count * len(plan.configurations), at_once=True)
        names = [configuration["name"] for configuration in plan.configurations]
        summary = await asyncio.to_thread(summarise_outcomes, list(outcomes.values()), names)
        judge_summary = await asyncio.to_thread(_summarise_judge, loop, names)
        return {
            "dataset": _describe_dataset(dataset, plan),
            "k": plan.k,
            "cases": case_count,
            "asked": len(outcomes),
            "reasons": reasons,
            "warnings": _list_warnings(outcomes.values(), changed=changed),
            "currency": current_actor().prices.currency,
            **summary,
            **judge_summary,
        }

    async def _pages_of_cases(self, tenant: TenantId, plan: RunPlan) -> AsyncIterator[Sequence[EvaluationCase]]:
        cursor: str | None = None
        while True:
            page = await self._datasets.cases(tenant, plan.dataset_id, limit=_PAGE, cursor=cursor, version=plan.dataset_version)
            yield page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    async def _pages_of_outcomes(self, tenant: TenantId, run_id: str) -> AsyncIterator[Sequence[CaseOutcome]]:
        cursor: str | None = None
        while True:
            page: Page[CaseOutcome] = await self._runs.outcomes(tenant, run_id, limit=_PAGE, cursor=cursor)
            yield page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    async def _pages_of_verdicts(self, tenant: TenantId, run_id: str) -> AsyncIterator[Sequence[PairVerdict]]:
        cursor: str | None = None
        while True:
            page: Page[PairVerdict] = await self._runs.verdicts(tenant, run_id, limit=_PAGE, cursor=cursor)
            yield page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    async def _read_measures(self, tenant: TenantId, run_id: str) -> list[CaseOutcome]:
        """Return the outcomes without their results, which would need hundreds of megabytes."""
        pages = self._pages_of_outcomes(tenant, run_id)
        return [replace(outcome, chunks=(), documents=()) async for page in pages for outcome in page]


def _summarise_judge(loop: QuestionLoop, names: Sequence[str]) -> dict[str, Any]:
    if loop.judge is None:
        return {}
    summary = summarise_verdicts(list(loop.verdicts.values()), names)
    return {"judge": {"model": loop.judge.name, "prompt": loop.judge.prompt_id, **summary}}


def _read_usage(usage: Mapping[str, Any]) -> Usage:
    """Return the usage of a run's result. Results of earlier releases have no cost."""
    cost = usage.get("cost")
    tokens = (usage["prompt_tokens"], usage["completion_tokens"], usage["calls"])
    return Usage(*tokens, cost_nanos=round((cost or 0) * NANOS), unpriced_calls=usage["calls"] if cost is None else 0)


def _scale_usage(usage: Usage, factor: float) -> Usage:
    """Return a usage times ``factor``. Calls without a price stay calls without a price."""
    return Usage(**{of.name: ceil(getattr(usage, of.name) * factor) for of in dataclass_fields(usage)})


def _list_warnings(outcomes: Iterable[CaseOutcome], *, changed: bool) -> list[str]:
    warnings = ["documents changed during the run, so its cases saw different documents"] if changed else []
    incomplete = {outcome.case_id for outcome in outcomes if outcome.gold_missing}
    if incomplete:
        warnings.append(
            f"{len(incomplete)} cases have evidence that no visible document has; their results are measured without it"
        )
    return warnings


def _describe_dataset(dataset: Dataset, plan: RunPlan) -> dict[str, Any]:
    return {"id": dataset.id, "name": dataset.name, "version": plan.dataset_version}
