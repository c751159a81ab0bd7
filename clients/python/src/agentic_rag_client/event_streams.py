"""Server-sent events."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from agentic_rag_client.blocking import iterate_to_end, run_to_end

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event as it was sent."""

    id: str
    name: str
    data: dict[str, Any]


class EventParser:
    """Parses blocks of an event stream (WHATWG, server-sent events). A block may end anywhere."""

    def __init__(self) -> None:
        self._rest = b""
        self._id = self._name = ""
        self._data: list[str] = []

    def feed(self, block: bytes) -> Iterator[ServerEvent]:
        """Yield the events that are complete."""
        *lines, self._rest = (self._rest + block).replace(b"\r\n", b"\n").split(b"\n")
        for line in lines:
            if line.strip(b"\r"):
                self._read_line(line.rstrip(b"\r").decode("utf-8", errors="replace"))
            elif self._data:
                data = json.loads("\n".join(self._data))
                yield ServerEvent(self._id, self._name or "message", data if isinstance(data, dict) else {"data": data})
                self._name, self._data = "", []

    def _read_line(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "id":
            self._id = value
        elif name == "event":
            self._name = value
        elif name == "data":
            self._data.append(value)


class AsyncEventStream(Generic[T]):
    """Events of an answer or a job. Close it, or use it with ``async with``, unless it is read to its end."""

    def __init__(self, events: AsyncGenerator[T, None]) -> None:
        self.events = events

    def __aiter__(self) -> AsyncIterator[T]:
        return self.events

    async def close(self) -> None:
        """End the stream. An answer that is being written is stopped."""
        await self.events.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()


class EventStream(Generic[T]):
    """Events of an answer or a job. Close it, or use it with ``with``, unless it is read to its end."""

    def __init__(self, stream: AsyncEventStream[T]) -> None:
        self._stream = stream
        self._events = iterate_to_end(stream.events)

    def __iter__(self) -> Iterator[T]:
        return self._events

    def close(self) -> None:
        """End the stream. An answer that is being written is stopped."""
        run_to_end(self._stream.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
