"""Tuning of a tenant's values: proposals with evidence, made by a job; their acceptance and their rollback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from agentic_rag_backend.domain.evaluation import EvaluationCase
from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.domain.tenant import Principal, TenantId
from agentic_rag_backend.domain.tuning import (
    MAX_TUNING_CASES,
    MAX_TUNING_DATASETS,
    CaseScores,
    Parameter,
    Proposal,
    TunedValues,
    TuningPlan,
)
from agentic_rag_backend.errors import Conflict, FeatureDisabled, InvalidRequest
from agentic_rag_backend.evaluation.gold import EvidenceFinder
from agentic_rag_backend.evaluation.tuning.candidate_scores import CandidateMeasurer
from agentic_rag_backend.evaluation.tuning.candidates import list_candidates, with_choice
from agentic_rag_backend.evaluation.tuning.confidence_learning import collect_ratings, learn_confidence
from agentic_rag_backend.evaluation.tuning.learning import ParameterEvidence, ScoredCase, is_learned_from, learn_parameter
from agentic_rag_backend.evaluation.tuning.tuning_cases import (
    TuningCases,
    collect_cases,
    describe_counts,
    read_feedback,
)
from agentic_rag_backend.jobs.coordination.slots import lend_places
from agentic_rag_backend.jobs.coordination.tenant_locks import TenantLock
from agentic_rag_backend.jobs.queue.job_queue import JobQueue
from agentic_rag_backend.jobs.runner import Run, Runner
from agentic_rag_backend.language.questions.kinds import asked_for
from agentic_rag_backend.retrieval.strategies.dual_level import SWITCHED_OFF
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.tenancy.service import TenantService

WORKFLOW = "tune_v1"
_PAGE = 200
_MEASURE, _LEARN = "measure", "learn"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuringConditions:
    """What a proposal is measured with, and must be accepted with: the embedder, and values that are not tuned."""

    embedder: str
    dual_level: bool
    low_weight: float
    auto_weights: bool
    dense_weight: float
    low_strategy: str


DescribeConditions = Callable[[Principal], MeasuringConditions]


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningEstimate:
    """The expected work of a proposal. ``counts`` are the cases by origin and half."""

    counts: Mapping[str, Any]
    parameters: tuple[Parameter, ...]
    searches: int


@dataclass(frozen=True, slots=True)
class Acceptance:
    """An accepted proposal, and warnings about it."""

    proposal: Proposal
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningParts:
    """What tuning uses. ``conditions`` describes a caller's values that are not tuned."""

    catalogue: Catalogue
    tenants: TenantService
    measurer: CandidateMeasurer
    search_text: Callable[[Principal, str], Any]
    conditions: DescribeConditions


