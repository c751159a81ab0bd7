"""Scores of answers that a caller measured elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from agentic_rag_backend.application.access import requires
from agentic_rag_backend.container.services import Container
from agentic_rag_backend.domain.score_submission import RecordedScores, ScoreSubmission
from agentic_rag_backend.domain.tenant import Principal, Scope
from agentic_rag_backend.stores.catalogue.submitted_scores import ScorePage


@dataclass(frozen=True, slots=True)
class SubmittedScores:
    """Takes scores, and reports their means."""

    container: Container

    @requires(Scope.WRITE)
    async def submit(self, caller: Principal, submission: ScoreSubmission) -> RecordedScores:
        """Record scores. See `ScoreReports.submit`."""
        return await self.container.score_reports.submit(caller.tenant.id, submission)

    @requires(Scope.READ)
    async def list_means(
        self,
        caller: Principal,
        start: date | None,
        end: date | None,
        *,
        limit: int,
        cursor: str | None = None,
        filters: Mapping[str, str | None] | None = None,
    ) -> ScorePage:
        """Return means by day, strategy and configuration. See `ScoreReports.list_means`."""
        reports = self.container.score_reports
        return await reports.list_means(caller.tenant.id, start, end, limit=limit, cursor=cursor, filters=filters)
