"""Reads the completions of the `openai` SDK, whole or streamed. The SDK does not check the replies of servers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from openai import AsyncStream
from openai.types.chat import ChatCompletion

from agentic_rag_backend.domain.usage import Usage, read_reported
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
    prompt_tokens, completion_tokens = map(read_reported, counts)
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


CUT = "length"
"""Reason for the end of a reply that is not whole: its limit of tokens, or its time."""


class BrokenStream(ValueError):
    """A stream that broke off in the middle of a reply."""


@dataclass(slots=True)
class Assembly:
    """A reply in pieces. ``size`` is the number of its characters so far, reasoning included."""

    size: int = 0
    _pieces: list[RawReply] = field(default_factory=list)
    _arguments: list[str] = field(default_factory=list)
    _usage: Any = None

    def add(self, chunk: object) -> None:
        """Add a piece. Anything that is not a piece is ignored: the SDK does not check replies."""
        self._usage = getattr(chunk, "usage", None) or self._usage
        piece = read_chunk(chunk)
        called = arguments_of(chunk)
        self._pieces.append(piece)
        self._arguments.append(called)
        self.size += len(piece.content) + len(piece.reasoning) + len(piece.other) + len(called)

    @property
    def ended(self) -> bool:
        """Whether a piece said why the reply ended."""
        return any(piece.ending is not None for piece in self._pieces)

    def make_completion(self, *, cut: bool = False) -> ChatCompletion:
        """Return the whole reply as a server without streams would. ``cut``: the reply did not end by itself."""
        message: dict[str, Any] = {
            "role": "assistant",
            "content": "".join(piece.content for piece in self._pieces),
            "reasoning_content": "".join(piece.reasoning for piece in self._pieces),
            "refusal": "".join(piece.other for piece in self._pieces) or None,
        }
        if called := "".join(self._arguments):
            message["tool_calls"] = [{"id": "", "type": "function", "function": {"name": "", "arguments": called}}]
        ending = next((piece.ending for piece in reversed(self._pieces) if piece.ending is not None), None)
        choice = {"index": 0, "finish_reason": CUT if cut else ending, "message": message}
        usage = self._usage.model_dump() if hasattr(self._usage, "model_dump") else None
        return ChatCompletion.model_construct(choices=[choice], usage=usage)


def arguments_of(chunk: object) -> str:
    """Return the piece of a tool call's arguments in a piece of a stream. Some servers answer with a call."""
    choices = getattr(chunk, "choices", None)
    calls = getattr(getattr(choices[0], "delta", None), "tool_calls", None) if isinstance(choices, list) and choices else None
    if not isinstance(calls, list) or len(calls) != 1:
        return ""
    arguments = getattr(getattr(calls[0], "function", None), "arguments", None)
    return arguments if isinstance(arguments, str) else ""


async def read_whole_reply(reply: AsyncStream[Any]) -> ChatCompletion | None:
    """Return the whole reply of a server that ignored the request to stream it. None: the reply is a stream.

    Raises:
        ValueError: it is neither.
    """
    if "json" not in reply.response.headers.get("content-type", ""):
        return None
    await reply.response.aread()
    body = reply.response.json()
    return ChatCompletion.model_construct(**body) if isinstance(body, dict) else ChatCompletion.model_construct()
