"""Builds the body of a request from a prompt, within what the server and the model accept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from agentic_rag_backend.language.prompt_marks import neutralise_marks
from agentic_rag_backend.models.llm.base import Message, ModelRequest
from agentic_rag_backend.models.llm.model_traits import ModelTraits
from agentic_rag_backend.models.server_errors import Feature

REASONING_TOKENS = 4_096
"""Room for the reasoning of a model whose name is known to reason."""
SECOND_TEMPERATURE = 0.3
"""Least temperature of a second try. At 0, a model repeats its mistake."""
_REASONING = (
    *("o1", "o3", "o4", "gpt-5", "gpt-oss", "deepseek-r1", "deepseek-reasoner", "qwq", "magistral", "kimi-k2-thinking"),
    *("seed-oss", "phi-4-reasoning", "phi-4-mini-reasoning", "glm-z1", "minimax-m", "exaone-deep", "deepscaler", "openthinker"),
)
"""Beginnings of names of models that always reason."""
_REASONING_ENDS = ("-thinking", "-reasoning", "-reasoner", "-think")
_UNOPENED = ("deepseek-r1", "qwq")
_UNOPENED_ENDS = ("-thinking", "-think")
"""Names of models whose chat template writes the opening mark of the reasoning."""
_COMPLETION_TOKENS = ("o1", "o3", "o4", "gpt-5")
"""Models of OpenAI that know only ``max_completion_tokens``."""
_BOUNDS = frozenset({"maxItems", "minItems", "maxLength", "minLength", "maximum", "minimum"})
_RULE = "Answer with one JSON object that holds to this JSON Schema, and nothing else:\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequestOptions:
    """Settings that apply to every request.

    Args:
        temperature: None: that of each request.
        reasoning_effort: None: not sent.
        reasoning_tokens: tokens for reasoning, in addition to those of the reply. None: by the model's name.
        extra_body: further fields of the body.
    """

    temperature: float | None = None
    reasoning_effort: str | None = None
    reasoning_tokens: int | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class ModelTurn:
    """One request of a call and the limit of its reply.

    ``tokens`` includes the room for reasoning. ``shortened``: the limit was lowered, because the context window is full.
    """

    messages: Sequence[Message]
    temperature: float
    tokens: int
    shortened: bool = False


@dataclass(frozen=True, slots=True)
class Body:
    """Arguments of the SDK, and the features that they use."""

    arguments: dict[str, Any]
    sent: frozenset[Feature]


def reasoning_room(model: str, options: ModelRequestOptions, traits: ModelTraits) -> int:
    """Return the tokens that a reply needs in addition, for reasoning."""
    reasoning_tokens = REASONING_TOKENS if options.reasoning_effort != "none" and is_reasoning_model(model) else 0
    configured = reasoning_tokens if options.reasoning_tokens is None else options.reasoning_tokens
    return max(configured, traits.reasoning_tokens)


def is_reasoning_model(model: str) -> bool:
    """Return whether the name of a model says that it reasons before it replies."""
    return _base_name(model).startswith(_REASONING) or _base_name(model).endswith(_REASONING_ENDS)


def may_hide_opening(model: str) -> bool:
    """Return whether the reasoning of a model may lack its opening mark."""
    return _base_name(model).startswith(_UNOPENED) or _base_name(model).endswith(_UNOPENED_ENDS)


def _base_name(model: str) -> str:
    """Return the name without vendor and tag: ``deepseek-r1`` for ``deepseek-ai/DeepSeek-R1:8b``."""
    return model.lower().rsplit("/", 1)[-1].partition(":")[0]


def first_turn(model: str, request: ModelRequest, options: ModelRequestOptions, traits: ModelTraits) -> ModelTurn:
    """Return the first turn of a call."""
    temperature = request.temperature if options.temperature is None else options.temperature
    return ModelTurn(
        messages=request.messages,
        temperature=temperature,
        tokens=request.max_tokens + reasoning_room(model, options, traits),
    )


def build_body(
    model: str, request: ModelRequest, turn: ModelTurn, options: ModelRequestOptions, traits: ModelTraits, *, stream: bool
) -> Body:
    """Return the body of a request without the features that the model refuses.

    There is at most one system message, and it comes first. Without ``response_format``, it has the schema.
    """
    refused = frozenset(traits.refused)
    arguments: dict[str, Any] = {"model": model, "stream": stream}
    features_sent: set[Feature] = set()
    if stream and "stream_options" not in refused:
        arguments["stream_options"] = {"include_usage": True}
        features_sent.add("stream_options")
    if stream and request.schema is not None:
        features_sent.add("stream")
    if "temperature" not in refused:
        arguments["temperature"] = turn.temperature
        features_sent.add("temperature")
    if options.reasoning_effort is not None and "reasoning_effort" not in refused:
        arguments["reasoning_effort"] = options.reasoning_effort
        features_sent.add("reasoning_effort")
    limit = _limit_of(model, refused)
    if limit is not None:
        arguments[limit] = min(turn.tokens, traits.reply_tokens or turn.tokens)
        features_sent.add(limit)
    rule = _add_format(arguments, request, refused, features_sent)
    arguments["messages"] = _with_one_system(turn.messages, rule, refused, features_sent)
    if options.extra_body:
        arguments["extra_body"] = dict(options.extra_body)
    return Body(arguments, frozenset(features_sent))


def _limit_of(model: str, refused: AbstractSet[Feature]) -> Feature | None:
    names: tuple[Feature, ...] = ("max_tokens", "max_completion_tokens")
    if _base_name(model).startswith(_COMPLETION_TOKENS):
        names = names[::-1]
    return next((name for name in names if name not in refused), None)


def _add_format(
    arguments: dict[str, Any], request: ModelRequest, refused: AbstractSet[Feature], features_sent: set[Feature]
) -> str:
    """Add the format of a structured reply. Return the rule that the prompt must state instead of it."""
    if request.schema is None:
        return ""
    if "json_schema" not in refused:
        bounded = "schema_bounds" not in refused
        schema = dict(request.schema) if bounded else without_bounds(request.schema)
        described = {"name": request.prompt.partition("@")[0] or "reply", "schema": schema, "strict": True}
        arguments["response_format"] = {"type": "json_schema", "json_schema": described}
        features_sent |= {"json_schema", "schema_bounds"} if bounded else {"json_schema"}
        return ""
    if "json_object" not in refused:
        arguments["response_format"] = {"type": "json_object"}
        features_sent.add("json_object")
    return f"{_RULE}{json.dumps(request.schema, ensure_ascii=False)}"


def _with_one_system(
    messages: Sequence[Message], rule: str, refused: AbstractSet[Feature], features_sent: set[Feature]
) -> list[dict[str, str]]:
    parts = [message.content for message in messages if message.role == "system"]
    system = neutralise_marks("\n\n".join([*parts, *([rule] if rule else [])]))
    turns = [
        {"role": message.role, "content": neutralise_marks(message.content)} for message in messages if message.role != "system"
    ]
    if not system:
        return turns
    if "system_role" in refused:
        first_user_turn = next((turn for turn in turns if turn["role"] == "user"), None)
        if first_user_turn is None:
            return [{"role": "user", "content": system}, *turns]
        first_user_turn["content"] = f"{system}\n\n{first_user_turn['content']}"
        return turns
    features_sent.add("system_role")
    return [{"role": "system", "content": system}, *turns]


def without_bounds(schema: Any) -> Any:
    """Return a JSON Schema without limits of lengths and numbers."""
    if isinstance(schema, Mapping):
        return {
            name: {key: without_bounds(inner) for key, inner in value.items()} if name == "properties" else without_bounds(value)
            for name, value in schema.items()
            if name not in _BOUNDS
        }
    return [without_bounds(item) for item in schema] if isinstance(schema, list) else schema
