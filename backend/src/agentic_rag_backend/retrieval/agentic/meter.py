"""What a loop has spent: model requests, tokens and seconds."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from agentic_rag_backend.retrieval.agentic.stopping import Budget, Spent
from agentic_rag_backend.retrieval.structured_calls import Spending, StructuredCalls


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
        return calls.possible and self.spending.left > 0 and self.budget.exhausted(self.spent) is None

    def within_time(self, calls: StructuredCalls) -> StructuredCalls:
        """Return the calls with a time limit that ends with the budget."""
        left = max(0.001, self.budget.seconds - self.spent.seconds)
        return replace(calls, timeout_s=min(calls.timeout_s, left))
