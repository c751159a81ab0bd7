"""Feedback of a caller on answers."""

from __future__ import annotations

from dataclasses import dataclass

from agentic_rag_backend.application.access import requires
from agentic_rag_backend.container.services import Container
from agentic_rag_backend.domain.feedback import Feedback, FeedbackDraft, Rating
from agentic_rag_backend.domain.tenant import Principal, Scope
from agentic_rag_backend.stores.catalogue.pages import Page


@dataclass(frozen=True, slots=True)
class AnswerFeedback:
    """Takes and lists feedback on answers of the tenant."""

    container: Container

    @requires(Scope.READ, filtered=True)
    async def submit(self, caller: Principal, draft: FeedbackDraft) -> Feedback:
        """Record feedback. See `FeedbackService.submit`."""
        return await self.container.feedback.submit(caller.tenant.id, caller.key_id, draft)

    @requires(Scope.ADMIN)
    async def list_feedback(
        self,
        caller: Principal,
        *,
        limit: int,
        cursor: str | None = None,
        rating: Rating | None = None,
        strategy: str | None = None,
        answer_id: str | None = None,
        question: str | None = None,
    ) -> Page[Feedback]:
        """Return feedback of all keys, the newest first."""
        return await self.container.feedback.list_feedback(
            caller.tenant.id,
            limit=limit,
            cursor=cursor,
            rating=rating,
            strategy=strategy,
            answer_id=answer_id,
            question=question,
        )
