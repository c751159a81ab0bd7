"""Ctrl-C: a command ends immediately with exit code 130 and reports what continues without it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

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
