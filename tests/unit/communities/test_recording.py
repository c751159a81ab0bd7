"""What was written is on record while the rest is being written."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from agentic_rag_backend.communities.recording import all_recorded
from agentic_rag_backend.communities.writing import Written
from agentic_rag_backend.domain.graph import CommunitySummary


def written(fingerprint: str) -> Written:
    summary = CommunitySummary(
        fingerprint=fingerprint,
        prompt_version="p",
        model="m",
        title=None,
        names=(),
        keywords=(),
        summary="Said.",
        findings=(),
        sources=(),
        rating=1.0,
        tokens=0,
    )
    return Written(summary)


class Stopped(Exception):
    pass


class Record:
    """Where summaries are put; ``first`` is set when there is one."""

    def __init__(self) -> None:
        self.saved: list[str] = []
        self.first = asyncio.Event()

    async def save(self, summaries: Sequence[CommunitySummary]) -> None:
        self.saved += [summary.fingerprint for summary in summaries]
        self.first.set()


async def nothing() -> None:
    return None


async def test_the_first_is_on_record_before_the_last_is_written() -> None:
    record = Record()

    async def quick() -> Written:
        return written("quick")

    async def slow() -> Written:
        await record.first.wait()
        assert record.saved == ["quick"]
        return written("slow")

    tasks = [asyncio.ensure_future(each) for each in (slow(), quick())]
    async with asyncio.timeout(30):
        found = await all_recorded(tasks, record.save, nothing)
    assert [each.summary.fingerprint for each in found] == ["slow", "quick"]
    assert record.saved == ["quick", "slow"]


async def test_one_that_fails_takes_no_other_with_it() -> None:
    record = Record()

    async def failing() -> Written:
        raise ValueError("no")

    async def fine() -> Written:
        return written("fine")

    with pytest.raises(ValueError, match="no"):
        await all_recorded([asyncio.ensure_future(failing()), asyncio.ensure_future(fine())], record.save, nothing)
    assert record.saved == ["fine"]


async def test_who_asks_to_stop_ends_what_is_under_way() -> None:
    record = Record()

    async def endless() -> Written:
        await asyncio.Event().wait()
        raise AssertionError

    async def stop() -> None:
        raise Stopped

    tasks = [asyncio.ensure_future(endless())]
    with pytest.raises(Stopped):
        async with asyncio.timeout(30):
            await all_recorded(tasks, record.save, stop)
    assert tasks[0].cancelled()


async def test_who_asks_to_stop_is_heard_though_one_after_the_other_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    record, looks = Record(), 0
    monkeypatch.setattr("agentic_rag_backend.communities.recording._LOOK_AGAIN_S", 0.01)

    async def after(number: int) -> Written:
        for _ in range(number):
            await asyncio.sleep(0.005)
        return written(str(number))

    async def look() -> None:
        nonlocal looks
        looks += 1

    await all_recorded([asyncio.ensure_future(after(number)) for number in range(12)], record.save, look)
    assert looks
    assert len(record.saved) == 12
