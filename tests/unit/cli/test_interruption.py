"""Ctrl-C inside a process: message and exit code, without waiting for running work."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agentic_rag_backend.cli import app as module
from agentic_rag_backend.cli.progress import UNFINISHED, CommandStopped, Interrupted, describe_left_job, leaving, run_async
from agentic_rag_backend.cli.session.client import Client
from agentic_rag_backend.container import _shutdown_of
from agentic_rag_backend.jobs.queue.job_queue import JobQueue


async def _cancelled(message: str | None) -> None:
    """Raise the cancellation that asyncio sends to the main task at SIGINT."""
    asyncio.get_running_loop().call_soon(cast(asyncio.Task[Any], asyncio.current_task()).cancel)
    if message is None:
        await asyncio.sleep(60)
    else:
        with leaving("of the command"), leaving(message):
            await asyncio.sleep(60)


def test_the_innermost_message_is_printed() -> None:
    with pytest.raises(CommandStopped) as stopped:
        run_async(_cancelled("of the job"))
    assert stopped.value.message == "of the job"


def test_an_interruption_without_a_message_has_the_general_one() -> None:
    async def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(CommandStopped) as stopped:
        run_async(interrupted())
    assert stopped.value.message == UNFINISHED


def test_what_a_coroutine_returns_is_returned() -> None:
    async def seven() -> int:
        return 7

    assert run_async(seven()) == 7


@pytest.mark.parametrize("as_json", [False, True])
def test_the_exit_code_is_130_and_the_message_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    def main(**_: Any) -> None:
        raise CommandStopped("interrupted; the job goes on")

    monkeypatch.setattr(module.typer.main, "get_command", lambda app: main)  # type: ignore[attr-defined]
    assert module.run(["jobs", "watch", "j", *(["--json"] if as_json else [])]) == 130
    shown = capsys.readouterr()
    if as_json:
        assert json.loads(shown.out)["error"] == {"code": "interrupted", "message": "interrupted; the job goes on"}
    else:
        assert (shown.out, shown.err) == ("", "interrupted; the job goes on\n")


def test_where_a_describe_left_job_depends_on_where_it_runs() -> None:
    here = describe_left_job(cast(Client, SimpleNamespace(in_process=True, where="DATA_DIR data")), "j1")
    there = describe_left_job(cast(Client, SimpleNamespace(in_process=False, where="http://127.0.0.1:8000")), "j1")
    assert "next command that runs jobs on DATA_DIR data" in here
    assert there.startswith("interrupted; http://127.0.0.1:8000 continues job j1")


@pytest.mark.parametrize(
    ("left_by", "drains"), [(None, True), (ValueError, True), (Interrupted, False), (asyncio.CancelledError, False)]
)
async def test_only_an_interruption_leaves_without_waiting_for_jobs(left_by: type[BaseException] | None, drains: bool) -> None:
    asked: list[bool] = []

    async def shutdown(*, drain: bool = True) -> None:
        asked.append(drain)

    await _shutdown_of(cast(JobQueue, SimpleNamespace(shutdown=shutdown)))(left_by, None, None)
    assert asked == [drains]
