"""Learns the value of a parameter on one half of the cases, and decides on the other half.

The halves are a function of the cases and the seed. A value is chosen by the mean on the first half alone. The decision is one
test on the second half: a paired bootstrap interval of the difference that excludes 0, and a permutation test. So the choice
among many values costs no certainty: the second half has not seen it.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.domain.tuning import Parameter
from agentic_rag_backend.evaluation.reports.intervals import estimate_mean, permutation_p
from agentic_rag_backend.evaluation.tuning.candidates import BEFORE, LOW_STRATEGIES, distance_from

LEAST_CASES = 20
"""Cases that each half must have. With fewer, a bootstrap interval is too narrow."""
LEAST_OF_KIND = 5
"""Cases of a kind of question that the first half must have for a choice for this kind."""
SIGNIFICANT = 0.05
_TIE = 1e-9

Choice = str | Mapping[str, Any]
"""The name of a candidate, strategies by kind of question, or the fields of a scale of confidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredCase:
    """A case with the score of each candidate. ``learns``: it belongs to the half that values are learned on."""

    kind: str
    learns: bool
    scores: Mapping[str, float]

    def score_of(self, choice: Choice) -> float:
        """Return the score with a choice. Kinds of questions without a strategy have the values that are in use."""
        return self.scores[choice if isinstance(choice, str) else choice.get(self.kind, BEFORE)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterEvidence:
    """The evidence for one parameter. ``choice`` is None if tuning declines to change it, and ``reason`` says why."""

    parameter: Parameter
    choice: Choice | None
    reason: str
    evidence: Mapping[str, Any]


def is_learned_from(case_id: str, seed: int) -> bool:
    """Return whether a case belongs to the half that values are learned on: the first bit of SHA-256 of seed and case is 0."""
    return hashlib.sha256(f"{seed}:{case_id}".encode()).digest()[0] < 128


def learn_parameter(parameter: Parameter, cases: Sequence[ScoredCase], *, share: float | None) -> ParameterEvidence:
    """Choose a value on one half of the cases, and check it on the other.

    Args:
        share: the value in use of a parameter that is a share. Of equally good values, the nearest is chosen. None: it is none.
    """
    halves = {name: [case for case in cases if case.learns is learns] for name, learns in (("learn", True), ("check", False))}
    counts = {name: len(half) for name, half in halves.items()}
    if min(counts.values()) < LEAST_CASES:
        return ParameterEvidence(
            parameter=parameter,
            choice=None,
            reason=f"too few cases: each half needs {LEAST_CASES}; there are {counts['learn']} and {counts['check']}",
            evidence={name: {"cases": count} for name, count in counts.items()},
        )
    means = _average_scores(halves["learn"])
    choice = _choose_strategies(halves["learn"]) if parameter is Parameter.AUTO_STRATEGIES else _choose_share(means, share)
    if choice is None:
        evidence = {name: _describe_half(half, BEFORE) for name, half in halves.items()}
        reason = "no other value is better on the half that values are learned on"
        return ParameterEvidence(parameter=parameter, choice=None, reason=reason, evidence={**evidence, "candidates": means})
    evidence = {name: _describe_half(half, choice) for name, half in halves.items()}
    difference = evidence["check"]["difference"]
    improves = difference["interval"][0] > 0 and difference["p"] <= SIGNIFICANT
    reason = _explain_decision(difference, improves=improves)
    return ParameterEvidence(
        parameter=parameter,
        choice=choice if improves else None,
        reason=reason,
        evidence={**evidence, "candidates": means, "tried": choice},
    )


def _average_scores(cases: Sequence[ScoredCase]) -> dict[str, float]:
    return {name: round(float(np.mean([case.scores[name] for case in cases])), 6) for name in cases[0].scores}


def _choose_share(means: Mapping[str, float], share: float | None) -> str | None:
    """Return the candidate with the highest mean, and of equal ones the nearest to the value in use. None: that one is best."""
    best = max(means.values())
    if best <= means[BEFORE] + _TIE:
        return None
    return min((name for name, mean in means.items() if mean >= best - _TIE and name != BEFORE), key=distance_from(share))


def _choose_strategies(cases: Sequence[ScoredCase]) -> dict[str, str] | None:
    """Return for each kind of question the best strategy that is better than the one in use by more than a standard error."""
    of_kind: dict[str, list[ScoredCase]] = defaultdict(list)
    for case in cases:
        of_kind[case.kind].append(case)
    chosen: dict[str, str] = {}
    for kind, part in sorted(of_kind.items()):
        if len(part) < LEAST_OF_KIND:
            continue
        gains = {name: _list_differences(part, name) for name in LOW_STRATEGIES}
        name = max(LOW_STRATEGIES, key=lambda name: gains[name].mean())
        gain = gains[name]
        if gain.mean() > max(_TIE, gain.std(ddof=1) / math.sqrt(len(gain))):
            chosen[kind] = name
    return chosen or None


def _list_differences(cases: Sequence[ScoredCase], choice: Choice) -> NDArray[np.float64]:
    return np.array([case.score_of(choice) - case.scores[BEFORE] for case in cases])


def _describe_half(cases: Sequence[ScoredCase], choice: Choice) -> dict[str, Any]:
    before, after = (np.array([case.score_of(of) for case in cases]) for of in (BEFORE, choice))
    differences = after - before
    return {
        "cases": len(cases),
        "before": estimate_mean(before).as_result(),
        "after": estimate_mean(after).as_result(),
        "difference": {**estimate_mean(differences).as_result(), "p": round(permutation_p(differences), 6)},
    }


def _explain_decision(difference: Mapping[str, Any], *, improves: bool) -> str:
    low, high = difference["interval"]
    figures = f"difference {difference['value']:+.4f}, interval {low:+.4f} to {high:+.4f}, p {difference['p']:.4f}"
    if improves:
        return f"improves the half that it was not learned on: {figures}"
    return f"no improvement is proven on the half that it was not learned on: {figures}"
