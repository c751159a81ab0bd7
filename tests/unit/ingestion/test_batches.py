"""Who is committed with whom."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.ingestion.batches import Batches
from agentic_rag_backend.jobs.base import QueueName
from agentic_rag_backend.jobs.recovery import Caution
from agentic_rag_backend.jobs.slots import Slots, caution_here

TENANT = TenantId.new()


class Recorder:
    """Stands in for the runner and the commitment: remembers which jobs were written."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.nodes = SimpleNamespace(vectors=SimpleNamespace(flush=self._nothing))

    async def begin(self, tenant: TenantId, job_id: str, attempt: int, *, started: bool) -> Any:
        return SimpleNamespace(job_id=job_id, stage="")

    async def guarded(self, run: Any, step: Callable[[Any], Awaitable[None]], failed: Any) -> bool:
        await step(run)
        return True

    async def write(self, run: Any) -> Any:
        self.written.append(run.job_id)
        return SimpleNamespace(run=run)

    async def publish(self, item: Any) -> None: ...

    async def failed(self, run: Any, error: Exception) -> None: ...

    async def _nothing(self) -> None: ...


@pytest.mark.parametrize(
    ("caution", "together"),
    [(Caution.NONE, ["one", "two", "three"]), (Caution.NO_OTHER_SUSPECT, ["one"]), (Caution.ALONE, ["one"])],
)
async def test_a_suspect_takes_nobody_along(caution: Caution, together: list[str]) -> None:
    recorder = Recorder()
    batches = Batches(recorder, recorder)  # type: ignore[arg-type]
    for job in ("one", "two", "three"):
        batches.add(TENANT, job, 1)
    slots = Slots({QueueName.PREPARE: 1, QueueName.COMMIT: 1}, 8)

    async def workflow(job: str, careful: Caution) -> None:
        async with slots.taken(QueueName.COMMIT, TENANT, careful):
            await batches.commit(TENANT, job, 1)

    await asyncio.create_task(workflow("one", caution))
    assert recorder.written == together
    assert caution_here() is Caution.NONE
    recorder.written.clear()
    await asyncio.create_task(workflow("two", Caution.NONE))
    assert recorder.written == (["two"] if caution is Caution.NONE else ["two", "three"]), "the others are still there for it"
