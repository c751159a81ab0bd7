"""Watch of the event loop: the CPU time that the loop's thread uses between two waits for events.

One such turn runs every callback that is ready. While it runs, nobody else is answered, so a long turn delays every tenant.
The thread's CPU clock measures it: the time does not grow while other processes use the machine. Collections of garbage count.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import re
import selectors
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic, thread_time
from typing import IO

from agentic_rag_backend.telemetry.logs import get_logger
from agentic_rag_backend.telemetry.metrics import count_long_turn, show_longest_turn

LONG_TURN_S = 0.1
"""CPU seconds from which a turn is long: it is counted and logged."""
WINDOW_S = 120
"""Seconds for which the longest turn is shown."""
_PARTS = 12
"""Parts of the window. The oldest part is dropped whole, so a turn is shown for at least 11 twelfths of the window."""
_SAMPLED_EVERY_S = 0.05
_SAMPLES = 4
_FRAMES = 6
_LOGGED_EVERY_S = 10.0
_PACKAGE = "/agentic_rag_backend/"
_THIS = "/telemetry/event_loop.py"
_THREAD = re.compile(r"(?:Current thread|Thread) 0x([0-9a-f]+)")
_FRAME = re.compile(r'  File "([^"]*)", line (\d+) in (\S+)')

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LongTurn:
    """A turn of `LONG_TURN_S` or more.

    Args:
        cpu_s: CPU time of the thread.
        collection_s: the part of it that collected garbage.
        samples: what ran at different moments: functions with file and line, the innermost first. No text of documents.
    """

    cpu_s: float
    collection_s: float = 0.0
    samples: tuple[str, ...] = ()


class Turns:
    """Measures the turns of one loop, in the loop's thread."""

    def __init__(self) -> None:
        self._report: Callable[[LongTurn], None] | None = None
        self._thread = 0
        self._number = 0
        self._began: float | None = None
        self._collection_began, self._collection_s = 0.0, 0.0
        self._longest = 0.0
        self._parts: deque[float] = deque(maxlen=_PARTS - 1)
        self._samples: dict[str, None] = {}

    @property
    def longest_s(self) -> float:
        """CPU seconds of the longest turn of the last `WINDOW_S`."""
        return max(self._longest, *self._parts, 0.0)

    @property
    def watching(self) -> bool:
        """Whether long turns are reported."""
        return self._report is not None

    def begin(self) -> None:
        """Begin a turn: the wait for events has ended."""
        self._number += 1
        self._began = thread_time()

    def end(self) -> LongTurn | None:
        """End a turn: a wait for events begins. Return the turn if it was long and somebody watches."""
        began, self._began = self._began, None
        if began is None:
            return None
        cpu_s = thread_time() - began
        if cpu_s > self._longest:
            self._longest = cpu_s
        watched = cpu_s >= LONG_TURN_S and self._report is not None
        turn = LongTurn(cpu_s, self._collection_s, tuple(self._samples)) if watched else None
        if self._samples:
            self._samples = {}
        self._collection_s = 0.0
        return turn

    def abandon(self) -> None:
        """End a turn without measuring it."""
        self._began = None

    def report(self, turn: LongTurn) -> None:
        """Hand a long turn to the watcher."""
        if self._report is not None:
            self._report(turn)

    def move_window(self) -> None:
        """Begin the next part of the window."""
        self._parts.append(self._longest)
        self._longest = 0.0

    @contextmanager
    def watch_turns(self, report: Callable[[LongTurn], None]) -> Iterator[None]:
        """Report long turns, and sample what runs in them. Nothing before counts. The caller's thread is the loop's."""
        self._report, self._thread = report, threading.get_ident()
        self._longest, self._collection_s = 0.0, 0.0
        self._parts.clear()
        if self._began is not None:
            self.begin()
        stopped = threading.Event()
        sampler = threading.Thread(target=self._sample_until, args=(stopped,), name="event-loop-sampler", daemon=True)
        sampler.start()
        gc.callbacks.append(self._count_collection)
        try:
            yield
        finally:
            gc.callbacks.remove(self._count_collection)
            self._report = None
            stopped.set()
            sampler.join()

    def _sample_until(self, stopped: threading.Event) -> None:
        previous = 0
        with tempfile.TemporaryFile(buffering=0) as file:
            while not stopped.wait(_SAMPLED_EVERY_S):
                number = self._number
                if number == previous and self._began is not None and len(self._samples) < _SAMPLES:
                    sample = _running_in(self._thread, file)
                    if sample and self._number == number and self._began is not None:
                        self._samples[sample] = None
                previous = number

    def _count_collection(self, phase: str, _info: dict[str, int]) -> None:
        if threading.get_ident() != self._thread:
            return
        if phase == "start":
            self._collection_began = thread_time()
        else:
            self._collection_s += thread_time() - self._collection_began


