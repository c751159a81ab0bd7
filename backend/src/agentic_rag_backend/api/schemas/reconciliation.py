"""Comparisons of the stores with one another."""

from __future__ import annotations

from datetime import datetime

from pydantic import ConfigDict, Field

from agentic_rag_backend.api.schemas.base import Body, Switch, View
from agentic_rag_backend.api.schemas.jobs import JobView


class ReconcileBody(Body):
    """A comparison of what the stores hold."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"repair": True}]})

    repair: Switch = Field(False, description="false: report differences, change nothing")
    confirm: Switch = Field(
        False,
        description="with `repair`: remove what no document of the catalogue names, however much it is (`withheld` counts it)",
    )


class ReconcileStatus(View):
    """When the stores are compared, and what came of it the last time: the job's `result` has the counts by kind."""

    interval_s: float = Field(description="seconds between two comparisons that mend; 0: none without being asked")
    last_job: JobView | None


class LastReconciliation(View):
    """The last comparison that ended, in numbers."""

    finished_at: datetime
    repair: bool
    found: int
    mended: int
    skipped: int
    unmendable: int
    withheld: int
