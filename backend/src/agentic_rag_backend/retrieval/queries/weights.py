"""Two shares of one whole: the check, completion and normalisation that every pair of weights goes through."""

from __future__ import annotations

from dataclasses import dataclass

from agentic_rag_backend.errors import InvalidRequest

_SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Shares:
    """Two shares that sum to 1. ``warning`` says how they were normalised, and is None if they were not."""

    first: float
    second: float
    warning: str | None = None


def shares(first: float | None, second: float | None, *, names: tuple[str, str]) -> Shares | None:
    """Return the shares that a caller gave, or None if it gave neither. One of the two makes the other 1 − it.

    Raises:
        InvalidRequest: a value is not a number in [0, 1], or both are 0.
    """
    for name, value in zip(names, (first, second), strict=True):
        if value is not None and not 0.0 <= value <= 1.0:  # also false for NaN
            raise InvalidRequest(f"{name} must be a number from 0 to 1; got {value}")
    if first is None and second is None:
        return None
    one = first if first is not None else 1.0 - (second or 0.0)
    other = second if second is not None else 1.0 - one
    return normalised(one, other, names=names)


def normalised(one: float, other: float, *, names: tuple[str, str]) -> Shares:
    """Return two weights in [0, 1] divided by their sum.

    Raises:
        InvalidRequest: both are 0.
    """
    total = one + other
    if total <= 0:
        raise InvalidRequest(f"{names[0]} and {names[1]} must not both be 0; got {one} and {other}")
    if abs(total - 1.0) <= _SUM_TOLERANCE:
        return Shares(one, other)
    warning = f"weights {one} and {other} sum to {total:g}, not 1: normalised"
    return Shares(one / total, other / total, warning)
