"""Habits of real models and servers, as parts of a scripted model's name: ``quirk-think``, ``quirk-json-single-quotes``.

`shape_reply` changes the text of a reply, `refuse` answers a request with a server's error. Each entry says whose habit it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

PREFIX = "quirk-"
WINDOW = 300
"""Context window, in the scripted server's tokens, of the servers that refuse long prompts."""
REPLY_LIMIT = 200
"""Most tokens of a reply of ``quirk-openai-reply-limit``."""
_MARKER = re.compile(r" ?\[(\d+)\]")
_RULE = "JSON Schema, and nothing else:\n"
_THOUGHT = 'Okay, the user asks about this. Passage 1 has it, as {"entities": ...} or [1].'


@dataclass(frozen=True, slots=True)
class Shape:
    """A reply: its content (a text, or parts) and further members of the message. ``ending`` None: as usual."""

    content: str | list[dict[str, Any]] | None
    more: Mapping[str, Any] = field(default_factory=dict)
    ending: str | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error of a server."""

    status: int
    body: Mapping[str, Any]


def _mark_as(style: str) -> Callable[[str], Shape]:
    """Return the text with citations in another style. ``{}`` is the number of a passage."""
    return lambda text: Shape(_MARKER.sub(lambda marker: style.replace("{}", marker[1]), text))


def _with(template: str) -> Callable[[str], Shape]:
    return lambda text: Shape(template.replace("{}", text))


def _numbers(text: str) -> str:
    return ", ".join(dict.fromkeys(f"[{number}]" for number in _MARKER.findall(text))) or "[1]"


def _first(text: str) -> str:
    return _numbers(text).partition(",")[0].strip("[]")


def _bare(text: str) -> str:
    return _MARKER.sub("", text)


TEXTS: Mapping[str, Callable[[str], Shape]] = {
    "think": _with(f"<think>\n{_THOUGHT}\n</think>\n\n{{}}"),  # DeepSeek R1, Qwen3
    "think-tail": _with(f"{_THOUGHT}\n</think>\n\n{{}}"),  # a chat template that writes the opening mark
    "think-cut": lambda text: Shape("<think>\n" + f"{_THOUGHT} " * 20, ending="length"),
    "think-unclosed": lambda text: Shape(f"<think>\n{_THOUGHT} {text}"),  # small distilled models
    "think-twice": _with(f"<think>{_THOUGHT}</think>\n<think>And again.</think>{{}}"),
    "thinking": _with(f"<thinking>{_THOUGHT}</thinking>{{}}"),
    "kimi": _with(f"◁think▷{_THOUGHT}◁/think▷{{}}"),
    "magistral": _with(f"[THINK]{_THOUGHT}[/THINK]{{}}"),
    "command": _with(f"<|START_THINKING|>{_THOUGHT}<|END_THINKING|><|START_RESPONSE|>{{}}<|END_RESPONSE|>"),
    "harmony": _with(
        f"<|channel|>analysis<|message|>{_THOUGHT}<|end|><|start|>assistant<|channel|>final<|message|>{{}}<|return|>"
    ),
    "harmony-bare": _with(f"analysis{_THOUGHT}assistantfinal{{}}"),  # without control tokens
    "mention": _with("{} The tag <think> begins reasoning, and </think> ends it."),
    "end-token": _with("{}<|im_end|>\n<|im_start|>user\nAnd now?"),
    "stop-token": _with("{}</s>"),
    "loop": lambda text: Shape(f"{text} " + "The report does not say more about it than this. " * 40),
    "blank-loop": lambda text: Shape(f"{text}{chr(10) * 2_000}"),
    "reason": lambda text: Shape(None, {"reasoning_content": "thinking " * 100}, "length"),  # vLLM, DeepSeek
    "reasoning-content": lambda text: Shape(text, {"reasoning_content": _THOUGHT}),
    "reasoning": lambda text: Shape(text, {"reasoning": _THOUGHT}),  # Ollama, OpenRouter
    "reasoning-holds-object": lambda text: Shape("", {"reasoning_content": text}),  # vLLM with a grammar, thinking off
    "parts": lambda text: Shape(
        [{"type": "thinking", "thinking": [{"type": "text", "text": _THOUGHT}]}, {"type": "text", "text": text}]
    ),  # Mistral
    "refusal-field": lambda text: Shape(None, {"refusal": "I'm sorry, I cannot help with that."}),  # OpenAI
    "filtered": lambda text: Shape("", ending="content_filter"),  # Azure
    "tool-call": lambda text: Shape(
        None,
        {"tool_calls": [{"id": "1", "type": "function", "function": {"name": "reply", "arguments": text}}]},
        "tool_calls",
    ),
    "none": lambda text: Shape(""),
    # --- citations and manners of answers
    "passage": _mark_as(" [Passage {}]"),
    "paren": _mark_as(" ({})"),
    "cjk": _mark_as("【{}】"),
    "list": _mark_as(" [{}, {}]"),
    "foot": _mark_as(" [^{}]"),
    "xml": _mark_as(' <passage id="{}">'),
    "tag": _mark_as(" <passage {}>"),
    "source": _mark_as(" [source {}]"),
    "bold": lambda text: Shape(_MARKER.sub(r" **[\1]**", f"**{text}**")),
    "end": lambda text: Shape(f"{_bare(text)}\n\nSources: {_numbers(text)}"),
    "intro": _with("Based on the passages provided, here is what happened:\n\n- {}\n\nIn summary, it was a mistake."),
    "before": lambda text: Shape(f"According to [{_first(text)}], {_bare(text)}"),
    "paraphrase": lambda text: Shape(text.replace("because", "since").replace("The ", "That ")),
    "no-citation": lambda text: Shape(_bare(text)),
    "german": lambda text: Shape(f"Die Unterlagen beschreiben den Vorgang so [{_first(text)}]."),
    "answer-object": lambda text: Shape(json.dumps({"answer": text})),
    "echo-passage": lambda text: Shape(f"<passage {_first(text)}>\n{_bare(text)}\n</passage>\n[{_first(text)}]"),
    "sorry": lambda text: Shape("I'm sorry, but the provided passages do not contain information about this question."),
}
"""By name, what a reply becomes."""


def _null(text: str) -> Shape:
    return Shape(json.dumps(dict.fromkeys(json.loads(text))))


def _half(text: str) -> Shape:
    """Return an object that was cut off in the second item of its first list."""
    start = text.index("[") + 1
    end = text.index("]", start)
    return Shape(f"{text[:end]}, {text[start : start + (end - start) // 2]}", ending="length")


def _quoted_numbers(text: str) -> Shape:
    return Shape(re.sub(r": (-?\d+(?:\.\d+)?)", r': "\1"', text))


OBJECTS: Mapping[str, Callable[[str], Shape]] = {
    "json-extra": lambda text: Shape(f'{text[:-1]}, "note": "I hope this helps"}}'),
    "json-nulls": _null,
    "json-around": _with("Here is the JSON you asked for:\n{}"),
    "json-fence": _with("```json\n{}\n```"),
    "json-fence-talk": _with("```json\n{}\n```\nLet me know!"),
    "json-fence-around": _with("Here is the JSON you asked for:\n\n```json\n{}\n```\n\nLet me know if you need anything else!"),
    "json-list": _with("[{}]"),
    "json-open": lambda text: Shape(text[:-1]),
    "json-half": _half,
    "json-trailing-comma": lambda text: Shape(f"{text[:-1]},}}"),
    "json-single-quotes": lambda text: Shape(text.replace('"', "'")),
    "json-python": lambda text: Shape(text.replace('"', "'").replace("true", "True").replace("false", "False")),
    "json-wrapped": _with('{"result": {}}'),
    "json-numbers-quoted": _quoted_numbers,
    "json-line-ends": lambda text: Shape(text.replace(" ", "\n")),  # also within texts, where JSON does not allow them
    "json-thought-first": _with(f"{_THOUGHT} So the object is {{}}."),
    "json-twice": _with("{}\n{}"),
}
"""By name, what an object becomes. A text stays as it is."""


def _error(status: int, message: str, **more: Any) -> Refusal:
    return Refusal(status, {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None, **more}})


def _vllm(message: str) -> Refusal:
    return Refusal(400, {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": 400})


@dataclass(frozen=True, slots=True)
class Asked:
    """A request in the terms of servers' checks. ``tokens``: of the prompt; ``most``: of the reply."""

    format: str
    roles: Sequence[str]
    members: AbstractSet[str]
    tokens: int
    most: int
    bounded: bool

    @property
    def too_long(self) -> bool:
        """Whether prompt and reply exceed `WINDOW`."""
        return self.tokens + self.most > WINDOW


