"""Jobs and their states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, func, select, update
from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.job import Job, JobKind, JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import Conflict
from agentic_rag_backend.stores.catalogue.columns import plain, utc_now
from agentic_rag_backend.stores.catalogue.documents import submissions
from agentic_rag_backend.stores.catalogue.documents.document_values import Enqueue
from agentic_rag_backend.stores.catalogue.jobs.job_rows import AWAITED, OPEN, end_job, log_start, new_job, read_job
from agentic_rag_backend.stores.catalogue.operations import (
    CataloguePart,
    batches,
    job_from,
    lock_document,
    lock_tenant,
    read,
    write,
)
from agentic_rag_backend.stores.catalogue.pages import Page, beyond, check_limit, time_cursor
from agentic_rag_backend.stores.catalogue.tables import document_versions, jobs

_SCOPE = "jobs"
_ONE = (jobs.c.tenant_id == bindparam("tenant"), jobs.c.id == bindparam("job"))
_STATES = select(jobs.c.id, jobs.c.state).where(
    jobs.c.tenant_id == bindparam("tenant"), jobs.c.id.in_(bindparam("ids", expanding=True))
)
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
    .values(state=JobState.QUEUED.value, message="interrupted: its process ended, or its tenant was suspended; it runs again")
)
_PROGRESS = (
    update(jobs)
    .where(*_ONE, jobs.c.state.in_(OPEN))
    .values({f: bindparam(f"new_{f}") for f in ("stage", "done", "total", "message", "updated_at")})
    .returning(jobs.c.cancel_requested)
)


def create(
    connection: Connection,
    tenant: TenantId,
    kind: JobKind,
    arguments: Mapping[str, Any],
    enqueue: Enqueue,
    *,
    join: bool = False,
) -> Job:
    """Record and enqueue a job without a document. With ``join``, return an unfinished job of the kind if there is one."""
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


def ended(connection: Connection, tenant: TenantId, job_ids: Sequence[str]) -> list[Job]:
    """Return the jobs among ``job_ids`` that have ended. `NotFound` if one of ``job_ids`` does not exist."""
    states: dict[str, str] = {}
    for batch in batches(job_ids):
        rows = connection.execute(_STATES, {"tenant": tenant.value, "ids": list(batch)})
        states |= {row.id: row.state for row in rows}
    return [read_job(connection, tenant, job_id) for job_id in dict.fromkeys(job_ids) if states.get(job_id) not in OPEN]


def list_jobs(
    connection: Connection,
    tenant: TenantId,
    *,
    limit: int,
    cursor: str | None = None,
    state: JobState | None = None,
    kind: JobKind | None = None,
    document_id: str | None = None,
) -> Page[Job]:
    """List jobs, newest first."""
    check_limit(limit)
    statement = select(jobs).where(jobs.c.tenant_id == tenant.value)
    for column, value in ((jobs.c.state, state), (jobs.c.kind, kind), (jobs.c.document_id, document_id)):
        if value is not None:
            statement = statement.where(column == str(value))
    if cursor is not None:
        statement = statement.where(beyond(jobs, _SCOPE, cursor, newest_first=True))
    statement = statement.order_by(jobs.c.created_at.desc(), jobs.c.id.desc()).limit(limit + 1)
    listed_jobs = [job_from(row) for row in connection.execute(statement).mappings()]
    last_job = listed_jobs[limit - 1] if len(listed_jobs) > limit else None
    return Page(tuple(listed_jobs[:limit]), time_cursor(_SCOPE, last_job.created_at, last_job.id) if last_job else None)


def start(connection: Connection, tenant: TenantId, job_id: str) -> Job:
    """Mark the job as running and return it. Idempotent. A job that has ended is returned unchanged."""
    row = connection.execute(_START, {"tenant": tenant.value, "job": job_id, "now": utc_now()}).mappings().first()
    if row is None:
        return read_job(connection, tenant, job_id)
    job = job_from(row)
    log_start(connection, tenant, job)
    return job


def progress(
    connection: Connection, tenant: TenantId, job_id: str, *, stage: str, done: int, total: int, message: str = ""
) -> bool:
    """Record the job's progress. Return whether cancelling was requested. The row of a job that has ended does not change."""
    values = {"new_stage": stage, "new_done": done, "new_total": total, "new_message": message, "new_updated_at": utc_now()}
    requested = connection.execute(_PROGRESS, {"tenant": tenant.value, "job": job_id, **values}).scalar_one_or_none()
    return bool(requested) if requested is not None else read_job(connection, tenant, job_id).cancel_requested


def hand_back(connection: Connection, tenant: TenantId, job_id: str, attempt: int, *, message: str | None = None) -> None:
    """Mark a running job as queued again. Nothing changes for another attempt or state.

    Args:
        message: why it waits. None: its process has ended, or its tenant was suspended.
    """
    its = (*_ONE, jobs.c.attempt == bindparam("number"))
    bound = {"tenant": tenant.value, "job": job_id, "number": attempt}
    about = {} if message is None else {"message": message}
    connection.execute(_HAND_BACK.where(*its).values(updated_at=utc_now(), **about), bound)


