"""A worker process among others on one database: ``worker.py URL FOLDER ID WORKFLOW…``, until FOLDER/stop exists.

Every job records its events in FOLDER/effects.db. The prefix of a job's id determines its work: ``hold-…`` waits for
FOLDER/go-ID, ``poison-…`` kills the process, and other jobs end at once.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
from pathlib import Path

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.jobs.base import QueueName
from agentic_rag_backend.jobs.coordination.membership import Others
from agentic_rag_backend.jobs.coordination.tenant_locks import confirm_lock
from agentic_rag_backend.jobs.queue.job_queue import JobQueue
from agentic_rag_backend.stores.catalogue.base import Catalogue

URL, FOLDER, NAME, WORKFLOWS = sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4:]


def note(job_id: str, what: str) -> None:
    with sqlite3.connect(FOLDER / "effects.db", timeout=30) as connection:
        connection.execute("INSERT INTO effects VALUES (?, ?, ?)", (job_id, what, NAME))
    connection.close()


async def work(tenant: TenantId, job_id: str, attempt: int) -> None:
    note(job_id, "start")
    try:
        while job_id.startswith("hold") and not (FOLDER / f"go-{NAME}").exists():
            await asyncio.sleep(0.05)
        await confirm_lock()
    except asyncio.CancelledError:
        note(job_id, "cancelled")
        raise
    if job_id.startswith("poison"):
        os.kill(os.getpid(), signal.SIGKILL)
    note(job_id, "end")


async def failed(tenant: TenantId, job_id: str, attempt: int, error: Exception) -> None:
    note(job_id, f"failed: {error}")


async def main() -> None:
    catalogue = await Catalogue.open(URL)
    queue = JobQueue(
        catalogue.sync_engine,
        executor_id=f"{NAME}-{os.getpid()}",
        prepare_concurrency=4,
        polling_interval_s=0.05,
        on_failed=failed,
        others=Others(directory=catalogue.workers, leases=catalogue.leases, silent_after_s=3.0),
    )
    for name in WORKFLOWS:
        queue.register(name, QueueName.COMMIT if name == "commit_v1" else QueueName.PREPARE, work)
    await queue.launch()
    while not (FOLDER / "stop").exists():
        await asyncio.sleep(0.05)
    await queue.shutdown()
    await catalogue.close()


asyncio.run(main())