REFUSALS: Mapping[str, Callable[[Asked], Refusal | None]] = {
    "lmstudio": lambda asked: (
        _error(400, "'response_format.type' must be 'json_schema' or 'text'") if asked.format == "json_object" else None
    ),
    "old-server": lambda asked: _vllm("response_format json_schema is not supported") if asked.format == "json_schema" else None,
    "no-format": lambda asked: _vllm("response_format is not supported") if asked.format else None,
    "deepseek": lambda asked: (
        _error(400, "This response_format type is unavailable now") if asked.format == "json_schema" else None
    ),
    "llamacpp-grammar": lambda asked: _error(400, "failed to parse grammar", code=400) if asked.format == "json_schema" else None,
    "fastapi": lambda asked: (
        Refusal(
            422,
            {"detail": [{"loc": ["body", "response_format"], "msg": "extra fields not permitted", "input": "temperature"}]},
        )
        if asked.format
        else None
    ),
    "bounds": lambda asked: (
        _error(400, "Invalid schema for response_format 'x': In context=('properties', 'a'), 'maxLength' is not permitted.")
        if asked.format == "json_schema" and asked.bounded
        else None
    ),
    "two-systems": lambda asked: (
        _vllm("json_schema not supported")
        if asked.format == "json_schema"
        else _vllm("System message must be at the beginning.")
        if asked.roles.count("system") > 1
        else None
    ),
    "gemma": lambda asked: _vllm("System role not supported") if "system" in asked.roles else None,
    "llamacpp-template": lambda asked: (
        _error(500, "System role not supported at row 1, column 30", code=500) if "system" in asked.roles else None
    ),
    "mistral-roles": lambda asked: (
        _error(400, "Only user and assistant roles are supported!") if "system" in asked.roles else None
    ),
    "alternate": lambda asked: (
        _vllm("Conversation roles must alternate user/assistant/user/assistant/...")
        if any(one == other for one, other in zip(asked.roles, asked.roles[1:], strict=False)) or "system" in asked.roles
        else None
    ),
    "no-stream-options": lambda asked: (
        _error(400, "Unrecognized request argument supplied: stream_options") if "stream_options" in asked.members else None
    ),
    "no-thinking": lambda asked: _error(400, '"q" does not support thinking') if "reasoning_effort" in asked.members else None,
    "completion-tokens": lambda asked: (
        _error(
            400,
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            param="max_tokens",
            code="unsupported_parameter",
        )
        if "max_tokens" in asked.members
        else None
    ),
    "temperature-fixed": lambda asked: (
        _error(400, "Unsupported value: 'temperature' does not support 0.0 with this model.", param="temperature")
        if "temperature" in asked.members
        else None
    ),
    "openai-reply-limit": lambda asked: (
        _error(
            400, f"max_tokens is too large: {asked.most}. This model supports at most {REPLY_LIMIT} completion tokens, whereas …"
        )
        if asked.most > REPLY_LIMIT
        else None
    ),
    "openai-context": lambda asked: (
        _error(
            400,
            f"This model's maximum context length is {WINDOW} tokens. However, you requested {asked.tokens + asked.most} tokens "
            f"({asked.tokens} in the messages, {asked.most} in the completion). Please reduce the length of the messages or "
            "completion.",
            code="context_length_exceeded",
        )
        if asked.too_long
        else None
    ),
    "vllm-context": lambda asked: (
        _vllm(
            f"'max_tokens' or 'max_completion_tokens' is too large: {asked.most}. This model's maximum context length is "
            f"{WINDOW} tokens and your request has {asked.tokens} input tokens ({asked.most} > {WINDOW} - {asked.tokens})."
        )
        if asked.too_long
        else None
    ),
    "llamacpp-context": lambda asked: (
        _error(
            400,
            "the request exceeds the available context size, try increasing it",
            type="exceed_context_size_error",
            n_prompt_tokens=asked.tokens,
            n_ctx=WINDOW,
        )
        if asked.too_long
        else None
    ),
    "lmstudio-context": lambda asked: (
        Refusal(
            400,
            {
                "error": f"Trying to keep the first {asked.tokens} tokens when context the overflows. However, the model is "
                f"loaded with context length of only {WINDOW} tokens, which is not enough."
            },
        )
        if asked.too_long
        else None
    ),
    "ollama-context": lambda asked: _error(400, "the input length exceeds the context length") if asked.too_long else None,
    "tgi-context": lambda asked: (
        Refusal(
            422,
            {
                "error": f"Input validation error: `inputs` tokens + `max_new_tokens` must be <= {WINDOW}. Given: {asked.tokens} "
                f"`inputs` tokens and {asked.most} `max_new_tokens`",
                "error_type": "validation",
            },
        )
        if asked.too_long
        else None
    ),
    "mistral-context": lambda asked: (
        _error(400, f"Prompt contains {asked.tokens} tokens, too large for model with {WINDOW} maximum context length")
        if asked.too_long
        else None
    ),
    "azure-filter": lambda asked: _error(
        400, "The response was filtered due to the prompt triggering Azure's content management policy.", code="content_filter"
    ),
    "loading": lambda asked: _error(503, "Loading model", type="unavailable_error", code=503),  # llama.cpp; use quirk-loadingx3
}
"""By name, the error that a request gets; None: it is answered."""
NAMES = frozenset({*TEXTS, *OBJECTS, *REFUSALS})


