"""Runs experiments: assigns questions to configurations, records outcomes without slowing answers, and ends by the rule."""

from __future__ import annotations

import asyncio
import math
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agentic_rag_backend.domain.experiments import (
    ActiveExperiment,
    Experiment,
    ExperimentMetric,
    ExperimentOutcome,
    MeasureSums,
    QuestionAssignment,
    StoppingRule,
    Sums,
)
from agentic_rag_backend.domain.tenant import Principal, TenantId
from agentic_rag_backend.errors import NotFound, StoreUnavailable
from agentic_rag_backend.evaluation.experiments.sequential import SequentialDifference, compare_means
from agentic_rag_backend.evaluation.question_asking import Asker, check_names
from agentic_rag_backend.stores.catalogue.base import ExperimentCatalogue
from agentic_rag_backend.telemetry.logs import get_logger

WRITTEN_EVERY_S = 1.0
"""Seconds between two writes of outcomes."""
_MAX_WAITING = 10_000
"""Outcomes that wait for a catalogue that does not answer. Older ones are dropped."""
_K = 5
_MOST = 50.0
"""Logarithm above which a ratio says nothing."""
_NO_CASES = Sums(count=0, total=0.0, squares=0.0)
_LOGARITHMIC = (ExperimentMetric.LATENCY, ExperimentMetric.TOKENS)
_LESS_IS_BETTER = (ExperimentMetric.REFUSED, *_LOGARITHMIC)

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    """An experiment with its figures as JSON values."""

    experiment: Experiment
    result: Mapping[str, Any]


class ExperimentService:
    """Starts, measures and ends experiments. The rule may be applied by every process at any time."""

    def __init__(self, catalogue: ExperimentCatalogue, asker: Asker) -> None:
        self._catalogue = catalogue
        self._asker = asker
        self._waiting: list[tuple[TenantId, ExperimentOutcome]] = []
        self._writing = asyncio.Lock()

    async def start(
        self, caller: Principal, name: str, configurations: Sequence[Mapping[str, Any]], *, share: float, rule: StoppingRule
    ) -> Experiment:
        """Start an experiment.

        Raises:
            InvalidRequest: a configuration is invalid, or both have the same name.
            FeatureDisabled: a configuration has the strategy dual_level, which is disabled.
            Conflict: another experiment runs.
        """
        check_names(configurations)
        for configuration in configurations:
            await self._asker.check_configuration(caller, configuration, k=_K)
        active = ActiveExperiment(id=str(uuid.uuid4()), name=name, configurations=tuple(configurations), share=share, rule=rule)
        return await self._catalogue.start_experiment(caller.tenant.id, active, caller.key_id)

    def record(
        self,
        tenant: TenantId,
        assignment: QuestionAssignment,
        *,
        latency_ms: float,
        tokens: int,
        refused: bool | None = None,
        answer_id: str | None = None,
    ) -> None:
        """Record what a request cost. It is written later."""
        outcome = ExperimentOutcome(
            experiment_id=assignment.experiment.id,
            unit=assignment.unit,
            configuration=str(assignment.configuration["name"]),
            latency_ms=latency_ms,
            tokens=tokens,
            created_at=datetime.now(UTC),
            refused=refused,
            answer_id=answer_id,
        )
        self._waiting.append((tenant, outcome))
        del self._waiting[:-_MAX_WAITING]

    async def run(self) -> None:
        """Write outcomes and apply the rules at intervals, until the task is cancelled."""
        while True:
            await asyncio.sleep(WRITTEN_EVERY_S)
            await self.write_outcomes()

    async def write_outcomes(self) -> None:
        """Write the outcomes that wait, also those that another task is writing. If that fails, they wait on."""
        # If the caller is cancelled, the outcomes would otherwise be lost between memory and the catalogue.
        await asyncio.shield(self._write_waiting())

    async def _write_waiting(self) -> None:
        async with self._writing:
            waiting, self._waiting = self._waiting, []
            by_tenant: dict[TenantId, list[ExperimentOutcome]] = defaultdict(list)
            for tenant, outcome in waiting:
                by_tenant[tenant].append(outcome)
            for tenant, outcomes in by_tenant.items():
                try:
                    await self._catalogue.save_outcomes(tenant, outcomes)
                    for experiment_id in {outcome.experiment_id for outcome in outcomes}:
                        await self._apply_rule(tenant, experiment_id)
                except StoreUnavailable as error:
                    self._waiting = [*((tenant, outcome) for outcome in outcomes), *self._waiting][-_MAX_WAITING:]
                    _log.warning("outcomes_not_recorded", code=error.code, reason=error.message, rows=len(outcomes))
                except NotFound:
                    _log.info("outcomes_dropped", tenant_id=tenant.value, rows=len(outcomes))  # tenant or experiment is deleted

    async def read_result(self, tenant: TenantId, experiment_id: str) -> ExperimentResult:
        """Return an experiment with the figures until now, after the rule was applied.

        Raises:
            NotFound: there is no such experiment.
        """
        await self.write_outcomes()
        experiment, sums = await self._apply_rule(tenant, experiment_id)
        return ExperimentResult(experiment, describe_result(experiment.active, sums))

    async def _apply_rule(self, tenant: TenantId, experiment_id: str) -> tuple[Experiment, MeasureSums]:
        experiment = await self._catalogue.experiment(tenant, experiment_id)
        sums = await self._catalogue.sums(tenant, experiment_id)
        because = find_reason(experiment.active, sums) if experiment.stopped_at is None else None
        if because is not None:
            experiment = await self._catalogue.stop_experiment(tenant, experiment_id, because=because)
            _log.info("experiment_stopped", tenant_id=tenant.value, experiment=experiment_id, because=because)
        return experiment, sums


