"""One attempt at a job, with several ends at once."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.jobs import runner
from agentic_rag_backend.jobs.runner import JobStopped, Run


class Job:
    id = "j"
    cancel_requested = True


async def test_work_that_fails_while_the_job_is_looked_at_gives_way_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "CANCEL_CHECK_S", 0.001)
    looking = asyncio.Event()
    unhandled: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))

    class Jobs:
        async def job(self, tenant: TenantId, id: str) -> Job:
            looking.set()
            await asyncio.sleep(0.01)
            return Job()

    async def work() -> None:
        await looking.wait()
        raise JobStopped("superseded", "overtaken")

    run = Run(TenantId("t_" + "1" * 32), Job(), Jobs())  # type: ignore[arg-type]
    with pytest.raises(JobStopped, match="cancelling was requested"):
        await run.run_until_cancellation(work())
    gc.collect()
    await asyncio.sleep(0)
    assert unhandled == []
