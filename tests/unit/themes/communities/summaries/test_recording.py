"""Written summaries are recorded while others are being written."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

import pytest

from agentic_rag_backend.domain.answer import Usage
from agentic_rag_backend.domain.graph import CommunitySummary
from agentic_rag_backend.errors import ModelRefused, ModelReplyInvalid, ModelUnavailable
from agentic_rag_backend.themes.communities.summaries.recording import write_summaries
from agentic_rag_backend.themes.communities.summaries.summary_writing import WrittenSummary


def written(fingerprint: str, failure: ModelUnavailable | None = None) -> WrittenSummary:
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
    return WrittenSummary(summary, Usage(10, 1, 1), failure)


class Stopped(Exception):
    pass


class Record:
    """Records summaries. ``first`` is set with the first one."""

    def __init__(self) -> None:
        self.saved: list[str] = []
        self.first = asyncio.Event()

    async def save(self, summaries: Sequence[CommunitySummary]) -> None:
        self.saved += [summary.fingerprint for summary in summaries]
        self.first.set()


async def nothing() -> None:
    return None


async def give_up(error: ModelUnavailable) -> bool:
    return False


async def test_the_first_is_on_record_before_the_last_is_written() -> None:
    record = Record()

    async def quick() -> WrittenSummary:
        return written("quick")

    async def slow() -> WrittenSummary:
        await record.first.wait()
        assert record.saved == ["quick"]
        return written("slow")

    async with asyncio.timeout(30):
        found = await write_summaries([slow, quick], record.save, nothing, give_up)
    assert [each.summary.fingerprint for each in found] == ["slow", "quick"]
    assert record.saved == ["quick", "slow"]


async def test_one_that_fails_takes_no_other_with_it() -> None:
    record = Record()

    async def failing() -> WrittenSummary:
        raise ValueError("no")

    async def fine() -> WrittenSummary:
        return written("fine")

    with pytest.raises(ValueError, match="no"):
        await write_summaries([failing, fine], record.save, nothing, give_up)
    assert record.saved == ["fine"]


async def test_a_request_to_stop_cancels_running_writers() -> None:
    record, ended = Record(), asyncio.Event()

    async def endless() -> WrittenSummary:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    async def stop() -> None:
        raise Stopped

    with pytest.raises(Stopped):
        async with asyncio.timeout(30):
            await write_summaries([endless], record.save, stop, give_up)
    assert ended.is_set()


async def test_who_asks_to_stop_is_heard_though_one_after_the_other_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    record, looks = Record(), 0
    monkeypatch.setattr("agentic_rag_backend.themes.communities.summaries.recording._RECHECK_INTERVAL_S", 0.01)

    async def after(number: int) -> WrittenSummary:
        for _ in range(number):
            await asyncio.sleep(0.005)
        return written(str(number))

    async def look() -> None:
        nonlocal looks
        looks += 1

    await write_summaries([partial(after, number) for number in range(12)], record.save, look, give_up)
    assert looks
    assert len(record.saved) == 12


class Model:
    """Fails in its first calls with the given errors, then writes."""

    def __init__(self, *errors: ModelUnavailable) -> None:
        self.errors = list(errors)
        self.calls = 0

    async def write(self) -> WrittenSummary:
        self.calls += 1
        if self.errors:
            return written("extractive", self.errors.pop(0))
        return written("by the model")


async def test_a_model_that_is_away_is_asked_again_for_what_it_did_not_write() -> None:
    record, waits = Record(), 0
    away, fine = Model(ModelUnavailable("away"), ModelUnavailable("away")), Model()

    async def wait(error: ModelUnavailable) -> bool:
        nonlocal waits
        waits += 1
        assert error.message == "away"
        return True

    found = await write_summaries([away.write, fine.write], record.save, nothing, wait)
    assert [each.summary.fingerprint for each in found] == ["by the model", "by the model"]
    assert (away.calls, fine.calls, waits) == (3, 1, 2)
    assert found[0].usage == Usage(30, 3, 3), "what the failed calls cost counts"
    assert record.saved == ["by the model", "by the model"], "what will be written later is not saved"


async def test_after_the_wait_the_extractive_summary_stays() -> None:
    record, away = Record(), Model(ModelUnavailable("away"))
    (found,) = await write_summaries([away.write], record.save, nothing, give_up)
    assert found.failure is not None
    assert record.saved == ["extractive"]


@pytest.mark.parametrize("error", [ModelReplyInvalid("half a reply"), ModelRefused("key")])
async def test_what_waiting_does_not_mend_is_not_asked_again(error: ModelUnavailable) -> None:
    record, model = Record(), Model(error)

    async def wait(error: ModelUnavailable) -> bool:
        raise AssertionError

    (found,) = await write_summaries([model.write], record.save, nothing, wait)
    assert (found.failure, model.calls, record.saved) == (error, 1, ["extractive"])
