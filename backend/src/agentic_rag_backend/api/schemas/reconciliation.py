"""Comparisons of the stores."""

from __future__ import annotations

from datetime import datetime

from pydantic import ConfigDict, Field

from agentic_rag_backend.api.schemas.base import Body, Switch, View
from agentic_rag_backend.api.schemas.jobs import JobView


class ReconcileBody(Body):
    """Options of a comparison of the stores."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"repair": True}]})

    repair: Switch = Field(False, description="false: report differences, change nothing")
    confirm: Switch = Field(
        False,
        description="with `repair`: remove data of no known document, even if it is much (`withheld` counts it)",
    )


class ReconcileStatus(View):
    """Interval of the comparisons, and the last comparison. The job's `result` has the counts by kind."""

    interval_s: float = Field(description="seconds between two scheduled comparisons with repair; 0: no scheduled comparisons")
    last_job: JobView | None


class LastReconciliation(View):
    """Figures of the last finished comparison."""

    finished_at: datetime
    repair: bool
    found: int
    mended: int
    skipped: int
    unmendable: int
    withheld: int
