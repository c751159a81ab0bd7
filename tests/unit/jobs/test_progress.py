"""Progress is written sparingly, and hears of cancelling."""

from __future__ import annotations

from typing import Any

import pytest

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.jobs.progress import JobCancelled, JobProgress

TENANT = TenantId.new()


class _Jobs:
    def __init__(self) -> None:
        self.written: list[tuple[str, int, int]] = []
        self.cancel = False

    async def progress(self, tenant: TenantId, job_id: str, *, stage: str, done: int, total: int, message: str = "") -> bool:
        assert (tenant, job_id) == (TENANT, "job")
        self.written.append((stage, done, total))
        return self.cancel


def _progress(jobs: Any, now: list[float]) -> JobProgress:
    return JobProgress(jobs, TENANT, "job", clock=lambda: now[0])


async def test_it_writes_four_times_a_second_and_at_every_change_of_stage() -> None:
    jobs, now = _Jobs(), [10.0]
    progress = _progress(jobs, now)
    for done in range(100):
        await progress.report("embed", done, 101)
        now[0] += 0.0101
    assert [done for _, done, _ in jobs.written] == [0, 25, 50, 75]
    await progress.report("extract", 0, 2)
    await progress.report("extract", 1, 2)
    await progress.report("extract", 2, 2)
    assert jobs.written[4:] == [("extract", 0, 2), ("extract", 2, 2)]


async def test_it_raises_when_cancelling_was_requested() -> None:
    jobs = _Jobs()
    progress = _progress(jobs, [0.0])
    await progress.report("parse", 0, 1)
    jobs.cancel = True
    with pytest.raises(JobCancelled, match="job"):
        await progress.report("embed", 0, 1)
