"""The jobs port on SQL."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import and_, bindparam, func, select, update
from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.job import Job, JobKind, JobState
from agentic_rag_backend.domain.tenant import TenantId, require_tenant
from agentic_rag_backend.errors import Conflict, InvalidRequest
from agentic_rag_backend.stores.catalogue import submissions
from agentic_rag_backend.stores.catalogue.base import Enqueue, Page
from agentic_rag_backend.stores.catalogue.columns import plain, utc_now
from agentic_rag_backend.stores.catalogue.database import Database
from agentic_rag_backend.stores.catalogue.job_events import log_start
from agentic_rag_backend.stores.catalogue.job_rows import OPEN, end_job, new_job, read_job
from agentic_rag_backend.stores.catalogue.pages import beyond, check_limit, time_cursor
from agentic_rag_backend.stores.catalogue.rows import job_from, lock_document, lock_tenant
from agentic_rag_backend.stores.catalogue.tables import document_versions, documents, jobs

_SCOPE = "jobs"
_ONE = (jobs.c.tenant_id == bindparam("tenant"), jobs.c.id == bindparam("job"))
_START = (
    update(jobs)
    .where(*_ONE, jobs.c.state.in_(OPEN))
    .values(
        state=JobState.RUNNING.value,
        started_at=func.coalesce(jobs.c.started_at, bindparam("now", type_=jobs.c.started_at.type)),
        updated_at=bindparam("now", type_=jobs.c.started_at.type),
        message="",
    )
    .returning(jobs)
)
_HAND_BACK = (
    update(jobs)
    .where(jobs.c.state == JobState.RUNNING.value)
    .values(state=JobState.QUEUED.value, message="interrupted: the process that ran it ended; it is run again")
)
_PROGRESS = (
    update(jobs)
    .where(*_ONE, jobs.c.state.in_(OPEN))
    .values({f: bindparam(f"new_{f}") for f in ("stage", "done", "total", "message", "updated_at")})
    .returning(jobs.c.cancel_requested)
)


class SqlJobs:
    """Implements `JobCatalogue`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(
        self, tenant: TenantId, kind: JobKind, arguments: Mapping[str, Any], enqueue: Enqueue, *, join: bool = False
    ) -> Job:
        """Record and enqueue a job that has no document, or join one that has not ended."""
        return await self._database.write(_create, require_tenant(tenant), kind, arguments, enqueue, join)

    async def job(self, tenant: TenantId, job_id: str) -> Job:
        """Return the job."""
        return await self._database.read(read_job, require_tenant(tenant), job_id)

    async def jobs(
        self,
        tenant: TenantId,
        *,
        limit: int,
        cursor: str | None = None,
        state: JobState | None = None,
        kind: JobKind | None = None,
        document_id: str | None = None,
    ) -> Page[Job]:
        """List jobs, newest first."""
        statement = select(jobs).where(jobs.c.tenant_id == require_tenant(tenant).value)
        for column, value in ((jobs.c.state, state), (jobs.c.kind, kind), (jobs.c.document_id, document_id)):
            if value is not None:
                statement = statement.where(column == str(value))
        check_limit(limit)
        if cursor is not None:
            statement = statement.where(beyond(jobs, _SCOPE, cursor, newest_first=True))
        statement = statement.order_by(jobs.c.created_at.desc(), jobs.c.id.desc()).limit(limit + 1)

        def page(connection: Connection) -> Page[Job]:
            found = [job_from(row) for row in connection.execute(statement).mappings()]
            last = found[limit - 1] if len(found) > limit else None
            return Page(tuple(found[:limit]), time_cursor(_SCOPE, last.created_at, last.id) if last else None)

        return await self._database.read(page)

    async def start(self, tenant: TenantId, job_id: str) -> Job:
        """Mark the job running; one that has ended is returned as it is."""
        return await self._database.write(_start, require_tenant(tenant), job_id)

    async def progress(self, tenant: TenantId, job_id: str, *, stage: str, done: int, total: int, message: str = "") -> bool:
        """Record how far the job is; one that has ended keeps its row."""
        values = {"new_stage": stage, "new_done": done, "new_total": total, "new_message": message}
        return await self._database.write(_progress, require_tenant(tenant), job_id, values)

    async def hand_back(self, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Mark a running job queued again."""
        its = (*_ONE, jobs.c.attempt == bindparam("number"))
        bound = {"tenant": require_tenant(tenant).value, "job": job_id, "number": attempt}

        def queue(connection: Connection) -> None:
            connection.execute(_HAND_BACK.where(*its).values(updated_at=utc_now()), bound)

        await self._database.write(queue)

    async def pending_documents(self, tenant: TenantId, *, queued_before: datetime) -> int:
        """Count the jobs that may still make a version of a document visible."""
        awaited = and_(documents.c.tenant_id == jobs.c.tenant_id, documents.c.id == jobs.c.document_id)
        statement = (
            select(func.count())
            .select_from(jobs.join(documents, awaited))
            .where(
                jobs.c.tenant_id == require_tenant(tenant).value,
                jobs.c.kind == JobKind.INGEST.value,
                jobs.c.state.in_(OPEN),
                jobs.c.cancel_requested.is_(False),
                jobs.c.created_at <= queued_before,
                documents.c.deleted_at.is_(None),
                documents.c.current_version < jobs.c.version,
            )
        )

        def count(connection: Connection) -> int:
            return int(connection.execute(statement).scalar_one())

        return await self._database.read(count)

    async def hand_back_all(self) -> int:
        """Mark every running job queued again."""

        def queue(connection: Connection) -> int:
            return connection.execute(_HAND_BACK.values(updated_at=utc_now())).rowcount

        return await self._database.write(queue)

    async def remember(self, tenant: TenantId, job_id: str, name: str, value: Any) -> Any:
        """Keep a value with a job, unless there is one of that name."""
        return await self._database.write(_remember, require_tenant(tenant), job_id, name, value)

    async def finish(
        self,
        tenant: TenantId,
        job_id: str,
        state: JobState,
        *,
        result: Mapping[str, Any] | None = None,
        error: Mapping[str, Any] | None = None,
        progress: tuple[str, int, int] | None = None,
    ) -> None:
        """Record how the job ended, and how far it was."""
        if not state.ended:
            raise InvalidRequest(f"a job ends as succeeded, partial, failed or cancelled; got {state.value!r}")
        await self._database.write(end_job, require_tenant(tenant), job_id, state, result=result, error=error, progress=progress)

    async def request_cancel(self, tenant: TenantId, job_id: str) -> Job:
        """Ask a job to stop."""
        return await self._database.write(_request_cancel, require_tenant(tenant), job_id)

    async def retry(self, tenant: TenantId, job_id: str, enqueue: Enqueue) -> Job:
        """Queue a job again with the next attempt number."""
        return await self._database.write(_retry, require_tenant(tenant), job_id, enqueue)

    async def last(self, tenant: TenantId, kind: JobKind) -> Job | None:
        """Return the newest job of a kind."""
        return await self._database.read(_last, require_tenant(tenant), kind)


def _create(
    connection: Connection, tenant: TenantId, kind: JobKind, arguments: Mapping[str, Any], enqueue: Enqueue, join: bool
) -> Job:
    lock_tenant(connection, tenant)
    if join:
        waiting = (
            select(jobs)
            .where(
                jobs.c.tenant_id == tenant.value,
                jobs.c.kind == kind.value,
                jobs.c.state.in_(OPEN),
                jobs.c.cancel_requested.is_(False),
            )
            .order_by(jobs.c.created_at.desc(), jobs.c.id.desc())
            .limit(1)
        )
        row = connection.execute(waiting).mappings().first()
        if row is not None:
            return job_from(row)
    job = new_job(connection, tenant, kind, arguments=arguments)
    enqueue(connection, tenant, job)
    return job


def _start(connection: Connection, tenant: TenantId, job_id: str) -> Job:
    row = connection.execute(_START, {"tenant": tenant.value, "job": job_id, "now": utc_now()}).mappings().first()
    if row is None:
        return read_job(connection, tenant, job_id)
    job = job_from(row)
    log_start(connection, tenant, job)
    return job


def _progress(connection: Connection, tenant: TenantId, job_id: str, values: Mapping[str, Any]) -> bool:
    bound = {"tenant": tenant.value, "job": job_id, "new_updated_at": utc_now(), **values}
    requested = connection.execute(_PROGRESS, bound).scalar_one_or_none()
    return bool(requested) if requested is not None else read_job(connection, tenant, job_id).cancel_requested


def _remember(connection: Connection, tenant: TenantId, job_id: str, name: str, value: Any) -> Any:
    held = read_job(connection, tenant, job_id, lock=True).arguments
    if name not in held:
        held = _change(connection, tenant, job_id, {"arguments": plain({**held, name: value})}).arguments
    return held[name]


def _change(connection: Connection, tenant: TenantId, job_id: str, changed: Mapping[str, Any]) -> Job:
    statement = update(jobs).where(*_ONE).values(**changed, updated_at=utc_now()).returning(jobs)
    return job_from(connection.execute(statement, {"tenant": tenant.value, "job": job_id}).mappings().one())


def _request_cancel(connection: Connection, tenant: TenantId, job_id: str) -> Job:
    job = read_job(connection, tenant, job_id, lock=True)
    if job.state.ended:
        raise Conflict(f"job {job_id!r} has ended as {job.state.value}; only queued and running jobs can be cancelled")
    return _change(connection, tenant, job_id, {"cancel_requested": True})


def _retry(connection: Connection, tenant: TenantId, job_id: str, enqueue: Enqueue) -> Job:
    lock_tenant(connection, tenant)
    job = read_job(connection, tenant, job_id, lock=True)
    if not job.state.ended or job.state is JobState.SUCCEEDED:
        raise Conflict(f"job {job_id!r} is {job.state.value}; only failed, partial and cancelled jobs can be tried again")
    version = _reopen_version(connection, tenant, job) if job.kind is JobKind.INGEST else job.version
    fresh = {
        "state": JobState.QUEUED.value,
        "attempt": job.attempt + 1,
        "version": version,
        "stage": "",
        "done": 0,
        "total": 0,
        "message": "",
        "cancel_requested": False,
        "error": None,
        "result": None,
        "started_at": None,
        "finished_at": None,
    }
    again = _change(connection, tenant, job_id, fresh)
    enqueue(connection, tenant, again)
    return again


def _reopen_version(connection: Connection, tenant: TenantId, job: Job) -> int:
    """Make the job's version one that can be processed, and return its number.

    A version that is visible in part stays as it is, and the job gets a new version of the same input.
    """
    held = lock_document(connection, tenant, job.document_id or "")
    if held is None or held["deleted_at"] is not None:
        raise Conflict(f"the document of job {job.id!r} was deleted")
    if job.version is None or held["latest_version"] != job.version:
        raise Conflict(f"version {job.version} of job {job.id!r} was overtaken by version {held['latest_version']}")
    if held["current_version"] == job.version:
        return submissions.resubmit(connection, tenant, held, job.version, job.id)
    pending = {"state": submissions.PENDING}
    connection.execute(
        update(document_versions)
        .where(
            document_versions.c.tenant_id == tenant.value,
            document_versions.c.document_id == held["id"],
            document_versions.c.version == job.version,
        )
        .values(**pending, failures=[])
    )
    changed = {**pending, "job_id": job.id, "updated_at": utc_now()}
    submissions.change_document(connection, tenant, held["id"], changed)
    return job.version


def _last(connection: Connection, tenant: TenantId, kind: JobKind) -> Job | None:
    statement = (
        select(jobs)
        .where(jobs.c.tenant_id == tenant.value, jobs.c.kind == kind.value)
        .order_by(jobs.c.created_at.desc(), jobs.c.id.desc())
        .limit(1)
    )
    row = connection.execute(statement).mappings().first()
    return None if row is None else job_from(row)
