"""Polling frequency of the stream of a job's events."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from agentic_rag_backend.api.routers import jobs

QUIET_S = 120.0


@dataclass(slots=True)
class Job:
    """A job that waits for `QUIET_S`, has a second of progress, and ends. It counts reads."""

    now: float = 0.0
    looks: list[float] = field(default_factory=list)

    async def get_job(self, caller: Any, job_id: str) -> Any:
        self.looks.append(self.now)
        done = 0 if self.now < QUIET_S else int((self.now - QUIET_S) * 4)
        return SimpleNamespace(stage="", done=done, total=4, message="", state=SimpleNamespace(ended=False), kind="ingest")

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


async def test_a_quiet_job_is_looked_at_seldom_and_a_busy_one_often(monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job()
    services = SimpleNamespace(work=job)
    monkeypatch.setattr(
        jobs, "asyncio", SimpleNamespace(sleep=job.sleep, get_running_loop=lambda: SimpleNamespace(time=lambda: job.now))
    )
    events = jobs._events(services, SimpleNamespace(), "job")  # type: ignore[arg-type]
    async with asyncio.timeout(30):
        async for _ in events:
            if job.now > QUIET_S + 1:
                break
    quiet = [at for at in job.looks if at < QUIET_S]
    assert len(quiet) < QUIET_S  # less than one a second; four before
    assert all(after - before <= max(0.25, before / 8) for before, after in pairwise(quiet))
    busy = [at for at in job.looks if at > QUIET_S]
    assert busy[1] - busy[0] == 0.25
