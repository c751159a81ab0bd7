"""Many waiting callers share one poll, and each gets its own job, an error, or may give up."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from agentic_rag_backend.domain.job import Job
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.jobs import service
from agentic_rag_backend.jobs.service import JobEndings
from agentic_rag_backend.stores.catalogue.base import JobCatalogue

TENANT = TenantId("t_" + "0" * 32)


class Jobs:
    """Jobs that the test ends."""

    def __init__(self) -> None:
        self.over: set[str] = set()
        self.polls: list[int] = []
        self.error: Exception | None = None

    async def ended(self, _: TenantId, job_ids: Sequence[str]) -> list[Any]:
        self.polls.append(len(job_ids))
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return [_Job(id) for id in job_ids if id in self.over]


class _Job:
    def __init__(self, id: str) -> None:
        self.id = id


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Jobs:
    monkeypatch.setattr(service, "_POLL_INTERVAL_S", 0)
    return Jobs()


def waiting(jobs: Jobs, *ids: str) -> list[asyncio.Task[Job]]:
    shared = JobEndings(cast(JobCatalogue, jobs), TENANT)
    return [asyncio.create_task(shared.wait_for_end(id)) for id in ids]


async def turns() -> None:
    for _ in range(12):
        await asyncio.sleep(0)


async def test_one_poll_serves_all(jobs: Jobs) -> None:
    tasks = waiting(jobs, "a", "b", "c", "a")
    await turns()
    assert set(jobs.polls) == {4}
    jobs.over.add("a")
    await turns()
    assert [task.done() for task in tasks] == [True, False, False, True]
    jobs.over |= {"b", "c"}
    assert [job.id for job in await asyncio.gather(*tasks)] == ["a", "b", "c", "a"]
    await turns()
    polls = len(jobs.polls)
    await turns()
    assert len(jobs.polls) == polls, "nobody waits"


async def test_a_caller_that_gives_up_is_not_polled_for(jobs: Jobs) -> None:
    first, second = waiting(jobs, "a", "b")
    await turns()
    first.cancel()
    await turns()
    assert jobs.polls[-1] == 1
    jobs.over.add("b")
    assert (await second).id == "b"


@pytest.mark.parametrize("error", [StoreUnavailable("no catalogue"), ValueError("a fault of the program")])
async def test_an_error_goes_to_every_caller_and_the_next_one_polls_again(jobs: Jobs, error: Exception) -> None:
    shared = JobEndings(cast(JobCatalogue, jobs), TENANT)
    jobs.error = error
    results = await asyncio.gather(shared.wait_for_end("a"), shared.wait_for_end("b"), return_exceptions=True)
    assert results == [error, error]
    jobs.error, jobs.over = None, {"a"}
    assert (await shared.wait_for_end("a")).id == "a"
