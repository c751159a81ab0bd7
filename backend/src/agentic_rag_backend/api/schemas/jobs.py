"""Jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from agentic_rag_backend.api.schemas.base import View
from agentic_rag_backend.domain.job import Job, JobKind, JobState


class JobView(View):
    """A job: ``done`` of ``total`` units of ``stage``, and its result or error."""

    id: str
    kind: JobKind
    state: JobState
    document_id: str | None
    stage: str
    done: int
    total: int
    message: str
    attempt: int
    cancel_requested: bool
    error: dict[str, Any] | None
    result: dict[str, Any] | None
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @classmethod
    def of(cls, job: Job) -> JobView:
        """Return the view of a job."""
        return cls(
            id=job.id,
            kind=job.kind,
            state=job.state,
            document_id=job.document_id,
            stage=job.stage,
            done=job.done,
            total=job.total,
            message=job.message,
            attempt=job.attempt,
            cancel_requested=job.cancel_requested,
            error=dict(job.error) if job.error is not None else None,
            result=dict(job.result) if job.result is not None else None,
            created_at=job.created_at,
            updated_at=job.updated_at,
            started_at=job.started_at,
            finished_at=job.finished_at,
        )


class JobAccepted(View):
    """A queued job."""

    job_id: str
    state: JobState
