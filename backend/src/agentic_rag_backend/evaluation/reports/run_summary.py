"""The summary of a run: metrics of each configuration with intervals, by kind and tag, and paired differences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from agentic_rag_backend.domain.evaluation import CaseOutcome, PairVerdict
from agentic_rag_backend.evaluation.case_measures import TOTAL
from agentic_rag_backend.evaluation.estimate_metrics import auroc, calibration_error
from agentic_rag_backend.evaluation.ranking_metrics import find_percentile
from agentic_rag_backend.evaluation.reports.intervals import MeanEstimate, estimate_mean, permutation_p
from agentic_rag_backend.evaluation.result_diversity import Distinct

MAX_SLICES = 50
"""Tags, and kinds, that are reported: those with the most cases."""

Outcomes = Sequence[CaseOutcome]


def summarise_outcomes(outcomes: Outcomes, names: Sequence[str]) -> dict[str, Any]:
    """Return the summary of a run as JSON values: ``configurations`` in the order of ``names``, and ``differences``."""
    by_name = _group_by_name(outcomes)
    return {
        "configurations": [{"name": name, **_summarise(by_name[name])} for name in names],
        "differences": list_differences(outcomes, names),
    }


def _group_by_name(outcomes: Outcomes) -> dict[str, list[CaseOutcome]]:
    by_name: dict[str, list[CaseOutcome]] = defaultdict(list)
    for outcome in outcomes:
        by_name[outcome.configuration].append(outcome)
    return by_name


def list_differences(outcomes: Outcomes, names: Sequence[str], baseline: Outcomes = ()) -> list[dict[str, Any]]:
    """Return the differences of the configurations ``names`` of a run from a baseline.

    Args:
        baseline: outcomes of another run, with which every configuration is compared: with the one of its name, otherwise with
            the first. Without it, the other configurations are compared with the first one of the run.
    """
    by_name, references = _group_by_name(outcomes), _group_by_name(baseline)
    differences: list[dict[str, Any]] = []
    for name in names:
        if references:
            reference = name if name in references else next(iter(references))
            differences += compare_outcomes(by_name[name], references[reference], f"{reference} (baseline run)")
        elif name != names[0]:
            differences += compare_outcomes(by_name[name], by_name[names[0]], names[0])
    return differences


def compare_outcomes(outcomes: Outcomes, baseline: Outcomes, baseline_name: str) -> list[dict[str, Any]]:
    """Return the difference of each metric on the cases that both have: value, interval, and p of a permutation test."""
    reference = {outcome.case_id: _metrics_of(outcome) for outcome in baseline}
    pairs: dict[str, list[float]] = defaultdict(list)
    for outcome in outcomes:
        other_metrics = reference.get(outcome.case_id, {})
        for metric, value in _metrics_of(outcome).items():
            if metric in other_metrics:
                pairs[metric].append(value - other_metrics[metric])
    rows = []
    for metric, differences in pairs.items():
        values = np.array(differences)
        row = {"configuration": outcomes[0].configuration, "baseline": baseline_name, "metric": metric}
        rows.append({**row, **estimate_mean(values).as_result(), "p": round(permutation_p(values), 6)})
    return rows


def _metrics_of(outcome: CaseOutcome) -> dict[str, float]:
    """Return the measures that are averaged, with time, tokens and cost. A case with an error has only those of its evidence."""
    if outcome.error is not None:
        return dict(outcome.measures)
    metrics = {**outcome.measures, "latency_ms": outcome.times_ms.get(TOTAL, 0.0)}
    if outcome.calls:
        metrics["tokens"] = float(outcome.prompt_tokens + outcome.completion_tokens)
        metrics |= {"cost": outcome.cost} if outcome.cost is not None else {}
    return metrics


def _summarise(outcomes: Outcomes) -> dict[str, Any]:
    return {
        "cases": len(outcomes),
        "errors": _count_errors(outcomes),
        "metrics": {name: estimate.as_result() for name, estimate in _estimate_metrics(outcomes).items()},
        "latency_ms": _summarise_times(outcomes),
        "calibration": _summarise_calibration(outcomes),
        "diversity": _measure_diversity(outcomes),
        "usage": {
            "prompt_tokens": sum(outcome.prompt_tokens for outcome in outcomes),
            "completion_tokens": sum(outcome.completion_tokens for outcome in outcomes),
            "calls": sum(outcome.calls for outcome in outcomes),
            "cost": sum_costs(outcomes),
        },
        "slices": {
            "kind": _summarise_slices(outcomes, lambda outcome: (outcome.kind,) if outcome.kind else ()),
            "tag": _summarise_slices(outcomes, lambda outcome: outcome.tags),
        },
    }


def sum_costs(parts: Sequence[CaseOutcome | PairVerdict]) -> float | None:
    """Return the cost of all calls; 0 without calls. None: that of a call is not known."""
    costs = [part.cost for part in parts if part.calls]
    return None if None in costs else round(sum(filter(None, costs)), 9)


def _count_errors(outcomes: Outcomes) -> dict[str, int]:
    codes: defaultdict[str, int] = defaultdict(int)
    for outcome in outcomes:
        if outcome.error is not None:
            codes[outcome.error] += 1
    return dict(codes)


def _estimate_metrics(outcomes: Outcomes) -> dict[str, MeanEstimate]:
    values: dict[str, list[float]] = defaultdict(list)
    for outcome in outcomes:
        for metric, value in _metrics_of(outcome).items():
            values[metric].append(value)
    return {metric: estimate_mean(np.array(numbers)) for metric, numbers in values.items()}


def _summarise_times(outcomes: Outcomes) -> dict[str, dict[str, float]]:
    times: dict[str, list[float]] = defaultdict(list)
    for outcome in outcomes:
        for stage, milliseconds in outcome.times_ms.items():
            times[stage].append(milliseconds)
    shares = {"p50": 0.5, "p95": 0.95}
    return {
        stage: {name: round(find_percentile(values, share), 2) for name, share in shares.items()}
        for stage, values in times.items()
    }


def _summarise_calibration(outcomes: Outcomes) -> dict[str, Any] | None:
    """Return how well the confidence separates right answers from wrong ones and refusals. None without both.

    A refusal is no right answer here, also to an unanswerable question: its confidence is the chance of an answer.
    """
    judged = [
        (outcome.confidence, outcome.measures["correct"] == 1.0 and "refused_unanswerable" not in outcome.measures)
        for outcome in outcomes
        if outcome.confidence is not None and "correct" in outcome.measures
    ]
    right, wrong = ([confidence for confidence, is_right in judged if is_right is truth] for truth in (True, False))
    if not right or not wrong:
        return None
    error = calibration_error([confidence for confidence, _ in judged], [is_right for _, is_right in judged])
    return {"auroc": round(auroc(right, wrong), 6), "ece": round(error, 6), "count": len(judged)}


def _measure_diversity(outcomes: Outcomes) -> dict[str, Any]:
    """Return how many distinct documents the results of all questions have."""
    places = [document for outcome in outcomes for document in outcome.documents]
    return Distinct(distinct=len(set(places)), places=len(places)).as_result()


def _summarise_slices(outcomes: Outcomes, labels_of: Callable[[CaseOutcome], Sequence[str]]) -> dict[str, Any]:
    members: dict[str, list[CaseOutcome]] = defaultdict(list)
    for outcome in outcomes:
        for label in labels_of(outcome):
            members[label].append(outcome)
    largest = sorted(members.items(), key=lambda item: (-len(item[1]), item[0]))[:MAX_SLICES]
    return {label: _describe_slice(part) for label, part in sorted(largest)}


def _describe_slice(outcomes: Outcomes) -> Mapping[str, Any]:
    metrics = {name: estimate.as_result() for name, estimate in _estimate_metrics(outcomes).items()}
    return {"cases": len(outcomes), "metrics": metrics}
