"""The values that tuning may propose for each parameter, and the names under which their scores are recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from agentic_rag_backend.domain.tuning import ConfidenceScale, Parameter, TunedValues
from agentic_rag_backend.language.questions.kinds import AnswerKind

BEFORE = "before"
"""Name of the values that are in use."""
LOW_STRATEGIES = ("graph", "hybrid", "agentic")
"""Strategies of the low level that `auto` may use for a kind of question."""
_SHARES = tuple(round(step / 10, 1) for step in range(11))


def list_candidates(parameter: Parameter, base: TunedValues) -> dict[str, TunedValues]:
    """Return the candidates by name: `BEFORE` for ``base``, and one for each other value of the parameter.

    Shares are multiples of 0.1. A level always has a share, so that it never disappears from answers. A candidate for the low
    level of `auto` has one strategy for all kinds of questions.
    """
    candidates = {BEFORE: base}
    match parameter:
        case Parameter.LEVEL_WEIGHTS:
            candidates |= {f"{share}": replace(base, low_weight=share) for share in _SHARES[1:-1]}
        case Parameter.HYBRID_WEIGHTS:
            candidates |= {f"{share}": replace(base, dense_weight=share) for share in _SHARES}
        case Parameter.AUTO_STRATEGIES:
            kinds = [kind.value for kind in AnswerKind]
            candidates |= {name: replace(base, low_strategies=dict.fromkeys(kinds, name)) for name in LOW_STRATEGIES}
    return candidates


def with_choice(parameter: Parameter, base: TunedValues, choice: str | Mapping[str, Any]) -> TunedValues:
    """Return ``base`` with a choice: the name of a share, strategies by kind of question, or the fields of a scale."""
    if parameter is Parameter.CONFIDENCE and not isinstance(choice, str):
        return replace(base, confidence=ConfidenceScale(**choice))
    if isinstance(choice, str):
        return list_candidates(parameter, base)[choice]
    return replace(base, low_strategies={**base.low_strategies, **choice})


def distance_from(share: float | None) -> Callable[[str], float]:
    """Return a function that returns the distance of a candidate's share from ``share``, which is 0 from None."""
    return lambda name: 0.0 if share is None else abs(float(name) - share)
