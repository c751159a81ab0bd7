"""Puts the pieces of a streamed reply together, so that a caller of a whole reply need not know that it was streamed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from openai import AsyncStream
from openai.types.chat import ChatCompletion

CUT = "length"
"""Reason for the end of a reply that is not whole: its limit of tokens, or its time."""
_REASONING = ("reasoning_content", "reasoning")
"""Fields in which servers return the reasoning of a model."""


@dataclass(slots=True)
class Assembly:
    """A reply in pieces. ``size`` is the number of its characters so far, reasoning included."""

    size: int = 0
    ending: str | None = None
    _content: list[str] = field(default_factory=list)
    _reasoning: list[str] = field(default_factory=list)
    _usage: Any = None

    def add(self, chunk: object) -> None:
        """Add a piece. Anything that is not a piece is ignored: the SDK does not check replies."""
        self._usage = getattr(chunk, "usage", None) or self._usage
        choices = getattr(chunk, "choices", None)
        if not isinstance(choices, list) or not choices:
            return
        delta = getattr(choices[0], "delta", None)
        for name, texts in (("content", self._content), *((name, self._reasoning) for name in _REASONING)):
            text = getattr(delta, name, None)
            if isinstance(text, str):
                texts.append(text)
                self.size += len(text)
        self.ending = getattr(choices[0], "finish_reason", None) or self.ending

    def completion(self, *, cut: bool = False) -> ChatCompletion:
        """Return the whole reply as a server without streams would. ``cut``: the reply did not end by itself."""
        message = {"role": "assistant", "content": "".join(self._content), "reasoning_content": "".join(self._reasoning) or None}
        choice = {"index": 0, "finish_reason": CUT if cut else self.ending, "message": message}
        usage = self._usage.model_dump() if hasattr(self._usage, "model_dump") else None
        return ChatCompletion.model_construct(choices=[choice], usage=usage)


async def unstreamed(reply: AsyncStream[Any]) -> ChatCompletion | None:
    """Return the whole reply of a server that ignored the request to stream it. None: the reply is a stream.

    Raises:
        ValueError: it is neither.
    """
    if "json" not in reply.response.headers.get("content-type", ""):
        return None
    await reply.response.aread()
    body = reply.response.json()
    return ChatCompletion.model_construct(**body) if isinstance(body, dict) else ChatCompletion.model_construct()
