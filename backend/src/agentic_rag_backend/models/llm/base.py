"""The language model port, schemas of structured replies, context windows by name, and the choice of no language model.

Every property of an object is required, and no other is allowed. Bounds keep a model from writing without an end, and are only
where the reader of a reply cuts it anyway. Servers that refuse bounds get the schema without them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from agentic_rag_backend.domain.usage import Usage, UsageAccount
from agentic_rag_backend.errors import ModelReplyInvalid

NOT_ANSWERED = "The documents do not answer this question."
"""The text that a model writes if the evidence does not answer the question. Users see it. Prompts ask for exactly this sentence.
"""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. Document text only ever appears in ``user`` turns, fenced (see `prompts`)."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """A request to the model.

    ``messages`` is the rendered prompt. ``schema`` (JSON Schema, an object) asks for a structured reply. ``partial``: if the
    limit of tokens cuts off its lists, whole items are used.
    """

    prompt: str
    """Name and version of the prompt file, such as ``answer@1``: for usage and for caching."""
    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None = None
    partial: bool = False
    model: str | None = None
    temperature: float = 0.0
    max_tokens: int = 1024
    timeout_s: float | None = None
    """Seconds for the reply, from the moment the request is sent; None: ``LLM_TIMEOUT_S``."""
    account: UsageAccount = field(default_factory=UsageAccount, compare=False, repr=False)
    """The usage of the request so far, also if it fails or is cancelled: every attempt counts."""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The whole reply; ``parsed`` is the JSON object if the request had a schema.

    ``cut``: the reply reached its limit of tokens or began to repeat itself, and what came before is used. ``mended``: what was
    changed to read it, such as "removed reasoning".
    """

    text: str
    usage: Usage
    model: str
    parsed: Mapping[str, Any] | None = None
    cut: bool = False
    mended: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelDelta:
    """A piece of a streamed reply.

    The last piece has ``usage``, and ``cut`` if the reply reached its limit of tokens or began to repeat itself. ``restart``: the
    text so far was the model's reasoning; the reply begins after this piece.
    """

    text: str
    usage: Usage | None = None
    cut: bool = False
    restart: bool = False


@runtime_checkable
class LimitedModel(Protocol):
    """A model that learns its limits from a server."""

    def window(self, model: str | None = None) -> int | None:
        """Return the context window in tokens that the server stated for a model (None: the default). None: not known."""

    def limits(self) -> list[dict[str, Any]]:
        """Return what the server refuses, and the limits that it stated, for each model, as JSON values."""


class LanguageModel(Protocol):
    """Answers requests, at most ``LLM_MAX_CONCURRENCY`` at once, those of questions first.

    ``LLM_TIMEOUT_S`` limits a request including its retries, from the moment it is sent. A streamed or structured reply may take
    longer as long as its pieces arrive; see `models.pace`.
    """

    @property
    def generative(self) -> bool:
        """False for `ExtractiveModel`, which only selects sentences from the evidence."""

    @property
    def name(self) -> str:
        """The model that is used if a request names none."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Return the whole reply.

        Raises:
            ModelRateLimited: still limited at the time limit, or Retry-After exceeds it.
            ModelRefused: the endpoint refuses every request: key, model name or permissions are wrong.
            ModelInputRefused: it refuses this request.
            PromptTooLong: the request does not fit in the context window. `windows.window_of` gives the window that it stated.
            ModelReplyInvalid: the reply does not match the requested schema, also on a second try.
            ModelBusy: other requests took all places until the caller's time was over.
            ModelTimeout: the model did not begin or end its reply in time.
            ModelUnavailable: any other failure of the model or the connection.
        """

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelDelta, None]:
        """Yield the reply while the model writes it; closing the generator stops the model. Errors as in `complete`."""

    async def close(self) -> None:
        """Release connections."""


_REFUSAL = "LLM=extractive writes no replies; set LLM=openai and a model"


class ExtractiveModel:
    """A `LanguageModel` that refuses every request. Callers look at ``generative`` first."""

    generative = False
    name = "extractive"

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Raise ModelReplyInvalid."""
        raise ModelReplyInvalid(_REFUSAL)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelDelta, None]:
        """Raise ModelReplyInvalid at the first piece."""
        yield ModelDelta((await self.complete(request)).text)

    async def close(self) -> None:
        """Do nothing: it holds no resources."""


Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
BOOLEAN: Schema = {"type": "boolean"}


def object_of(properties: Mapping[str, Schema]) -> Schema:
    """Return the schema of an object with these properties."""
    return {"type": "object", "properties": dict(properties), "required": list(properties), "additionalProperties": False}


def list_of(items: Schema, max_items: int | None = None) -> Schema:
    """Return the schema of a list of at most ``max_items`` items."""
    return {"type": "array", "items": items} | ({} if max_items is None else {"maxItems": max_items})


def text_of(max_length: int) -> Schema:
    """Return the schema of a text of at most ``max_length`` characters. Servers' grammars are slow for more than some hundred."""
    return {**TEXT, "maxLength": max_length}


def objects_in(parsed: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return the objects in a list of a reply. Other items are ignored."""
    items = parsed.get(name)
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []


def one_of(words: Sequence[str]) -> Schema:
    """Return the schema of one of several words. Another word is read as ``other`` if that is one of them."""
    return {**TEXT, "enum": list(words)}


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
