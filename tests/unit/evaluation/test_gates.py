"""Gates: their form, and a planted worse configuration fails while an equal one passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from agentic_rag_backend.domain.evaluation import CaseOutcome
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.evaluation.reports.gates import check_gate, parse_gate
from agentic_rag_backend.evaluation.reports.run_summary import summarise_outcomes

REPETITIONS = 20
CASES = 150


def planted(random: np.random.Generator, loss: float) -> dict[str, Any]:
    """Return a run of two configurations whose recalls differ by chance, and by ``loss`` on average.

    The cases have difficulties that both configurations share, so that the outcomes of a case are similar.
    """
    difficulty = random.beta(2, 1, CASES)
    outcomes = [
        CaseOutcome(configuration=name, case_id=str(case), measures={"recall@5": float(random.random() < chance - less)})
        for name, less in (("base", 0.0), ("changed", loss))
        for case, chance in enumerate(difficulty)
    ]
    return summarise_outcomes(outcomes, ["base", "changed"])


def test_a_worse_configuration_fails_and_an_equal_one_passes() -> None:
    gate, random = parse_gate("recall@5 < baseline - 0.02"), np.random.default_rng(36)
    false_alarms = sum(bool(check_gate(gate, planted(random, 0.0))) for _ in range(REPETITIONS))
    noticed = sum(bool(check_gate(gate, planted(random, 0.3))) for _ in range(REPETITIONS))
    assert false_alarms <= 1
    assert noticed == REPETITIONS


def test_a_gate_fails_only_if_the_interval_excludes_the_bound() -> None:
    row = {"configuration": "b", "baseline": "a", "metric": "recall@5", "value": -0.1, "interval": [-0.2, -0.05], "p": 0.01}
    metrics = {"recall@5": {"value": 0.5, "interval": [0.4, 0.6], "count": 9}}
    result = {"differences": [row], "configurations": [{"name": "b", "metrics": metrics}]}
    for text, fails in (
        ("recall@5 < baseline - 0.02", True),
        ("recall@5<baseline-0.05", False),
        ("recall@5 < baseline", True),
        ("recall@5 > baseline + 0.02", False),
        ("recall@5 > baseline - 0.3", True),
        ("recall@5 < 0.61", True),
        ("recall@5 < 0.6", False),
        ("recall@5 > 0.3", True),
    ):
        failures = check_gate(parse_gate(text), result)
        assert bool(failures) is fails, text
        assert all("'b'" in str(failure) and "recall@5" in str(failure) for failure in failures)


@pytest.mark.parametrize("cases", [1, 3, 5])
def test_a_few_cases_fail_no_gate_by_chance(cases: int) -> None:
    """They all lose, so the interval of the difference has no width."""
    outcomes = [
        CaseOutcome(configuration=name, case_id=str(case), measures={"recall@5": value})
        for name, value in (("base", 1.0), ("changed", 0.0))
        for case in range(cases)
    ]
    result = summarise_outcomes(outcomes, ["base", "changed"])
    assert check_gate(parse_gate("recall@5 < baseline - 0.02"), result) == []


@pytest.mark.parametrize(
    "text",
    ["", "recall", "recall@5 < ", "recall@5 = 1", "recall@5 < baseline 1", "recall@5 < nan", "a b < 1", "x < baseline - -1"],
)
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="a gate has the form METRIC < NUMBER"):
        parse_gate(text)


def test_an_unknown_metric_and_a_missing_baseline_are_named() -> None:
    result = {"differences": [], "configurations": [{"name": "a", "metrics": {"mrr@5": {"value": 1, "interval": [1, 1]}}}]}
    with pytest.raises(InvalidRequest, match="has no metric 'recall@5'; it has mrr@5"):
        check_gate(parse_gate("recall@5 < 1"), result)
    with pytest.raises(InvalidRequest, match="name a baseline run"):
        check_gate(parse_gate("mrr@5 < baseline"), result)
