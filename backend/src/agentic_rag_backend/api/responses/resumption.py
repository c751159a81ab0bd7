"""Streamed answers that outlive a connection: their events are kept for a while, in the memory of this process.

One task makes the events of an answer, and any number of connections of the same key follow them. An answer that nobody
follows is stopped after `GRACE_S`, or, if the request asked for a resumable answer, when its events are dropped. Events are
dropped ``keep_s`` after the last connection left, after a newer stream needs their memory, and at the end of the process.
Another server process does not know them.
"""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import orjson
from sse_starlette import ServerSentEvent

from agentic_rag_backend.api.middleware import Deadline
from agentic_rag_backend.api.responses.error_responses import problem_body
from agentic_rag_backend.domain.tenant import Principal
from agentic_rag_backend.errors import AgenticRagError, AnswerStopped, InvalidRequest, NotFound
from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)

GRACE_S = 1.0
"""Seconds after which an answer that nobody follows is stopped, unless it is resumable."""
MAX_UNHEARD_PER_TENANT = 16
"""Streams of a tenant that are kept although nobody follows them. The oldest is dropped."""
EVENT_BYTES = 200
"""Memory of an event besides its text."""
Events = AsyncGenerator[ServerSentEvent, None]


@dataclass(frozen=True, slots=True)
class StreamOwner:
    """The key that asked, and its tenant. Nobody else can follow a stream."""

    tenant: str
    key: str

    @classmethod
    def of(cls, caller: Principal) -> StreamOwner:
        """Return the owner of the caller's streams."""
        return cls(caller.tenant.id.value, caller.key_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOpening:
    """What a new stream needs.

    Args:
        owner: of the request.
        events: makes the answer. It is closed when the stream stops.
        fingerprint: of the request, see `fingerprint_of`.
        chunk_ids: chunks that the events quote. The stream is resumed only while all of them are visible.
        resumable: whether the answer goes on although nobody follows it.
        deadline: time limit of the answer, if the request sets one.
        request_id: of the request, for problems.
    """

    owner: StreamOwner
    events: Events
    fingerprint: str
    chunk_ids: Collection[str] = ()
    resumable: bool = False
    deadline: Deadline | None = None
    request_id: str = ""


class AnswerStream:
    """The events of one answer, numbered from 1."""

    def __init__(self, opening: StreamOpening, streams: AnswerStreams) -> None:
        self.id = f"ans_{uuid.uuid4().hex}"
        self.opening = opening
        self.ended = False
        self.size = 0
        self._streams = streams
        self._events: list[tuple[str, str]] = []
        self._dropped = 0
        self._places: dict[object, int] = {}
        self._changed = asyncio.Event()
        self._advanced = asyncio.Event()
        self._timers: list[asyncio.TimerHandle] = []
        self._awaited = True
        self._task = asyncio.create_task(self._make())
        self._task.add_done_callback(lambda _: self._end())
        # A client may leave before it reads the first event.
        self._count_down(max(streams.keep_s, GRACE_S))

    @property
    def heard(self) -> bool:
        """Whether a connection follows the stream, or its first connection is about to."""
        return bool(self._places) or self._awaited

    @property
    def waiting(self) -> bool:
        """Whether a connection has not read all events yet."""
        return self._awaited or min(self._places.values(), default=self.last) < self.last

    @property
    def dropped(self) -> int:
        """Number of the newest event that is not kept."""
        return self._dropped

    @property
    def last(self) -> int:
        """Number of the newest event."""
        return self._dropped + len(self._events)

    async def follow(self, after: int) -> Events:
        """Yield the events after number ``after``, which is at least ``dropped``, those to come as well."""
        listener = object()
        self._places[listener] = after
        self._awaited = False
        self._keep_alive()
        try:
            while True:
                changed = self._changed
                while self._places[listener] < self.last:
                    number = self._places[listener] + 1
                    name, data = self._events[number - self._dropped - 1]
                    yield ServerSentEvent(data, event=name, id=str(number))
                    self._places[listener] = number
                    self._advanced.set()
                if self.ended:
                    return
                await changed.wait()
        finally:
            del self._places[listener]
            self._advanced.set()
            if not self._places:
                self._count_down(self._streams.keep_s)
                self._streams.left(self)

    def stop(self) -> None:
        """End the answer and its model call. The events so far stay."""
        self._task.cancel()

    def drop_read(self) -> None:
        """Drop the events that every connection has read, to free memory. They cannot be resumed."""
        least = self._dropped if self._awaited else min(self._places.values(), default=self.last)
        dropped = self._events[: least - self._dropped]
        self._events = self._events[len(dropped) :]
        self._dropped += len(dropped)
        self.size -= sum(_size(data) for _, data in dropped)

    async def close(self) -> None:
        """Stop the answer and wait for its end."""
        self._keep_alive()
        self.stop()
        await asyncio.wait([self._task])

    async def _make(self) -> None:
        """Append the events of the answer until its end, its time limit or `stop`."""
        deadline = self.opening.deadline
        try:
            async with asyncio.timeout_at(deadline.at if deadline is not None else None):
                async with aclosing(self.opening.events) as events:
                    async for event in events:
                        self._append(event.event or "message", str(event.data))
                        await self._until_room()
        except TimeoutError:
            if deadline is None:
                raise
            self._append_error(deadline.error())
        except asyncio.CancelledError:
            self._append_error(AnswerStopped("the answer was stopped because nobody followed it; ask again"))
        except AgenticRagError as error:
            self._append_error(error)

    def _end(self) -> None:
        crash = None if self._task.cancelled() else self._task.exception()
        if crash is not None:
            _log.error("answer_stream_crashed", exc_info=crash)
            self._append_error(AgenticRagError("the answer failed with an internal error"))
        self.ended = True
        self._tell()

    async def _until_room(self) -> None:
        """Wait while the memory is full of events that a connection has not read: a slow reader slows its answer down."""
        while not self._streams.make_room(self):
            self._advanced.clear()
            await self._advanced.wait()

    def _append(self, name: str, data: str) -> None:
        self._events.append((name, data))
        self.size += _size(data)
        self._tell()

    def _append_error(self, error: AgenticRagError) -> None:
        problem = {"v": 1, **problem_body(error, self.opening.request_id)}
        self._append("error", orjson.dumps(problem).decode())

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _keep_alive(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

    def _count_down(self, keep_s: float) -> None:
        loop = asyncio.get_running_loop()
        self._keep_alive()
        self._timers = [loop.call_later(keep_s, self._streams.drop, self)]
        if not self.opening.resumable:
            self._timers.append(loop.call_later(min(GRACE_S, keep_s), self.stop))


def _size(data: str) -> int:
    """Return the memory of an event in bytes, about."""
    return len(data) + EVENT_BYTES


class AnswerStreams:
    """The streams of this process.

    Args:
        keep_s: seconds that events are kept after the last connection left; 0: they cannot be resumed.
        max_bytes: memory of all events. Streams that nobody follows are dropped first, the oldest before the others. A stream
            that is followed then keeps only the events that its connections have not read.
    """

    def __init__(self, *, keep_s: float, max_bytes: int) -> None:
        self.keep_s = keep_s
        self._max_bytes = max_bytes
        self._streams: dict[str, AnswerStream] = {}

    def open(self, opening: StreamOpening) -> AnswerStream:
        """Start the answer and return its stream."""
        stream = AnswerStream(opening, self)
        self._streams[stream.id] = stream
        return stream

    def find(self, owner: StreamOwner, stream_id: str) -> AnswerStream:
        """Return a stream of the owner.

        Raises:
            NotFound: it has expired, belongs to another key, or another process has it.
        """
        stream = self._streams.get(stream_id)
        if stream is None or stream.opening.owner != owner:
            raise NotFound(
                "this process keeps no such answer for this key; an answer is kept for "
                f"{self.keep_s:g} s (STREAM_RESUME_S) after its last connection: ask again"
            )
        return stream

    def find_repeated_stream(self, owner: StreamOwner, fingerprint: str, after: int) -> AnswerStream:
        """Return the stream of an earlier request with the same body, of which event ``after`` exists.

        Raises:
            NotFound: there is none, or more than one.
        """
        streams = [
            stream
            for stream in self._streams.values()
            if (stream.opening.owner, stream.opening.fingerprint) == (owner, fingerprint)
        ]
        candidates = [stream for stream in streams if stream.last >= after]
        if len(candidates) != 1:
            raise NotFound(
                f"Last-Event-ID {after} fits {len(candidates)} answers to this request that this process keeps; "
                "send the request without Last-Event-ID, or follow the address in Content-Location"
            )
        return candidates[0]

    def make_room(self, stream: AnswerStream) -> bool:
        """Free memory for events of ``stream``, and return whether it has room for a further event."""
        while self._size() > self._max_bytes:
            unheard = next(
                (candidate for candidate in self._streams.values() if not candidate.heard and candidate is not stream), None
            )
            if unheard is None:
                stream.drop_read()
                # One event may be larger than the memory.
                return self._size() <= self._max_bytes or not stream.waiting
            self.drop(unheard)
        return True

    def left(self, stream: AnswerStream) -> None:
        """Note that the last connection of a stream left it, and drop the oldest such stream above the tenant's number."""
        if self._streams.pop(stream.id, None) is None:
            return
        self._streams[stream.id] = stream
        tenant = stream.opening.owner.tenant
        unheard = [stream for stream in self._streams.values() if not stream.heard and stream.opening.owner.tenant == tenant]
        for oldest in unheard[:-MAX_UNHEARD_PER_TENANT]:
            self.drop(oldest)

    def drop(self, stream: AnswerStream) -> None:
        """Forget a stream, and stop its answer if it has not ended."""
        self._streams.pop(stream.id, None)
        stream.stop()

    async def close(self) -> None:
        """Stop all answers."""
        streams: Sequence[AnswerStream] = list(self._streams.values())
        self._streams.clear()
        await asyncio.gather(*(stream.close() for stream in streams))

    def _size(self) -> int:
        return sum(stream.size for stream in self._streams.values())


def fingerprint_of(body: Any) -> str:
    """Return a hash of a request's body, which is equal for equal values."""
    return hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS, default=str)).hexdigest()


def place_of(last_event_id: str | None) -> int:
    """Return the number in ``Last-Event-ID``; 0 without one.

    Raises:
        InvalidRequest: it is not a number of an event.
    """
    number = (last_event_id or "0").strip()
    if not number.isascii() or not number.isdigit() or len(number) > 9:
        raise InvalidRequest(f"Last-Event-ID must be the number of an event; got {number[:80]!r}")
    return int(number)
