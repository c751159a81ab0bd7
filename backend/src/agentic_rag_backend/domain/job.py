"""Work that outlives a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class JobKind(StrEnum):
    INGEST = "ingest"
    DELETE = "delete"
    REBUILD = "rebuild"
    RECONCILE = "reconcile"
    IMPORT = "import"
    RAPTOR = "raptor"


class JobState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """Tell whether nothing more will happen to the job by itself."""
        return self not in (JobState.QUEUED, JobState.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job's row: what it does, how far it is (``done`` of ``total`` units of ``stage``) and how it ended."""

    id: str
    kind: JobKind
    state: JobState
    document_id: str | None
    version: int | None
    stage: str
    done: int
    total: int
    attempt: int
    cancel_requested: bool
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    message: str = ""
    error: Mapping[str, Any] | None = None
    result: Mapping[str, Any] | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
