"""Long work: its progress on stderr, and Ctrl-C, which ends a command with exit code 130 and reports what continues."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from agentic_rag_backend.cli.output import console, plain

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from rich.progress import Progress, ProgressColumn, TaskID

    from agentic_rag_backend.cli.session.client import Client

T = TypeVar("T")
UNFINISHED = "interrupted; queued jobs continue at the next start"


class Interrupted(KeyboardInterrupt):
    """The user pressed Ctrl-C. ``message`` reports what continues.

    It is not an `Exception`, so that open stores close without waiting for running jobs.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class CommandStopped(Exception):
    """End of a command after Ctrl-C. Typer would turn `Interrupted` into an exit code and lose its message."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def run_async(work: Coroutine[Any, Any, T], *, loop: Callable[[], AbstractEventLoop] | None = None) -> T:
    """Run a command's coroutine to its end and return what it returns.

    Args:
        loop: makes the event loop; by default, asyncio does.

    Raises:
        CommandStopped: Ctrl-C.
    """
    import asyncio

    try:
        with asyncio.Runner(loop_factory=loop) as runner:
            return runner.run(work)
    except Interrupted as interrupted:
        raise CommandStopped(interrupted.message) from None
    except KeyboardInterrupt:
        raise CommandStopped(UNFINISHED) from None


@contextmanager
def leaving(message: str) -> Iterator[None]:
    """Turn asyncio's cancellation after Ctrl-C into `Interrupted`. An `Interrupted` from inside keeps its message."""
    from asyncio import CancelledError

    try:
        yield
    except CancelledError:
        raise Interrupted(message) from None


def describe_left_job(client: Client, job_id: str) -> str:
    """Return a message about a job that is no longer watched."""
    if client.in_process:
        return (
            f"interrupted; job {job_id} is queued and continues with the next command that runs jobs on {client.where}, "
            f"such as 'agentic-rag jobs watch {job_id}' or 'agentic-rag serve'"
        )
    return (
        f"interrupted; {client.where} continues job {job_id}: 'agentic-rag jobs watch {job_id}' follows it, "
        f"'agentic-rag jobs cancel {job_id}' cancels it"
    )


LINE_INTERVAL_S = 5.0
"""Seconds between two lines. Shorter work prints none."""


class ProgressDisplay:
    """Shows the progress of one task.

    Args:
        title: the description until the first update.
        total: the whole amount; None if it is unknown.
        counted: the bar shows ``completed`` and ``total`` as numbers. Otherwise it shows a percentage.
        clock: returns seconds.
    """

    def __init__(
        self, title: str, *, total: int | None = None, counted: bool = True, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._description = title
        self._total = total
        self._completed = 0
        self._counted = counted
        self._clock = clock
        self._line_at = clock() + LINE_INTERVAL_S
        self._bar: tuple[Progress, TaskID] | None = None

    def __enter__(self) -> ProgressDisplay:
        if sys.stderr.isatty():
            progress = self._create_bar()
            progress.start()
            self._bar = progress, progress.add_task(self._description, total=self._total)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar[0].stop()

    def update(self, description: str, *, completed: int, total: int | None = None) -> None:
        """Show the current state. ``total`` replaces the amount given before.

        Without a terminal, this prints a line if none was printed for `LINE_INTERVAL_S`, even if nothing has changed: the line
        shows that the command is alive.
        """
        self._description, self._completed = plain(description), completed
        self._total = total or self._total
        if self._bar is not None:
            progress, task = self._bar
            progress.update(task, description=self._description, completed=completed, total=self._total)
        elif self._clock() >= self._line_at:
            self._line_at = self._clock() + LINE_INTERVAL_S
            sys.stderr.write(self._line() + "\n")
            sys.stderr.flush()

    def _line(self) -> str:
        if not self._total:
            return self._description
        if self._counted:
            return f"{self._description}, {self._completed} of {self._total}"
        return f"{self._description}, {min(100, 100 * self._completed // self._total)} %"

    def _create_bar(self) -> Progress:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        amount: ProgressColumn = MofNCompleteColumn() if self._counted else TaskProgressColumn()
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), amount, TimeElapsedColumn())
        return Progress(*columns, console=console(sys.stderr), transient=True)
