"""Traits of language models: context windows by name, and what a server refuses or states.

A refusal is remembered for `REMEMBERED_S`, then the feature is tried again: a server may be updated or replaced meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agentic_rag_backend.models.llm.base import LanguageModel, LimitedModel
from agentic_rag_backend.models.server_errors import Feature

UNKNOWN_WINDOW = 8_192
"""Tokens assumed for a model that is not in the table."""
_WINDOWS: tuple[tuple[str, int], ...] = (
    ("gpt-5", 272_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("chatgpt-4o", 128_000),
    ("gpt-4-turbo", 128_000),
    ("gpt-4-32k", 32_768),
    ("gpt-4", 8_192),
    ("gpt-3.5-turbo", 16_385),
    ("gpt-oss", 131_072),
    ("o1-mini", 128_000),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
    ("claude", 200_000),
    ("gemini", 1_048_576),
    ("gemma3", 128_000),
    ("gemma-3", 128_000),
    ("gemma", 8_192),
    ("llama-4", 1_000_000),
    ("llama4", 1_000_000),
    ("llama-3.1", 128_000),
    ("llama3.1", 128_000),
    ("llama-3.2", 128_000),
    ("llama3.2", 128_000),
    ("llama-3.3", 128_000),
    ("llama3.3", 128_000),
    ("llama-3", 8_192),
    ("llama3", 8_192),
    ("llama-2", 4_096),
    ("llama2", 4_096),
    ("mistral-large", 128_000),
    ("mistral-nemo", 128_000),
    ("mistral-small", 32_768),
    ("mistral", 32_768),
    ("mixtral", 32_768),
    ("qwen2.5", 32_768),
    ("qwen3", 32_768),
    ("qwen", 32_768),
    ("deepseek", 64_000),
    ("phi4", 16_384),
    ("phi-4", 16_384),
    ("phi3", 4_096),
    ("phi-3", 4_096),
    ("command-r", 128_000),
)
"""Beginning of a model's name and its window in tokens; the first that fits. A family has the window of its smallest member."""


def context_window(model: str, configured: int | None = None) -> int:
    """Return the tokens that a model reads and writes in one call.

    Args:
        model: its name. A vendor before it ("openai/", "meta-llama/") is ignored, and so is letter case.
        configured: the window of the deployment (``LLM_CONTEXT_TOKENS``); it overrides the table.
    """
    if configured is not None:
        return configured
    name = model.lower()
    names = (name, name.rsplit("/", 1)[-1], name.rsplit("/", 1)[-1].removeprefix("meta-"))
    return next((window for opening, window in _WINDOWS for name in names if name.startswith(opening)), UNKNOWN_WINDOW)


def window_of(model: LanguageModel, name: str | None = None, configured: int | None = None) -> int:
    """Return the context window of a model: the smaller one of `context_window` and what its server stated.

    Args:
        name: the model that is asked for; None: the default of ``model``.
    """
    window = context_window(name or model.name, configured)
    server_window = model.window(name) if isinstance(model, LimitedModel) else None
    return window if server_window is None else min(window, server_window)


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