def shape_reply(names: AbstractSet[str], text: str, *, structured: bool) -> Shape:
    """Return the reply with the habits in ``names``. ``structured``: whether ``text`` is an object."""
    name = next((name for name in names if name in TEXTS or (structured and name in OBJECTS)), None)
    if name is None:
        return Shape(text)
    return TEXTS[name](text) if name in TEXTS else OBJECTS[name](text)


def refuse(names: AbstractSet[str], request: Mapping[str, Any], tokens: int) -> Refusal | None:
    """Return the error of the habits in ``names`` for a request whose prompt has ``tokens``."""
    asked = Asked(
        format=str((request.get("response_format") or {}).get("type") or ""),
        roles=[str(message.get("role")) for message in request.get("messages", [])],
        members=frozenset(request),
        tokens=tokens,
        most=int(request.get("max_completion_tokens") or request.get("max_tokens") or 0),
        bounded="maxLength" in json.dumps(request.get("response_format")),
    )
    errors = (REFUSALS[name](asked) for name in names if name in REFUSALS)
    return next((error for error in errors if error is not None), None)


def schema_in(request: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the schema of a structured reply: from the request's format, or from its prompt."""
    wanted: Mapping[str, Any] | None = (request.get("response_format") or {}).get("json_schema", {}).get("schema")
    if wanted is not None:
        return wanted
    for message in request.get("messages", []):
        _, rule, rest = str(message.get("content") or "").partition(_RULE)
        if rule:
            schema: Mapping[str, Any] = json.JSONDecoder().raw_decode(rest)[0]
            return schema
    return None
