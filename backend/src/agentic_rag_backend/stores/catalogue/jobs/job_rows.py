"""Rows of jobs. `JobCatalogue` writes them, and `DocumentCatalogue` in the transaction of the document.

Log entries for the start and the end of jobs. Written once the row is committed.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, func, insert, select, update
from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.job import Job, JobKind, JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidRequest, NotFound
from agentic_rag_backend.fairness import current_actor
from agentic_rag_backend.stores.catalogue.columns import plain, utc_now
from agentic_rag_backend.stores.catalogue.database import after_commit
from agentic_rag_backend.stores.catalogue.operations import job_from
from agentic_rag_backend.stores.catalogue.quota_catalogue import require_job
from agentic_rag_backend.stores.catalogue.tables import documents, jobs
from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)


def log_start(connection: Connection, tenant: TenantId, job: Job) -> None:
    """Log that an attempt at a job starts, or continues in another process."""
    about = {"tenant": str(tenant), "job": job.id, "kind": job.kind.value, "attempt": job.attempt}
    if job.document_id is not None:
        about["document"] = job.document_id
    after_commit(connection, lambda: _log.info("job_started", **about))


def log_end(
    connection: Connection,
    tenant: TenantId,
    row: Mapping[str, Any],
    state: JobState,
    *,
    now: datetime,
    result: Mapping[str, Any] | None,
    error: Mapping[str, Any] | None,
) -> None:
    """Log the end of a job: seconds, and counts or the error.

    Args:
        row: ``id``, ``kind``, ``attempt`` and ``started_at`` of the job.
    """
    about: dict[str, Any] = {"tenant": str(tenant), "job": row["id"], "kind": row["kind"], "attempt": row["attempt"]}
    about |= {"state": state.value, "counts": counts_of(result or {})}
    if row["started_at"] is not None:
        about["seconds"] = round((now - row["started_at"]).total_seconds(), 3)
    if error is not None:
        about |= {"code": error.get("code"), "reason": error.get("message")}
    after_commit(connection, lambda: _log.info("job_ended", **about))


def counts_of(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers in a job's result, including nested ones. Texts and lists are left out because they may be long."""
    counts: dict[str, Any] = {}
    for name, value in result.items():
        if isinstance(value, Mapping):
            counts |= {name: inner} if (inner := counts_of(value)) else {}
        elif isinstance(value, int | float) and not isinstance(value, bool):
            counts[name] = value
    return counts


OPEN = (JobState.QUEUED.value, JobState.RUNNING.value)
AWAITED: Select[int] = (
    select(func.count())
    .select_from(jobs.join(documents, and_(documents.c.tenant_id == jobs.c.tenant_id, documents.c.id == jobs.c.document_id)))
    .where(
        jobs.c.kind == JobKind.INGEST.value,
        jobs.c.state.in_(OPEN),
        jobs.c.cancel_requested.is_(False),
        documents.c.deleted_at.is_(None),
        documents.c.current_version < jobs.c.version,
    )
)
"""Counts the jobs that may still make a version visible: see `JobCatalogue.pending_documents`."""
_INSERT = insert(jobs)
_ONE = (jobs.c.tenant_id == bindparam("tenant"), jobs.c.id == bindparam("job"))
_READ = select(jobs).where(*_ONE)
_CANCEL_REQUESTED = select(jobs.c.cancel_requested).where(*_ONE, jobs.c.state.in_(OPEN))
_READ_LOCKED = _READ.with_for_update()
_FINISH = (
    update(jobs)
    .where(*_ONE, jobs.c.state.in_(OPEN))
    .values({f: bindparam(f"new_{f}") for f in ("state", "result", "error", "updated_at", "finished_at")})
    .returning(jobs.c.id, jobs.c.kind, jobs.c.attempt, jobs.c.started_at)
)
_FINISH_AT = _FINISH.values({f: bindparam(f"new_{f}") for f in ("stage", "done", "total")})


def new_job(
    connection: Connection,
    tenant: TenantId,
    kind: JobKind,
    *,
    document_id: str | None = None,
    version: int | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> Job:
    """Insert a queued job and return it. It works for the key that the caller works for.

    Raises:
        QuotaExceeded: as many jobs of the tenant wait as may wait. Deletions are never refused.
    """
    if kind is not JobKind.DELETE:
        require_job(connection, tenant)
    now = utc_now()
    job = Job(
        id=str(uuid.uuid4()),
        kind=kind,
        state=JobState.QUEUED,
        document_id=document_id,
        version=version,
        stage="",
        done=0,
        total=0,
        attempt=1,
        cancel_requested=False,
        created_at=now,
        updated_at=now,
        arguments=plain(arguments or {}),
        key_id=current_actor().key_id,
    )
    row = {name: getattr(job, name) for name in jobs.c.keys() if name != "tenant_id"}  # noqa: SIM118 (a column collection)
    connection.execute(_INSERT, {**row, "tenant_id": tenant.value, "kind": kind.value, "state": job.state.value})
    return job


def read_job(connection: Connection, tenant: TenantId, job_id: str, *, lock: bool = False) -> Job:
    """Return the job.

    Raises:
        NotFound: the tenant has no job with this id.
    """
    statement = _READ_LOCKED if lock else _READ
    row = connection.execute(statement, {"tenant": tenant.value, "job": job_id}).mappings().first()
    if row is None:
        raise NotFound(f"there is no job {job_id!r}")
    return job_from(row)


def cancel_requested(connection: Connection, tenant: TenantId, job_id: str) -> bool:
    """Return whether an unfinished job was asked to stop."""
    return bool(connection.execute(_CANCEL_REQUESTED, {"tenant": tenant.value, "job": job_id}).scalar_one_or_none())


def end_job(
    connection: Connection,
    tenant: TenantId,
    job_id: str,
    state: JobState,
    *,
    result: Mapping[str, Any] | None = None,
    error: Mapping[str, Any] | None = None,
    progress: tuple[str, int, int] | None = None,
) -> None:
    """Record how the job ended; ``progress`` is its last stage, done and total. The first ending is final.

    Raises:
        InvalidRequest: a job cannot end in ``state``.
    """
    if not state.ended:
        raise InvalidRequest(f"a job ends as succeeded, partial, failed or cancelled; got {state.value!r}")
    now = utc_now()
    bound: dict[str, Any] = {
        "tenant": tenant.value,
        "job": job_id,
        "new_state": state.value,
        "new_result": None if result is None else plain(result),
        "new_error": None if error is None else plain(error),
        "new_updated_at": now,
        "new_finished_at": now,
    }
    if progress is not None:
        bound |= dict(zip(("new_stage", "new_done", "new_total"), progress, strict=True))
    row = connection.execute(_FINISH if progress is None else _FINISH_AT, bound).mappings().first()
    if row is None:
        read_job(connection, tenant, job_id)  # the first ending is final; an unknown job is an error
    else:
        log_end(connection, tenant, dict(row), state, now=now, result=bound["new_result"], error=bound["new_error"])


def cancel_open_jobs(connection: Connection, tenant: TenantId, document_id: str) -> None:
    """Ask all unfinished jobs of a document to stop."""
    cancel_jobs(connection, tenant, jobs.c.document_id == document_id)


def cancel_jobs(connection: Connection, tenant: TenantId, condition: ColumnElement[bool]) -> None:
    """Ask the tenant's unfinished jobs that meet a condition to stop."""
    its = (jobs.c.tenant_id == tenant.value, jobs.c.state.in_(OPEN), condition)
    connection.execute(update(jobs).where(*its).values(cancel_requested=True, updated_at=utc_now()))
