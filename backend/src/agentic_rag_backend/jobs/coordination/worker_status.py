"""Reports the workers of the jobs and the state of the queues, for people and probes. The queue does not use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentic_rag_backend.domain.job import JobKind
from agentic_rag_backend.jobs.base import QueueName
from agentic_rag_backend.jobs.coordination.membership import Others
from agentic_rag_backend.jobs.queue.job_queue import JobQueue
from agentic_rag_backend.stores.catalogue.base import Worker, WorkerDirectory

_THIS = Worker(executor_id="this process", beats=0, workflows=frozenset())


class WorkerStatus:
    """Reports workers and queues.

    Args:
        here: whether this process runs jobs.
        others: services to find other processes. None if this process is alone.
        queue: the job queue.
        workflows: name of the first workflow by kind of job.
    """

    def __init__(
        self,
        directory: WorkerDirectory,
        *,
        here: bool,
        others: Others | None,
        queue: JobQueue,
        workflows: Mapping[JobKind, str],
    ) -> None:
        self._directory = directory
        self._queue = queue
        self._workflows = dict(workflows)
        self._others = others
        self.here = here

    @property
    def shared(self) -> bool:
        """Whether other processes may work on the same jobs."""
        return self._others is not None

    async def list_workers(self) -> Sequence[Worker]:
        """Return the workers that run jobs and have sent a recent heartbeat."""
        if self._others is None:
            return [_THIS] if self.here else []
        silent_after_s = self._others.silent_after_s
        # A worker without workflows, such as a command that runs a reconciliation, only holds leases.
        return [worker for worker in await self._directory.workers() if worker.workflows and worker.silent_s < silent_after_s]

    async def open_jobs(self) -> Mapping[str, int]:
        """Count the jobs of all tenants that are ``queued`` and ``running``."""
        return await self._directory.open_jobs()

    async def queue_lag_s(self) -> Mapping[QueueName, float]:
        """Return, by queue, the seconds that its oldest job has waited to start. 0 if none waits.

        A job waits in its first queue while its state is ``queued``, and in a later queue until a process claims it.
        """
        lag = dict(await self._queue.oldest_enqueued_s())
        for kind, waited_s in (await self._directory.oldest_queued_s()).items():
            queue = self._queue.queue_of(self._workflows[kind])
            lag[queue] = max(lag.get(queue, 0.0), waited_s)
        return lag
