"""Jobs: work that continues after its request."""

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
    EVALUATE = "evaluate"
    GENERATE = "generate"
    TUNE = "tune"


class JobState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """Whether the job has reached a final state. Only a retry changes it."""
        return self not in (JobState.QUEUED, JobState.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job's row: its kind, its progress (``done`` of ``total`` units of ``stage``) and its outcome."""

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
    key_id: str | None = None
    """Key of the request that began the job. None: no request did."""
