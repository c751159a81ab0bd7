"""Workflows of two parts: what is recorded of their runs, and what a failure between the parts leaves."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.jobs.base import Continuation, QueueName
from agentic_rag_backend.jobs.coordination.slots import Slots
from agentic_rag_backend.jobs.coordination.tenant_locks import TenantLocks
from agentic_rag_backend.jobs.queue.execution import DeclaredWorkflow, Execution

TENANT = TenantId("t_" + "1" * 32)
WORKFLOW = "work_v1:job:1"


class _CrashCounter:
    """Records what it is told. ``unavailable``: number of the start that it cannot record."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.starts = 0
        self.unavailable = 0

    async def count_kills(self, workflow_id: str) -> int:
        return 0

    async def record_start(self, tenant: TenantId, workflow_id: str) -> None:
        self.starts += 1
        if self.starts == self.unavailable:
            raise StoreUnavailable("away")
        self.told.append("began")

    async def record_end(self, tenant: TenantId, workflow_id: str, *, finished: bool) -> None:
        self.told.append("finished" if finished else "stopped")


class _Claims:
    def __init__(self) -> None:
        self.again: list[str] = []

    def note_start(self, workflow_id: str) -> None: ...

    def run_again(self, workflow_id: str) -> None:
        self.again.append(workflow_id)


class _Bench:
    def __init__(self) -> None:
        self.counter, self.claims, self.commits = _CrashCounter(), _Claims(), list[str]()
        self.done = False

    async def prepare(self, tenant: TenantId, job_id: str, attempt: int) -> Continuation:
        return Continuation(QueueName.COMMIT, self.commit, lambda: self.done)

    async def commit(self, tenant: TenantId, job_id: str, attempt: int) -> None:
        self.commits.append(job_id)

    async def run(self) -> None:
        async def failed(tenant: TenantId, job_id: str, attempt: int, error: Exception) -> None: ...

        membership = SimpleNamespace(crash_counter=self.counter)
        execution = Execution(
            Slots(1, 1, TenantLocks()),
            cast("Any", self.claims),
            cast("Any", membership),
            failed=failed,
            ended=lambda queue: None,
        )
        declared = DeclaredWorkflow("work_v1", QueueName.PREPARE, self.prepare)
        await asyncio.create_task(execution.run(declared, TENANT, "job", 1))
        await asyncio.sleep(0)
        assert len(execution) == 0


async def test_only_the_last_part_ends_the_record_of_a_workflow() -> None:
    """The end of a workflow deletes its kills. In between, they stay, and a kill counts against other workflows."""
    bench = _Bench()
    await bench.run()
    assert (bench.commits, bench.counter.told) == (["job"], ["began", "stopped", "began", "finished"])


async def test_a_part_that_another_workflow_did_is_not_run() -> None:
    bench = _Bench()
    bench.done = True
    await bench.run()
    assert (bench.commits, bench.counter.told, bench.claims.again) == ([], ["began", "stopped"], [])


@pytest.mark.parametrize("start", [1, 2])
async def test_a_part_whose_start_is_not_recorded_runs_again(start: int) -> None:
    bench = _Bench()
    bench.counter.unavailable = start
    with pytest.raises(asyncio.CancelledError):
        await bench.run()
    assert (bench.commits, bench.claims.again) == ([], [WORKFLOW])
