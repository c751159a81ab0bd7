"""The watch of the event loop: what a turn is, and what is reported of a long one."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Coroutine
from typing import Any

import pytest
import structlog

from agentic_rag_backend.telemetry import event_loop
from agentic_rag_backend.telemetry.event_loop import LONG_TURN_S, LongTurn, WatchedLoop, watch_turns
from agentic_rag_backend.telemetry.metrics import REGISTRY

BURST_S = 1.5 * LONG_TURN_S


def use_cpu(seconds: float) -> None:
    begun = time.thread_time()
    while time.thread_time() - begun < seconds:
        pass


def run(work: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=WatchedLoop) as runner:
        runner.run(work)


def long_turns(work: Any) -> list[LongTurn]:
    """Return the long turns of a coroutine function."""
    turns: list[LongTurn] = []

    async def watched() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, WatchedLoop)
        with loop.turns.watch_turns(turns.append):
            await work()
            await asyncio.sleep(0)  # ends the turn
            await asyncio.sleep(0)  # reports it

    run(watched())
    return turns


def test_a_turn_counts_the_cpu_time_of_all_its_callbacks() -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        for _ in range(3):
            loop.call_soon(use_cpu, BURST_S / 3)
        await asyncio.sleep(0)

    (turn,) = long_turns(work)
    assert BURST_S <= turn.cpu_s < 10 * BURST_S


def test_waiting_and_work_in_threads_and_short_turns_do_not_count() -> None:
    async def work() -> None:
        await asyncio.sleep(BURST_S)
        time.sleep(BURST_S)  # noqa: ASYNC251 - the thread waits, and uses no CPU
        await asyncio.to_thread(use_cpu, BURST_S)
        for _ in range(4):
            use_cpu(BURST_S / 4)
            await asyncio.sleep(0)

    assert long_turns(work) == []


def test_what_the_thread_does_while_the_loop_does_not_run_is_no_turn() -> None:
    turns: list[LongTurn] = []
    with asyncio.Runner(loop_factory=WatchedLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, WatchedLoop)
        with loop.turns.watch_turns(turns.append):
            for _ in range(2):
                runner.run(asyncio.sleep(0))
                use_cpu(BURST_S)
            runner.run(asyncio.sleep(0))
    assert turns == []


def test_a_report_names_the_function_that_ran_and_no_text() -> None:
    async def work() -> None:
        secret = "a sentence of a document"
        use_cpu(5 * BURST_S)
        assert secret

    (turn,) = long_turns(work)
    assert turn.samples
    assert all("use_cpu" in sample for sample in turn.samples)
    assert "sentence" not in str(turn)


def test_a_report_has_the_share_of_garbage_collection() -> None:
    async def work() -> None:
        begun = time.thread_time()
        while time.thread_time() - begun < BURST_S:
            gc.collect()

    (turn,) = long_turns(work)
    assert turn.collection_s > turn.cpu_s / 2


def test_the_metric_is_the_longest_turn_of_its_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_loop, "WINDOW_S", 0.6)
    shown = []

    def show() -> None:
        shown.append(REGISTRY.get_sample_value("agentic_rag_event_loop_longest_turn_seconds") or 0.0)

    async def work() -> None:
        use_cpu(BURST_S)
        with watch_turns():
            await asyncio.sleep(0)
            show()
            use_cpu(BURST_S)
            await asyncio.sleep(0)
            show()
            await asyncio.sleep(0.05)
            show()
            while shown[-1] >= BURST_S:
                await asyncio.sleep(0.05)
                show()

    run(work())
    before, after, *_, later = shown
    assert before < BURST_S <= after
    assert later < BURST_S


def test_long_turns_are_all_counted_and_seldom_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(event_loop, "monotonic", lambda: clock[0])

    def counted() -> float:
        return REGISTRY.get_sample_value("agentic_rag_event_loop_long_turns_total") or 0.0

    before = counted()
    with structlog.testing.capture_logs() as logged:
        report = event_loop._Reporter()
        for second in (0, 1, 2, 11):
            clock[0] = float(second)
            report(LongTurn(0.25, 0.0, ("knowledge.resolution.group_names:1",)))
    assert counted() - before == 4
    assert [(line["event"], line["log_level"], line["unlogged"]) for line in logged] == [
        ("event_loop_blocked", "warning", 0),
        ("event_loop_blocked", "warning", 2),
    ]
    assert logged[0]["running"] == ["knowledge.resolution.group_names:1"]


def test_another_loop_is_not_watched() -> None:
    async def work() -> None:
        with watch_turns():
            await asyncio.sleep(0)

    with asyncio.Runner() as runner:
        runner.run(work())