def hand_back_all(connection: Connection) -> int:
    """Mark running jobs of all tenants as queued. For a sole process at its start, when no job can be running."""
    return connection.execute(_HAND_BACK.values(updated_at=utc_now())).rowcount


def pending_documents(connection: Connection, tenant: TenantId, *, queued_before: datetime) -> int:
    """Count jobs recorded by then that may still make a document's version visible and are not asked to stop."""
    statement = AWAITED.where(jobs.c.tenant_id == tenant.value, jobs.c.created_at <= queued_before)
    return int(connection.execute(statement).scalar_one())


def remember(connection: Connection, tenant: TenantId, job_id: str, name: str, value: Any) -> Any:
    """Store a JSON value with a job, for all its attempts. Return the stored value: the first value of a name is kept."""
    arguments = read_job(connection, tenant, job_id, lock=True).arguments
    if name not in arguments:
        arguments = _change_job(connection, tenant, job_id, {"arguments": plain({**arguments, name: value})}).arguments
    return arguments[name]


def _change_job(connection: Connection, tenant: TenantId, job_id: str, changed: Mapping[str, Any]) -> Job:
    statement = update(jobs).where(*_ONE).values(**changed, updated_at=utc_now()).returning(jobs)
    return job_from(connection.execute(statement, {"tenant": tenant.value, "job": job_id}).mappings().one())


def request_cancel(connection: Connection, tenant: TenantId, job_id: str) -> Job:
    """Ask a job to stop. `Conflict` if it has ended."""
    job = read_job(connection, tenant, job_id, lock=True)
    if job.state.ended:
        raise Conflict(f"job {job_id!r} has ended as {job.state.value}; only queued and running jobs can be cancelled")
    return _change_job(connection, tenant, job_id, {"cancel_requested": True})


def retry(connection: Connection, tenant: TenantId, job_id: str, enqueue: Enqueue) -> Job:
    """Queue a failed, partial or cancelled job again with the next attempt number. `Conflict` in other states.

    The version of an ingest job becomes processable again. If it is partly visible, it stays, and the job gets a new
    ``version`` of the same input. `Conflict` if the document was deleted or the version superseded.
    """
    lock_tenant(connection, tenant)
    job = read_job(connection, tenant, job_id, lock=True)
    if not job.state.ended or job.state is JobState.SUCCEEDED:
        raise Conflict(f"job {job_id!r} is {job.state.value}; only failed, partial and cancelled jobs can be retried")
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
    again = _change_job(connection, tenant, job_id, fresh)
    enqueue(connection, tenant, again)
    return again


def _reopen_version(connection: Connection, tenant: TenantId, job: Job) -> int:
    """Make the job's version processable again, and return its number.

    A version that is partly visible is not changed. The job gets a new version of the same input.
    """
    document = lock_document(connection, tenant, job.document_id or "")
    if document is None or document["deleted_at"] is not None:
        raise Conflict(f"the document of job {job.id!r} was deleted")
    if job.version is None or document["latest_version"] != job.version:
        raise Conflict(f"version {job.version} of job {job.id!r} was replaced by version {document['latest_version']}")
    if document["current_version"] == job.version:
        return submissions.resubmit(connection, tenant, document, job.version, job.id)
    pending = {"state": submissions.PENDING}
    connection.execute(
        update(document_versions)
        .where(
            document_versions.c.tenant_id == tenant.value,
            document_versions.c.document_id == document["id"],
            document_versions.c.version == job.version,
        )
        .values(**pending, failures=[])
    )
    changed = {**pending, "job_id": job.id, "updated_at": utc_now()}
    submissions.change_document(connection, tenant, document["id"], changed)
    return job.version


def last(connection: Connection, tenant: TenantId, kind: JobKind) -> Job | None:
    """Return the newest job of a kind."""
    statement = (
        select(jobs)
        .where(jobs.c.tenant_id == tenant.value, jobs.c.kind == kind.value)
        .order_by(jobs.c.created_at.desc(), jobs.c.id.desc())
        .limit(1)
    )
    row = connection.execute(statement).mappings().first()
    return None if row is None else job_from(row)


class JobCatalogue(CataloguePart):
    """Jobs and their states. `jobs` has the durable queue that runs them."""

    create = write(create)
    job = read(read_job)
    ended = read(ended)
    jobs = read(list_jobs)
    start = write(start)
    progress = write(progress)
    hand_back = write(hand_back)
    hand_back_all = write(hand_back_all)
    pending_documents = read(pending_documents)
    remember = write(remember)
    finish = write(end_job)
    request_cancel = write(request_cancel)
    retry = write(retry)
    last = read(last)
