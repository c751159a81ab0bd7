"""Reconciliation of jobs: jobs whose row is unfinished, but that have no workflow in the durable queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentic_rag_backend.domain.job import Job, JobState
from agentic_rag_backend.errors import AgenticRagError, Conflict, NotFound
from agentic_rag_backend.ingestion.reconciliation.report import Kind
from agentic_rag_backend.ingestion.reconciliation.rounds import Round

_PAGE = 100


@dataclass(frozen=True, slots=True)
class JobsRound:
    """Checks the unfinished jobs.

    A job is recorded and enqueued in one transaction, and its row ends before its workflow. Therefore, if a job has no workflow
    and its row, read again afterwards, is unchanged, the job will never end by itself.
    """

    round: Round

    async def run(self) -> None:
        """Compare, and repair if requested: end the job with an error and queue it again."""
        jobs = self.round.stores.catalogue.jobs
        await self.round.progress("jobs", 0, 0)
        for state in (JobState.QUEUED, JobState.RUNNING):
            cursor: str | None = None
            while True:
                page = await jobs.jobs(self.round.tenant, limit=_PAGE, cursor=cursor, state=state)
                await self._check_page(page.items)
                cursor = page.next_cursor
                if cursor is None:
                    break
                await self.round.progress("jobs", 0, 0)

    async def _check_page(self, open_ones: Sequence[Job]) -> None:
        unended = await self.round.services.queue.find_unended_jobs(open_ones)
        for job in open_ones:
            if job.id in unended:
                continue
            if not await self._still_open(job):
                self.round.report.count_skips(Kind.JOB_LOST, 1)
                continue
            self.round.report.count_differences(Kind.JOB_LOST, [job.id])
            if self.round.repair:
                await self._repair_job(job)
                self.round.report.count_repairs(Kind.JOB_LOST, 1)

    async def _still_open(self, job: Job) -> bool:
        try:
            now = await self.round.stores.catalogue.jobs.job(self.round.tenant, job.id)
        except NotFound:
            return False
        return not now.state.ended and now.attempt == job.attempt

    async def _repair_job(self, job: Job) -> None:
        tenant, services = self.round.tenant, self.round.services
        async with self.round.tenant_lock():
            await services.give_up(tenant, job.id, job.attempt, AgenticRagError("the queue no longer has this job"))
            if job.cancel_requested:
                return
            try:
                self.round.report.record_job((await services.retry(tenant, job.id)).id)
            except Conflict:
                return  # replaced by another version, or the document was deleted: the job stays ended
