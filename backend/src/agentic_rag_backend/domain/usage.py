"""Token usage of language models."""

from __future__ import annotations

from dataclasses import dataclass, field

NANOS = 1_000_000_000
"""Billionths of a unit of the currency. Sums of integers have no rounding errors."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Input and output tokens of a language model; zeros if no model was called.

    ``calls`` counts every request sent, retries included. ``failed_calls`` counts requests with an error, a timeout, or a reply
    that does not match the request. ``cost_nanos`` is the cost of calls with a known price, in billionths of the currency, and
    ``unpriced_calls`` counts the others. Two values with equal tokens and calls are equal at any price.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    failed_calls: int = 0
    cost_nanos: int = field(default=0, compare=False)
    unpriced_calls: int = field(default=0, compare=False)

    def __add__(self, usage: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + usage.prompt_tokens,
            self.completion_tokens + usage.completion_tokens,
            self.calls + usage.calls,
            self.failed_calls + usage.failed_calls,
            self.cost_nanos + usage.cost_nanos,
            self.unpriced_calls + usage.unpriced_calls,
        )

    @property
    def cost(self) -> float | None:
        """The cost in units of the currency. None: the price of a call is unknown."""
        return None if self.unpriced_calls else self.cost_nanos / NANOS


MAX_REPORTED_TOKENS = 100_000_000
"""No call has more tokens. The catalogue could not hold sums of larger numbers."""


def read_reported(count: object) -> int | None:
    """Return a number of tokens that a server reports. None: it is no number, negative, or above `MAX_REPORTED_TOKENS`."""
    return count if isinstance(count, int) and 0 <= count <= MAX_REPORTED_TOKENS else None


def calls_and_tokens(usage: Usage) -> dict[str, int]:
    """Return the counts of a job's result, actual or estimated."""
    return {
        "model_calls": usage.calls,
        "model_calls_failed": usage.failed_calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
    }


@dataclass(slots=True)
class UsageAccount:
    """Collects the token usage of one piece of work, so that it is also known if the work fails or is cancelled.

    Args:
        parent: the account of the larger piece of work that this one belongs to.
    """

    parent: UsageAccount | None = None
    usage: Usage = field(default_factory=Usage)

    def add_usage(self, usage: Usage) -> None:
        """Add to this account and to its parents."""
        self.usage += usage
        if self.parent is not None:
            self.parent.add_usage(usage)
