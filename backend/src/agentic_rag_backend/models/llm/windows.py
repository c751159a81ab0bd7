"""Context windows of language models by name."""

from __future__ import annotations

from agentic_rag_backend.models.llm.base import LanguageModel, LimitedModel

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
