"""Log entries for the start and the end of jobs. Written once the row is committed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.job import Job, JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.database import after_commit
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
