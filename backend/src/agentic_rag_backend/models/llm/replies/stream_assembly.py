"""Puts the pieces of a streamed reply together, so that a caller of a whole reply need not know that it was streamed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from openai import AsyncStream
from openai.types.chat import ChatCompletion

from agentic_rag_backend.models.llm.replies.completions import read_chunk
from agentic_rag_backend.models.llm.replies.reply_reading import RawReply

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
