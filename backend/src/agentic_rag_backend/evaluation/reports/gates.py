"""Gates: conditions under which a change counts as worse, such as ``recall@5 < baseline - 0.02``.

A gate fails only if the whole interval is beyond the bound, so that chance alone seldom fails it. A loss must also be more than
chance for the permutation test, because a few cases may have an interval without width.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.evaluation.reports.intervals import is_significant

BASELINE = "baseline"
_FORM = "METRIC < NUMBER, or METRIC < baseline - NUMBER; also with > and +"


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition that must not hold: a metric is below (or above) a bound, or differs from the baseline by more than that."""

    text: str
    metric: str
    below: bool
    relative: bool
    bound: float

    @property
    def asks_for_loss(self) -> bool:
        """Whether only a configuration that is worse than the baseline fails the gate."""
        return self.relative and (self.bound <= 0 if self.below else self.bound >= 0)

    def exceeds(self, interval: Sequence[float]) -> bool:
        """Return whether the whole interval is beyond the bound."""
        low, high = interval
        return high < self.bound if self.below else low > self.bound


@dataclass(frozen=True, slots=True)
class GateFailure:
    """A gate that a configuration fails: the value and its interval, which the bound excludes."""

    gate: Gate
    configuration: str
    value: float
    interval: tuple[float, float]

    def __str__(self) -> str:
        what = "differs from the baseline by" if self.gate.relative else "is"
        low, high = self.interval
        return (
            f"{self.gate.text}: {self.gate.metric} of {self.configuration!r} {what} {self.value:.4f} "
            f"[{low:.4f}, {high:.4f}]; the bound is {self.gate.bound:g}"
        )


def parse_gate(text: str) -> Gate:
    """Return the gate that a text describes.

    Raises:
        InvalidRequest: the text has another form.
    """
    for mark in ("<", ">", BASELINE):
        text = text.replace(mark, f" {mark} ")
    words = text.split()
    if len(words) >= 3 and words[1] in ("<", ">"):
        metric, sign, bound_words = words[0], words[1], words[2:]
        relative = bound_words[0] == BASELINE
        bound = _parse_difference(bound_words[1:]) if relative else _parse_number(bound_words)
        if bound is not None:
            return Gate(" ".join(words), metric, sign == "<", relative, bound)
    raise InvalidRequest(f"a gate has the form {_FORM}; got {text[:100]!r}")


def _parse_difference(words: Sequence[str]) -> float | None:
    joined = "".join(words)
    if joined and (joined[0] not in "+-" or joined[1:2] in ("+", "-")):
        return None
    return _parse_number([joined]) if joined else 0.0


def _parse_number(words: Sequence[str]) -> float | None:
    try:
        number = float(words[0]) if len(words) == 1 else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def check_gate(gate: Gate, result: Mapping[str, Any]) -> list[GateFailure]:
    """Return the configurations of a run's result that fail a gate.

    A relative gate reads the differences from the baseline. An absolute gate reads the metrics of every configuration.

    Raises:
        InvalidRequest: the result has no such metric, or no difference from a baseline.
    """
    if gate.relative:
        rows = [(row["configuration"], row["metric"], row) for row in result["differences"]]
    else:
        rows = [(of["name"], metric, row) for of in result["configurations"] for metric, row in of["metrics"].items()]
    if not rows:
        raise InvalidRequest(f"{gate.text!r} compares with a baseline; the run has one configuration, so name a baseline run")
    if gate.metric not in {metric for _, metric, _ in rows}:
        metrics = ", ".join(sorted({metric for _, metric, _ in rows}))
        raise InvalidRequest(f"the run has no metric {gate.metric[:64]!r}; it has {metrics}")
    return [
        GateFailure(gate, configuration, row["value"], (row["interval"][0], row["interval"][1]))
        for configuration, metric, row in rows
        if metric == gate.metric and gate.exceeds(row["interval"]) and not (gate.asks_for_loss and not is_significant(row))
    ]
