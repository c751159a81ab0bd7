"""Prices of models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from agentic_rag_backend.domain.usage import NANOS, Usage

_PER = 1_000_000
"""Tokens to which a price applies."""


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """Price of a million tokens that a model reads (``input``) and writes (``output``), in units of the currency."""

    input: Decimal
    output: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Prices by the exact name of the model. A model without a price has no cost, not a cost of 0."""

    currency: str = "USD"
    models: Mapping[str, ModelPrice] = field(default_factory=dict)

    def price_usage(self, model: str, usage: Usage) -> Usage:
        """Return the calls and tokens of one model with their cost.

        Calls are unpriced if the model has no price, or if a reply came without its number of tokens.
        """
        price, replies = self.models.get(model), usage.calls - usage.failed_calls
        if usage.calls and (price is None or (replies > 0 and not usage.prompt_tokens)):
            return Usage(usage.prompt_tokens, usage.completion_tokens, usage.calls, usage.failed_calls, 0, usage.calls)
        nanos = 0
        if price is not None:
            units = usage.prompt_tokens * price.input + usage.completion_tokens * price.output
            nanos = int((units * NANOS / _PER).to_integral_value())
        return Usage(usage.prompt_tokens, usage.completion_tokens, usage.calls, usage.failed_calls, nanos)
