"""Kept streams of answers: their ends, and the bounds of their memory and number."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

import pytest
from sse_starlette import ServerSentEvent

from agentic_rag_backend.api.middleware import Deadline
from agentic_rag_backend.api.responses import resumption
from agentic_rag_backend.api.responses.resumption import (
    MAX_UNHEARD_PER_TENANT,
    AnswerStream,
    AnswerStreams,
    StreamOpening,
    StreamOwner,
    fingerprint_of,
)
from agentic_rag_backend.errors import ModelUnavailable, NotFound

OWNER = StreamOwner("tenant", "key")
ENDS_WITHIN_S = 20


@pytest.fixture
async def streams() -> AsyncIterator[AnswerStreams]:
    made = AnswerStreams(keep_s=60, max_bytes=100_000)
    yield made
    await made.close()


def events(*texts: str, closed: list[str] | None = None) -> AsyncGenerator[ServerSentEvent, None]:
    """Return events of an answer; "…" never ends, an exception is raised."""

    async def make() -> AsyncGenerator[ServerSentEvent, None]:
        try:
            for text in texts:
                if text == "…":
                    await asyncio.sleep(3600)
                if text == "crash":
                    raise ZeroDivisionError
                if text == "unavailable":
                    raise ModelUnavailable("the model does not respond")
                yield ServerSentEvent(text, event="token")
        finally:
            if closed is not None:
                closed.append("closed")

    return make()


def opened(
    streams: AnswerStreams, *texts: str, owner: StreamOwner = OWNER, closed: list[str] | None = None, **more: object
) -> AnswerStream:
    made = StreamOpening(owner=owner, events=events(*texts, closed=closed), fingerprint="f", **more)  # type: ignore[arg-type]
    return streams.open(made)


async def read(stream: AnswerStream, after: int = 0, most: int = 1000) -> list[tuple[str, str]]:
    """Return number and data of the next events."""
    found: list[tuple[str, str]] = []
    following = stream.follow(after)
    async with asyncio.timeout(ENDS_WITHIN_S):
        async for event in following:
            found.append((str(event.id), str(event.data)))
            if len(found) == most:
                break
    await following.aclose()
    return found


async def until_ended(stream: AnswerStream) -> None:
    async with asyncio.timeout(ENDS_WITHIN_S):
        while not stream.ended:
            await asyncio.sleep(0.005)


async def test_events_are_read_again_from_any_place(streams: AnswerStreams) -> None:
    stream = opened(streams, "a", "b", "c")
    assert await read(stream) == [("1", "a"), ("2", "b"), ("3", "c")]
    assert await read(stream, 2) == [("3", "c")]
    assert await read(stream, 3) == []
    assert streams.find(OWNER, stream.id) is stream


async def test_failures_are_the_last_event(streams: AnswerStreams) -> None:
    for text, code in (("unavailable", "model_unavailable"), ("crash", "internal_error")):
        found = await read(opened(streams, "a", text))
        assert found[0] == ("1", "a")
        assert f'"code":"{code}"' in found[1][1]
        assert "ZeroDivision" not in found[1][1]


async def test_an_answer_ends_at_its_deadline(streams: AnswerStreams) -> None:
    closed: list[str] = []
    deadline = Deadline(asyncio.get_running_loop().time() + 0.05, "50 ms (timeout_ms)", asked_for=True)
    found = await read(opened(streams, "a", "…", closed=closed, deadline=deadline))
    assert '"code":"timeout"' in found[-1][1]
    assert closed == ["closed"]


async def test_an_answer_that_nobody_follows_is_stopped(streams: AnswerStreams, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resumption, "GRACE_S", 0.02)
    closed: list[str] = []
    left, never = opened(streams, "a", "…", closed=closed), opened(streams, "a", "…", closed=closed)
    asked = opened(streams, "a", "…", resumable=True)
    await read(left, most=1)
    await read(asked, most=1)
    await until_ended(left)
    await until_ended(never)
    assert closed == ["closed", "closed"]
    assert '"code":"answer_stopped"' in (await read(left, 1))[0][1]
    await asyncio.sleep(0.1)
    assert not asked.ended


async def test_streams_are_dropped_some_time_after_their_last_connection() -> None:
    streams = AnswerStreams(keep_s=0.05, max_bytes=100_000)
    stream = opened(streams, "a", "…", resumable=True)
    following = stream.follow(0)
    await anext(following)
    await asyncio.sleep(0.15)
    assert streams.find(OWNER, stream.id) is stream, "a stream that is followed stays"
    await following.aclose()
    await until_ended(stream)
    with pytest.raises(NotFound, match=r"0\.05 s \(STREAM_RESUME_S\)"):
        streams.find(OWNER, stream.id)
    await streams.close()


async def test_only_the_owner_finds_a_stream(streams: AnswerStreams) -> None:
    stream = opened(streams, "a")
    for other in (StreamOwner("tenant", "other"), StreamOwner("other", "key")):
        with pytest.raises(NotFound):
            streams.find(other, stream.id)
        with pytest.raises(NotFound):
            streams.find_repeated_stream(other, "f", 0)
    assert streams.find_repeated_stream(OWNER, "f", 0) is stream
    await read(stream)
    with pytest.raises(NotFound, match="fits 0 answers"):
        streams.find_repeated_stream(OWNER, "f", 2)
    opened(streams, "b")
    with pytest.raises(NotFound, match="fits 2 answers"):
        streams.find_repeated_stream(OWNER, "f", 0)


async def test_memory_is_bounded(streams: AnswerStreams) -> None:
    old = [opened(streams, "x" * 30_000) for _ in range(2)]
    for stream in old:
        await read(stream)
    new = opened(streams, *("y" * 10_000 for _ in range(20)))
    assert len(await read(new)) == 20
    for stream in old:
        with pytest.raises(NotFound):
            streams.find(OWNER, stream.id)
    assert new.size <= 100_000
    assert new.dropped > 0
    assert len(await read(new, new.dropped)) == 20 - new.dropped


async def test_a_slow_connection_loses_no_event(streams: AnswerStreams) -> None:
    """Memory gives way to a connection that has not read: it gets every event, and then nothing is kept."""
    stream = opened(streams, *("y" * 10_000 for _ in range(20)))
    following = stream.follow(0)
    numbers = []
    async for event in following:
        await asyncio.sleep(0.002)
        numbers.append(int(str(event.id)))
    assert numbers == list(range(1, 21))


async def test_the_streams_that_nobody_follows_are_bounded_for_a_tenant(streams: AnswerStreams) -> None:
    other = opened(streams, "a", owner=StreamOwner("other", "key"))
    await read(other)
    made = [opened(streams, "a", "…", resumable=True) for _ in range(MAX_UNHEARD_PER_TENANT + 3)]
    for stream in made:
        await read(stream, most=1)
    for stream in made[:3]:
        await until_ended(stream)
        with pytest.raises(NotFound):
            streams.find(OWNER, stream.id)
    assert all(streams.find(OWNER, stream.id) is stream for stream in made[3:])
    assert streams.find(other.opening.owner, other.id) is other


async def test_closing_stops_every_answer() -> None:
    streams, closed = AnswerStreams(keep_s=60, max_bytes=1000), list[str]()
    made = [opened(streams, "a", "…", closed=closed, resumable=True) for _ in range(3)]
    await read(made[0], most=1)
    await streams.close()
    assert all(stream.ended for stream in made)
    assert closed == ["closed"] * 3


def test_equal_bodies_have_equal_fingerprints() -> None:
    assert fingerprint_of({"a": 1, "b": [2]}) == fingerprint_of({"b": [2], "a": 1})
    assert fingerprint_of({"a": 1}) != fingerprint_of({"a": 2})