class TuningService:
    """Requests, makes, accepts and rolls back proposals. `tune` is the workflow ``tune_v1``.

    The scores of each case are recorded as soon as they are measured. A job that was interrupted measures only the other ones.
    """

    def __init__(self, parts: TuningParts, queue: JobQueue, runner: Runner) -> None:
        self._parts = parts
        self._proposals = parts.catalogue.tuning
        self._queue = queue
        self._runner = runner

    async def request_proposal(self, caller: Principal, plan: TuningPlan, datasets: Sequence[str] | None) -> Proposal:
        """Queue a proposal.

        Args:
            datasets: ids; None: all of the tenant's.

        Raises:
            NotFound: a dataset does not exist.
            InvalidRequest: there are no cases, or too many.
            FeatureDisabled: the weights of the levels are named, and dual-level retrieval is disabled.
        """
        plan = await self._complete(caller, plan, datasets)
        return await self._proposals.create(caller.tenant.id, plan, self._queue.enqueuer(WORKFLOW))

    async def estimate_proposal(self, caller: Principal, plan: TuningPlan, datasets: Sequence[str] | None) -> TuningEstimate:
        """Return the cases and the expected work of a proposal without a search.

        Raises:
            NotFound, InvalidRequest, FeatureDisabled: as `request_proposal`.
        """
        plan = await self._complete(caller, plan, datasets)
        collected = await collect_cases(self._parts.catalogue, caller.tenant.id, plan)
        counts = describe_counts(collected, halves=_count_halves(collected.cases, plan.seed))
        searches = sum(_count_searches(parameter, caller.tenant.tuned) for parameter in plan.parameters)
        return TuningEstimate(counts=counts, parameters=plan.parameters, searches=searches * len(collected.cases))

    async def _complete(self, caller: Principal, plan: TuningPlan, datasets: Sequence[str] | None) -> TuningPlan:
        tenant, catalogue, dual_level = caller.tenant.id, self._parts.catalogue, self._parts.conditions(caller).dual_level
        if Parameter.LEVEL_WEIGHTS in plan.parameters and not dual_level:
            raise FeatureDisabled(SWITCHED_OFF)
        if Parameter.CONFIDENCE in plan.parameters and not plan.feedback:
            raise InvalidRequest("the confidence is learned from rated answers: set `feedback`", field="parameters")
        usable = {Parameter.LEVEL_WEIGHTS: dual_level, Parameter.CONFIDENCE: plan.feedback}
        default = tuple(parameter for parameter in Parameter if usable.get(parameter, True))
        if datasets is None:
            page = await catalogue.datasets.datasets(tenant, limit=MAX_TUNING_DATASETS + 1)
            datasets = [dataset.id for dataset in page.items if dataset.case_count]
        datasets = list(dict.fromkeys(datasets))
        if len(datasets) > MAX_TUNING_DATASETS:
            raise InvalidRequest(
                f"tuning reads at most {MAX_TUNING_DATASETS} datasets; name them in `datasets`", field="datasets"
            )
        chosen = [await catalogue.datasets.dataset(tenant, dataset_id) for dataset_id in datasets]
        count = sum(dataset.case_count for dataset in chosen)
        if count > MAX_TUNING_CASES:
            raise InvalidRequest(f"tuning reads at most {MAX_TUNING_CASES} cases; the datasets have {count}", field="datasets")
        if not count and not plan.feedback:
            raise InvalidRequest("there are no cases to learn from: create a dataset, or set `feedback`", field="datasets")
        return replace(
            plan,
            datasets=tuple((dataset.id, dataset.version) for dataset in chosen if dataset.case_count),
            parameters=plan.parameters or default,
        )

    async def accept_proposal(self, caller: Principal, proposal_id: str) -> Acceptance:
        """Use the proposed values for the tenant. If documents changed since the measuring, there is a warning.

        Raises:
            NotFound: there is no such proposal.
            Conflict: it proposes nothing, or was measured with other values or another embedder.
        """
        proposal = await self._proposals.proposal(caller.tenant.id, proposal_id)
        if proposal.result is not None:
            measured, current = proposal.result["conditions"], asdict(self._parts.conditions(caller))
            differing = [name for name, value in current.items() if measured[name] != value]
            if differing:
                changes = "; ".join(f"{name} was {measured[name]!r} and is {current[name]!r}" for name in differing)
                raise Conflict(f"proposal {proposal_id!r} was measured with other values: {changes}. Tune again")
        accepted, documents_changed = await self._proposals.accept_values(caller.tenant.id, proposal_id, caller.key_id)
        warning = "documents changed since the proposal was measured; its evidence is about the documents of that time"
        return Acceptance(accepted, (warning,) if documents_changed else ())

    async def roll_back(self, caller: Principal, proposal_id: str) -> Proposal:
        """Restore the values before an acceptance; see `TuningCatalogue.roll_back`."""
        return await self._proposals.roll_back(caller.tenant.id, proposal_id, caller.key_id)

    # --- the job

    async def tune(self, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Workflow: measure what was not measured yet, learn, and finish. Idempotent."""
        await self._runner.run_job(tenant, job_id, attempt, self._run_job)

    async def _run_job(self, run: Run) -> None:
        proposal = await self._proposals.proposal(run.tenant, str(run.job.arguments["proposal_id"]))
        # As an evaluation run, it takes long: it must not keep documents waiting, nor run beside the tenant's runs.
        async with lend_places():
            result, values = await run.run_until_cancellation(self._measure_alone(run, proposal))
        await self._proposals.save_result(run.tenant, proposal.id, result, values)
        summary = {"proposal_id": proposal.id, "improves": values is not None, "values": result["values"]}
        await run.finish(JobState.SUCCEEDED, result=summary)

    async def _measure_alone(self, run: Run, proposal: Proposal) -> tuple[dict[str, Any], TunedValues | None]:
        async with self._queue.tenant_lock(TenantLock.EVALUATE, run.tenant):
            return await self._make_result(run, proposal)

    async def _make_result(self, run: Run, proposal: Proposal) -> tuple[dict[str, Any], TunedValues | None]:
        plan, caller = proposal.plan, await self._parts.tenants.act_for(run.tenant)
        caller = replace(caller, tenant=replace(caller.tenant, tuned=proposal.base))
        conditions = self._parts.conditions(caller)
        collected = await collect_cases(self._parts.catalogue, run.tenant, plan)
        scores = await self._read_scores(run.tenant, proposal.id)
        unfound = await self._measure_cases(run, proposal, caller, collected, scores)
        await run.report_progress(_LEARN, run.total, run.total, at_once=True)
        measured = {case_id: case for case_id, case in collected.cases.items() if case_id not in unfound}
        findings, values = [], proposal.base
        for parameter in plan.parameters:
            if parameter is Parameter.CONFIDENCE:
                ratings = await collect_ratings(read_feedback(self._parts.catalogue.feedback, run.tenant))
                learn = partial(learn_confidence, ratings, seed=plan.seed, in_use=proposal.base.confidence)
            else:
                share = _share_in_use(parameter, proposal.base, conditions)
                cases = _score_cases(measured, {case_id: scores[case_id, parameter] for case_id in measured}, plan.seed)
                learn = partial(learn_parameter, parameter, cases, share=share)
            finding = await asyncio.to_thread(learn)
            findings.append(finding)
            if finding.choice is not None:
                values = with_choice(parameter, values, finding.choice)
        changed = (await self._parts.tenants.get(run.tenant)).state_version != caller.tenant.state_version
        result = {
            "cases": describe_counts(collected, halves=_count_halves(measured, plan.seed), unfound=len(unfound)),
            "metric": f"{plan.metric}@{plan.k}",
            "conditions": asdict(conditions),
            "values_before": _describe_values(proposal.base, conditions),
            "values": None if values == proposal.base else values.describe(),
            "parameters": [_describe_finding(finding) for finding in findings],
            "warnings": ["the tenant's documents or settings changed during the measuring"] if changed else [],
        }
        return result, None if values == proposal.base else values

    async def _read_scores(self, tenant: TenantId, proposal_id: str) -> dict[tuple[str, Parameter], Mapping[str, float]]:
        scores: dict[tuple[str, Parameter], Mapping[str, float]] = {}
        cursor: str | None = None
        while True:
            page = await self._proposals.scores(tenant, proposal_id, limit=_PAGE, cursor=cursor)
            scores |= {(item.case_id, item.parameter): item.scores for item in page.items}
            cursor = page.next_cursor
            if cursor is None:
                return scores

    async def _measure_cases(
        self,
        run: Run,
        proposal: Proposal,
        caller: Principal,
        collected: TuningCases,
        scores: dict[tuple[str, Parameter], Mapping[str, float]],
    ) -> set[str]:
        """Add the missing scores, and return the ids of cases whose evidence no visible document has."""
        # The confidence is learned from ratings, without a search.
        parameters = [parameter for parameter in proposal.plan.parameters if parameter is not Parameter.CONFIDENCE]
        unfound = set[str]()
        finder = EvidenceFinder(self._parts.catalogue.documents, run.tenant, lambda text: self._parts.search_text(caller, text))
        for number, (case_id, case) in enumerate(collected.cases.items()):
            await run.report_progress(_MEASURE, number, len(collected.cases))
            unmeasured = [parameter for parameter in parameters if (case_id, parameter) not in scores]
            if not unmeasured:
                continue
            evidence = await finder.find(case)
            if all(item.missing for item in evidence):
                unfound.add(case_id)
                continue
            for parameter in unmeasured:
                measured = await self._parts.measurer.measure_case(caller, proposal.plan, parameter, case, evidence)
                await self._proposals.save_scores(
                    run.tenant, proposal.id, CaseScores(case_id=case_id, parameter=parameter, scores=measured)
                )
                scores[case_id, parameter] = measured
                await run.count_save()
        return unfound


def _score_cases(cases: Mapping[str, EvaluationCase], scores: Mapping[str, Mapping[str, float]], seed: int) -> list[ScoredCase]:
    return [
        ScoredCase(kind=asked_for(case.question).value, learns=is_learned_from(case_id, seed), scores=scores[case_id])
        for case_id, case in cases.items()
    ]


def _count_halves(case_ids: Mapping[str, Any], seed: int) -> dict[bool, int]:
    learning = sum(is_learned_from(case_id, seed) for case_id in case_ids)
    return {True: learning, False: len(case_ids) - learning}


def _count_searches(parameter: Parameter, base: TunedValues) -> int:
    if parameter is Parameter.CONFIDENCE:
        return 0
    return 1 if parameter is Parameter.LEVEL_WEIGHTS else len(list_candidates(parameter, base))


def _share_in_use(parameter: Parameter, base: TunedValues, conditions: MeasuringConditions) -> float:
    if parameter is Parameter.LEVEL_WEIGHTS:
        return conditions.low_weight if base.low_weight is None else base.low_weight
    return conditions.dense_weight if base.dense_weight is None else base.dense_weight


def _describe_values(base: TunedValues, conditions: MeasuringConditions) -> dict[str, Any]:
    """Return the values in use by parameter. Kinds of questions without a tuned strategy are not named."""
    low, dense = (_share_in_use(of, base, conditions) for of in (Parameter.LEVEL_WEIGHTS, Parameter.HYBRID_WEIGHTS))
    return replace(base, low_weight=low, dense_weight=dense).describe()


def _describe_finding(finding: ParameterEvidence) -> dict[str, Any]:
    return {
        "parameter": finding.parameter.value,
        "improves": finding.choice is not None,
        "reason": finding.reason,
        **finding.evidence,
    }
