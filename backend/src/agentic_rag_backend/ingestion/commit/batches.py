"""Commits several documents together, so that they share one flush of the vector store.

A flush costs the same for one document as for many. Measured: a flush of the embedded vector store writes its log to disk in
about 10 ms; sometimes it takes more than 100 ms and blocks the whole process. Concurrent writes are as fast as preparation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.ingestion.commit.commitment import Commitment, Order, WrittenVersion
from agentic_rag_backend.ingestion.commit.settlement import Settlement
from agentic_rag_backend.jobs.base import Continuation, QueueName
from agentic_rag_backend.jobs.coordination.recovery import Caution
from agentic_rag_backend.jobs.coordination.slots import caution_here
from agentic_rag_backend.jobs.runner import JobStopped, Run, Runner

MAX_TOGETHER = 128
FLUSH_SHARE = 0.05
"""Share of the time that flushes may take while documents keep arriving."""
LONGEST_PAUSE_S = 2.0
WRITTEN_AT_ONCE = 3
"""Documents written concurrently: one is written to the graph, the previous one to the vector store, the next one is read."""


@dataclass(slots=True)
class PreparedJob:
    """A job that waits for its commit.

    Args:
        run: the run that prepared it, if its workflow continues with the commit. None: another workflow commits it.
        joins: whether another job's commit may include it. A job that may have killed its process is committed alone, and so is
            a job whose results were all on record, because an earlier run prepared it.
        ended: whether another job's commit included it, and has ended.
    """

    run: Run | None
    attempt: int
    joins: bool = True
    ended: bool = False


@dataclass(slots=True)
class Batches:
    """Commits the prepared jobs of a tenant together when the durable queue starts the first of them.

    Each job is also on the durable queue: as the commit of a large document, or as the workflow that prepared a small one. If
    its process ends, it starts again from there. A job that another commit included has ended by then. A job that may have killed
    its process includes no others: it would be blamed for their faults.
    """

    runner: Runner
    commitment: Commitment
    settlement: Settlement
    together: bool = True
    """False if a flush costs nothing. Then jobs are not committed together."""
    _prepared: dict[TenantId, dict[str, PreparedJob]] = field(default_factory=dict)
    _in_preparation: int = 0
    _flushed_at: float = float("-inf")
    _flush_s: float = 0.0
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a job was prepared, or its preparation ended otherwise."""

    def add(self, run: Run, *, enqueued: bool) -> PreparedJob:
        """Record that a job is prepared and may be committed with others.

        Args:
            enqueued: whether a workflow commits the job that is on the durable queue. False: the calling workflow continues with
                the commit; see `choose_continuation`.
        """
        # An earlier run may have been killed during a commit that included the job, of which only the other job was blamed.
        fresh = caution_here() is Caution.NONE and run.results_saved > 0
        prepared = PreparedJob(None if enqueued else run, run.job.attempt, joins=fresh)
        if not enqueued and (workflow := asyncio.current_task()) is not None:
            # A workflow that is cut off while it waits may run in another process. Its run must not be used any more.
            workflow.add_done_callback(lambda _: self._drop_job(run, prepared))
        if self.together or not enqueued:
            self._prepared.setdefault(run.tenant, {})[run.job.id] = prepared
            self._changed.set()
        return prepared

    def choose_continuation(self, prepared: PreparedJob) -> Continuation | None:
        """Return the commit of a job, unless it is on the durable queue.

        The workflow of a job must not end before its commit, even if another job's commit has already included it.
        """
        return Continuation(QueueName.COMMIT, self.commit, lambda: prepared.ended) if prepared.run is not None else None

    @contextmanager
    def count_preparation(self) -> Iterator[None]:
        """Record that a document of any tenant is in preparation. One flush may then serve it, too."""
        self._in_preparation += 1
        try:
            yield
        finally:
            self._in_preparation -= 1
            self._changed.set()

    async def commit(self, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Commit the job together with the prepared jobs of its tenant."""
        prepared_job = self._forget_job(tenant, job_id)
        together = _Together(self.runner, self.commitment)
        writing = [asyncio.create_task(together.write(tenant, job_id, attempt, prepared_job.run if prepared_job else None))]
        joined: list[PreparedJob] = []
        try:
            while len(writing) < MAX_TOGETHER and (job_batch := await self._wait_for_more(tenant, MAX_TOGETHER - len(writing))):
                joined += job_batch.values()
                writing += [
                    asyncio.create_task(together.write(tenant, other_id, prepared.attempt, prepared.run))
                    for other_id, prepared in job_batch.items()
                ]
            await _wait_for_all(writing)
        except BaseException:
            for task in writing:
                task.cancel()
            await asyncio.gather(*writing, return_exceptions=True)
            raise
        await self._publish_all(tenant, together)
        for prepared in joined:
            prepared.ended = True

    async def _publish_all(self, tenant: TenantId, together: _Together) -> None:
        """Publish first versions concurrently, the others one by one, because these also remove superseded versions.

        The names that the documents moved are settled before, so that a visible document is a settled one.
        """
        flush = _Once(self._flush_vectors)
        documents = list(together.written)

        async def settle_names(flush: Callable[[], Awaitable[None]] = self._flush_vectors) -> None:
            await self.settlement.settle_names(tenant, together.list_versions(), flush)

        def publish_item(item: WrittenVersion) -> Coroutine[Any, Any, bool]:
            async def run_step(run: Run) -> None:
                run.stage = "flush"
                await flush()
                await self.commitment.publish(item, settle_names)

            return self.runner.run_step(item.run, run_step, together.record_failure)

        if documents:
            await settle_names(flush)
        await _wait_for_all([publish_item(item) for item in documents if item.run.version == 1])
        for item in documents:
            if item.run.version != 1:
                await publish_item(item)

    async def _wait_for_more(self, tenant: TenantId, limit: int) -> dict[str, PreparedJob]:
        """Return other prepared jobs of the tenant. Wait for one until a flush is due. Empty: flush now.

        Documents are written while others are still in preparation.
        """
        if not self.together or caution_here() is not Caution.NONE:
            return {}
        while True:
            if prepared := self._take_jobs(tenant, limit):
                return prepared
            # A single document never waits: a flush is delayed only while other documents are in preparation.
            left_s = self._due_in_s() if self._in_preparation or self._prepared else 0.0
            if left_s <= 0:
                return {}
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._changed.wait()

    def _take_jobs(self, tenant: TenantId, limit: int) -> dict[str, PreparedJob]:
        """Remove and return up to ``limit`` prepared jobs of the tenant that may be committed with others."""
        job_ids = [job_id for job_id, prepared in self._prepared.get(tenant, {}).items() if prepared.joins][:limit]
        jobs = {job_id: self._forget_job(tenant, job_id) for job_id in job_ids}
        return {job_id: job for job_id, job in jobs.items() if job is not None}

    def _forget_job(self, tenant: TenantId, job_id: str) -> PreparedJob | None:
        """Remove a job from the prepared jobs and return it. None if it was not prepared here."""
        prepared = self._prepared.get(tenant, {})
        job = prepared.pop(job_id, None)
        if not prepared:
            self._prepared.pop(tenant, None)
        return job

    def _drop_job(self, run: Run, prepared: PreparedJob) -> None:
        """Remove a job whose workflow has ended, unless it was prepared again meanwhile."""
        if self._prepared.get(run.tenant, {}).get(run.job.id) is prepared:
            self._forget_job(run.tenant, run.job.id)

    def _due_in_s(self) -> float:
        """Return the seconds until a flush stays within its share of the time."""
        since_s = asyncio.get_running_loop().time() - self._flushed_at
        return min(LONGEST_PAUSE_S, self._flush_s / FLUSH_SHARE) - since_s

    async def _flush_vectors(self) -> None:
        loop = asyncio.get_running_loop()
        started_at = loop.time()
        await self.commitment.facts.vectors.flush()
        self._flushed_at = loop.time()
        self._flush_s = self._flushed_at - started_at


@dataclass(slots=True)
class _Together:
    """The documents of one commit. They are written concurrently, with locks where the order matters."""

    runner: Runner
    commitment: Commitment
    written: list[WrittenVersion] = field(default_factory=list)
    _order: Order = field(default_factory=Order)
    _places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(WRITTEN_AT_ONCE))

    async def write(self, tenant: TenantId, job_id: str, attempt: int, prepared: Run | None) -> None:
        """Write a document. ``prepared``: the run that prepared it in this process."""
        async with self._places:
            run = prepared.next_part() if prepared else await self.runner.begin_job(tenant, job_id, attempt, started=True)
            if run is None:
                return
            async with self._order.document_lock(run.document_id):
                await self.runner.run_step(run, self._write_version, self.record_failure)

    def list_versions(self) -> dict[str, int]:
        """Return the version of each document that is written and did not fail."""
        return {item.run.document_id: item.run.version for item in self.written}

    async def record_failure(self, run: Run, error: AgenticRagError | JobStopped) -> None:
        self.written = [item for item in self.written if item.run is not run]
        await self.commitment.record_failure(run, error, self._order)

    async def _write_version(self, run: Run) -> None:
        # In two statements: `record_failure` may replace the list while another document is written.
        version = await self.commitment.write(run, self._order)
        self.written.append(version)


async def _wait_for_all(work: Sequence[Awaitable[Any]]) -> None:
    """Wait until all work has ended, even if one part finds that its lock was lost: the lock must not end before."""
    for result in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


@dataclass(slots=True)
class _Once:
    """Runs a function until its first success, then never again."""

    work: Callable[[], Awaitable[None]]
    done: bool = False
    _doing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def __call__(self) -> None:
        async with self._doing:
            if not self.done:
                await self.work()
                self.done = True
