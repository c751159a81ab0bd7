"""When the loop stops: the novelty circuit breaker, fixed rounds, or the budget. Pure functions of the rounds so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from agentic_rag_backend.retrieval.structured_calls import Spending, StructuredCalls

EPSILON = 0.2
LEAST_ROUNDS = 2
FIXED_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Spent:
    """Model requests, tokens and seconds."""

    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one request, all inclusive."""

    calls: int
    tokens: int
    seconds: float

    def find_exhausted_limit(self, spent: Spent) -> str | None:
        """Return the name of the first limit that is reached. None: there is some left of each."""
        if spent.seconds >= self.seconds:
            return "seconds"
        if spent.tokens >= self.tokens:
            return "tokens"
        return "calls" if spent.calls and spent.calls >= self.calls else None


@dataclass(frozen=True, slots=True)
class Progress:
    """The rounds so far: the novelty of each, and what all of them spent."""

    novelty: Sequence[float]
    spent: Spent = Spent()

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return len(self.novelty)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits that policies read. ``epsilon`` in [0, 1] is the least novelty of a round that another one follows."""

    rounds: int
    epsilon: float
    budget: Budget


def novelty(new_ids: Set[str], earlier_ids: Set[str], *, first: bool) -> float:
    """Return |found \\ known| ÷ |known|: how much a round adds to the passages of the rounds before.

    The first round counts as 1, whether or not it found something. If nothing was known, a later round has 1 if it found
    something and 0 otherwise.

    Args:
        new_ids: ids of the round, after the hard filter.
        earlier_ids: ids of the rounds before, after the hard filter.
    """
    if first:
        return 1.0
    if not earlier_ids:
        return 1.0 if new_ids else 0.0
    return len(new_ids - earlier_ids) / len(earlier_ids)


def by_novelty(progress: Progress, limits: Limits) -> str | None:
    """Stop after a round with a novelty below epsilon."""
    return "novelty" if progress.novelty[-1] < limits.epsilon else None


def by_rounds(progress: Progress, limits: Limits) -> str | None:
    """Stop after the fixed number of rounds only."""
    return None


def by_budget(progress: Progress, limits: Limits) -> str | None:
    """Stop if another round of the mean cost of those before would exceed the budget."""
    spent, rounds = progress.spent, progress.rounds
    after = Spent(
        spent.calls + spent.calls // rounds, spent.tokens + spent.tokens // rounds, spent.seconds + spent.seconds / rounds
    )
    limit = limits.budget
    exceeds = after.calls > limit.calls or after.tokens > limit.tokens or after.seconds > limit.seconds
    return "budget" if exceeds else None


POLICIES: Mapping[str, Callable[[Progress, Limits], str | None]] = MappingProxyType(
    {"novelty": by_novelty, "fixed_rounds": by_rounds, "budget": by_budget}
)
"""Policies by name. Each returns the reason to stop after the last round; None: go on."""


def stop_reason(policy: str, progress: Progress, limits: Limits) -> str | None:
    """Return why the loop stops: the policy's reason, `rounds`, or a limit of the budget. None: another round follows."""
    if reason := POLICIES[policy](progress, limits):
        return reason
    if progress.rounds >= limits.rounds:
        return "rounds"
    limit = limits.budget.find_exhausted_limit(progress.spent)
    return f"budget_{limit}" if limit else None


@dataclass(slots=True)
class Meter:
    """Measures one request against its budget."""

    budget: Budget
    spending: Spending = field(init=False)
    _started: float = field(default_factory=time.monotonic, init=False)

    def __post_init__(self) -> None:
        self.spending = Spending(self.budget.calls)

    @property
    def spent(self) -> Spent:
        """The consumption so far. A started request counts, whether or not it succeeded."""
        usage = self.spending.usage
        tokens = usage.prompt_tokens + usage.completion_tokens
        return Spent(self.spending.begun, tokens, time.monotonic() - self._started)

    def may_call(self, calls: StructuredCalls) -> bool:
        """Return whether there is a model, and budget for one of its requests."""
        return calls.possible and self.spending.left > 0 and self.budget.find_exhausted_limit(self.spent) is None

    def within_time(self, calls: StructuredCalls) -> StructuredCalls:
        """Return the calls with a time limit that ends with the budget."""
        remaining_s = max(0.001, self.budget.seconds - self.spent.seconds)
        return replace(calls, timeout_s=min(calls.timeout_s, remaining_s))
