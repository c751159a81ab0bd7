"""Reads the completions of the `openai` SDK, which does not check the replies of servers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from openai.types.chat import ChatCompletion

from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.language.tokens import estimate_tokens, text_tokens
from agentic_rag_backend.models.llm.base import Message
from agentic_rag_backend.models.llm.replies.reply_reading import RawReply

FILTERED = "content_filter"
"""Ending of a reply that a filter of the endpoint removed."""
_REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking")
_THOUGHT = ("thinking", "reasoning")
"""Types of the parts of a content that are reasoning: Mistral, and servers with the parts of other interfaces."""


def read_completion(reply: object) -> RawReply | None:
    """Return the texts of a completion. None if the reply is not a completion."""
    choices = reply.choices if isinstance(reply, ChatCompletion) else None
    if not isinstance(choices, list) or not choices:
        return None
    message = getattr(choices[0], "message", None)
    content = getattr(message, "content", None)
    if message is None or not isinstance(content, str | list | None):
        return None
    text, thought = _texts_of(content)
    if isinstance(content, list) and content and not (text or thought):
        return None
    return RawReply(
        text,
        reasoning=thought or _reasoning_of(message),
        other=_called_with(message) or _read_text(getattr(message, "refusal", None)),
        ending=_ending_of(choices[0]),
    )


def read_chunk(chunk: object) -> RawReply:
    """Return the texts of a piece of a stream. ``ending`` is None if the reply goes on."""
    choices = getattr(chunk, "choices", None)
    if not isinstance(choices, list) or not choices:
        return RawReply("")
    delta = getattr(choices[0], "delta", None)
    text, thought = _texts_of(getattr(delta, "content", None))
    refusal = _read_text(getattr(delta, "refusal", None))
    return RawReply(text, thought or _reasoning_of(delta), refusal, _ending_of(choices[0]))


def usage_of(reply: object) -> Usage | None:
    """Return the token counts of a server, if it reports them."""
    usage = getattr(reply, "usage", None)
    counts = [getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens")]
    prompt_tokens, completion_tokens = (count if isinstance(count, int) and count >= 0 else None for count in counts)
    return None if prompt_tokens is None or completion_tokens is None else Usage(prompt_tokens, completion_tokens)


def estimated_usage(messages: Iterable[Message], text: str) -> Usage:
    """Return an estimate of the tokens of a request and its reply."""
    return Usage(text_tokens(message.content for message in messages), estimate_tokens(text))


def _texts_of(content: object) -> tuple[str, str]:
    """Return the text and the reasoning of a content, which is a text or a list of parts."""
    if not isinstance(content, list):
        return _read_text(content), ""
    parts = [part for part in content if isinstance(part, dict)]
    text = "".join(_read_text(part.get("text")) for part in parts if part.get("type") not in _THOUGHT)
    thought = "".join(_thought_of(part) for part in parts if part.get("type") in _THOUGHT)
    return text, thought


def _thought_of(part: dict[str, Any]) -> str:
    value = part.get("thinking") or part.get("text") or part.get("reasoning")
    return _texts_of(value)[0]


def _reasoning_of(message: object) -> str:
    return next((text for name in _REASONING_FIELDS if (text := _read_text(getattr(message, name, None)))), "")


def _called_with(message: object) -> str:
    """Return the arguments of the only tool call. Some servers answer a request for an object with one."""
    calls = getattr(message, "tool_calls", None)
    if not isinstance(calls, list) or len(calls) != 1:
        return ""
    return _read_text(getattr(getattr(calls[0], "function", None), "arguments", None))


def _ending_of(choice: object) -> str | None:
    ending = getattr(choice, "finish_reason", None)
    return None if ending is None else str(ending)


def _read_text(value: object) -> str:
    return value if isinstance(value, str) else ""