class _TimedSelector(selectors.DefaultSelector):
    """Selector that tells `Turns` when a wait begins and when it ends."""

    def __init__(self, loop: WatchedLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        turns = self._loop.turns
        if (turn := turns.end()) is not None:
            self._loop.call_soon(turns.report, turn)
            timeout = 0
        events: list[tuple[selectors.SelectorKey, int]] = super().select(timeout)
        turns.begin()
        return events


class WatchedLoop(asyncio.SelectorEventLoop):
    """Event loop that measures its turns. Nobody watches them until `watch_turns`, so a start may take long turns."""

    def __init__(self) -> None:
        self.turns = Turns()
        super().__init__(_TimedSelector(self))

    def run_forever(self) -> None:
        """Run until `stop`. What the thread does while the loop does not run is no turn."""
        self.turns.begin()
        try:
            super().run_forever()
        finally:
            self.turns.abandon()


@contextmanager
def watch_turns() -> Iterator[None]:
    """Show the longest turn of the running loop in the metrics, and count and log long turns.

    A loop of another class is not watched.
    """
    loop = asyncio.get_running_loop()
    if not isinstance(loop, WatchedLoop):
        yield
        return
    with loop.turns.watch_turns(_Reporter()), show_longest_turn(lambda: loop.turns.longest_s):
        moving = asyncio.create_task(_move_window(loop.turns), name="event-loop-window")
        try:
            yield
        finally:
            moving.cancel()


async def _move_window(turns: Turns) -> None:
    while True:
        await asyncio.sleep(WINDOW_S / _PARTS)
        turns.move_window()


class _Reporter:
    """Counts long turns, and logs one of them every `_LOGGED_EVERY_S` at most."""

    def __init__(self) -> None:
        self._logged_at: float | None = None
        self._unlogged = 0

    def __call__(self, turn: LongTurn) -> None:
        count_long_turn()
        now = monotonic()
        if self._logged_at is not None and now - self._logged_at < _LOGGED_EVERY_S:
            self._unlogged += 1
            return
        _log.warning(
            "event_loop_blocked",
            cpu_s=round(turn.cpu_s, 3),
            collection_s=round(turn.collection_s, 3),
            running=list(turn.samples),
            unlogged=self._unlogged,
        )
        self._logged_at, self._unlogged = now, 0


def _running_in(thread: int, file: IO[bytes]) -> str:
    """Return the innermost function of a thread, and the functions of this package that called it.

    `faulthandler` reads the stack without a switch of threads. Python code must not read the frames of a thread that may go on.
    """
    file.seek(0)
    file.truncate()
    faulthandler.dump_traceback(file, all_threads=True)
    file.seek(0)
    functions: list[str] = []
    inside = False
    for line in file.read().decode(errors="replace").splitlines():
        if header := _THREAD.match(line):
            inside = int(header[1], 16) == thread
        elif inside and (frame := _FRAME.match(line)) and not frame[1].endswith(_THIS):
            _, inner, path = frame[1].rpartition(_PACKAGE)
            if not functions or inner:
                functions.append(f"{path if inner else path.rpartition('/')[2]}:{frame[2]} {frame[3]}")
    return " < ".join(functions[:_FRAMES])
