"""What a server refuses for each model, learned from its errors, and the windows and limits that it states.

A refusal is remembered for `REMEMBERED_S`, then the feature is tried again: a server may be updated or replaced meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agentic_rag_backend.models.server_errors import Feature

REMEMBERED_S = 600.0


@dataclass(slots=True)
class ModelTraits:
    """What is known about one model.

    Args:
        refused: features with the time until which they are not sent.
        window: context window in tokens that the server stated.
        reply_tokens: most tokens of a reply that the server stated.
        reasoning_tokens: additional tokens that a reply needed for reasoning.
        unopened: whether its reasoning has no opening mark.
    """

    refused: dict[Feature, float] = field(default_factory=dict)
    window: int | None = None
    reply_tokens: int | None = None
    reasoning_tokens: int = 0
    unopened: bool = False


class Refusals:
    """Traits by model.

    Args:
        clock: monotonic clock in seconds.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._traits: dict[str, ModelTraits] = {}

    def traits_of(self, model: str) -> ModelTraits:
        """Return what is known about a model, to read and to change."""
        return self._traits.setdefault(model, ModelTraits())

    def add_feature(self, model: str, feature: Feature) -> None:
        """Remember that a model refuses a feature."""
        self.traits_of(model).refused[feature] = self._clock() + REMEMBERED_S

    def current_features(self, model: str) -> frozenset[Feature]:
        """Return the features that must not be sent now."""
        refused, now = self.traits_of(model).refused, self._clock()
        for feature in [feature for feature, until in refused.items() if until <= now]:
            del refused[feature]
        return frozenset(refused)

    def describe(self) -> list[dict[str, Any]]:
        """Return the models with a known limit or refusal, as JSON values for a status."""
        now = self._clock()
        return [
            {
                "model": model,
                "refused": {feature: round(until - now) for feature, until in traits.refused.items() if until > now},
                "window_tokens": traits.window,
                "reply_tokens": traits.reply_tokens,
                "reasoning_tokens": traits.reasoning_tokens,
            }
            for model, traits in self._traits.items()
            if self.current_features(model) or traits.window or traits.reply_tokens or traits.reasoning_tokens
        ]