def find_reason(active: ActiveExperiment, sums: MeasureSums) -> str | None:
    """Return why an experiment ends: ``p`` or ``cases``; None: it goes on."""
    baseline, variant = (_sums_of(sums, of["name"], active.rule.metric) for of in active.configurations)
    compared = compare_means(baseline, variant, alpha=active.rule.p)
    if compared is not None and compared.p <= active.rule.p:
        return "p"
    cases = sum(_sums_of(sums, of["name"], ExperimentMetric.LATENCY).count for of in active.configurations)
    return "cases" if cases >= active.rule.cases else None


def _sums_of(sums: MeasureSums, name: str, metric: ExperimentMetric) -> Sums:
    return sums.get(name, {}).get(metric, _NO_CASES)


def describe_result(active: ActiveExperiment, sums: MeasureSums) -> dict[str, Any]:
    """Return the figures of each configuration, and the differences of the second from the first, as JSON values.

    Means of times and tokens are geometric, and their differences are ratios. ``better`` is the configuration that the metric of
    the rule prefers with its p; None: neither.
    """
    names = [str(of["name"]) for of in active.configurations]
    figures = [
        {
            "name": name,
            "cases": _sums_of(sums, name, ExperimentMetric.LATENCY).count,
            "metrics": {metric.value: _describe_mean(metric, _sums_of(sums, name, metric)) for metric in ExperimentMetric},
        }
        for name in names
    ]
    differences, better = [], None
    for metric in ExperimentMetric:
        compared = compare_means(*(_sums_of(sums, name, metric) for name in names), alpha=active.rule.p)
        if compared is None:
            continue
        differences.append(_describe_difference(metric, compared))
        if metric is active.rule.metric and compared.p <= active.rule.p:
            better = names[(compared.value > 0) is not (metric in _LESS_IS_BETTER)]
    return {"configurations": figures, "differences": differences, "level": 1 - active.rule.p, "better": better}


def _describe_mean(metric: ExperimentMetric, sums: Sums) -> dict[str, Any]:
    mean = sums.total / sums.count if sums.count else None
    return {"value": None if mean is None else round(_to_scale(metric, mean), 6), "count": sums.count}


def _to_scale(metric: ExperimentMetric, mean: float) -> float:
    """Return a mean in the unit of the metric."""
    if metric is ExperimentMetric.TOKENS:
        return math.expm1(mean)
    return math.exp(mean) if metric is ExperimentMetric.LATENCY else mean


def _describe_difference(metric: ExperimentMetric, compared: SequentialDifference) -> dict[str, Any]:
    scale = math.exp if metric in _LOGARITHMIC else float
    return {
        "metric": metric.value,
        "kind": "ratio" if metric in _LOGARITHMIC else "difference",
        "value": round(scale(compared.value), 6),
        "interval": None if compared.interval is None else [round(scale(min(bound, _MOST)), 6) for bound in compared.interval],
        "p": round(compared.p, 6),
    }
