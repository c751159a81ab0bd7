"""Feedback on answers: records answers without slowing them, and takes and lists feedback."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime

from agentic_rag_backend.domain.answer import Answer
from agentic_rag_backend.domain.asked_questions import hash_question
from agentic_rag_backend.domain.feedback import AnswerRecord, Feedback, FeedbackDraft, Rating, new_answer_id
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError, NotFound
from agentic_rag_backend.stores.catalogue.base import AskedQuestionCatalogue, FeedbackCatalogue, Page
from agentic_rag_backend.telemetry.logs import get_logger

WRITTEN_EVERY_S = 1.0
"""Seconds between two writes of answers. Another process knows an answer after this time."""
_CLEANED_EVERY_S = 3600.0
"""Seconds between two deletions of questions that are too old."""
_MAX_WAITING = 10_000
"""Answers that wait for a catalogue that does not answer. Older ones are dropped."""

_log = get_logger(__name__)


class FeedbackService:
    """Records answers and feedback on them.

    Args:
        patience_s: seconds to wait for an answer that another process may be writing. 0: there is no other process.
    """

    def __init__(self, catalogue: FeedbackCatalogue, questions: AskedQuestionCatalogue, *, patience_s: float = 0.0) -> None:
        self._catalogue = catalogue
        self._questions = questions
        self._patience_s = patience_s
        self._waiting: list[tuple[TenantId, AnswerRecord]] = []
        self._writing = asyncio.Lock()

    def record_answer(self, tenant: TenantId, key_id: str, answer: Answer, *, question: str, keep: bool = False) -> Answer:
        """Return the answer with a new id, under which a key of the tenant can give feedback.

        Args:
            keep: keep the text of the question, because the tenant allows it.
        """
        identified = replace(answer, id=new_answer_id())
        record = AnswerRecord.of_answer(identified, key_id=key_id, question=question, created_at=datetime.now(UTC))
        self._waiting.append((tenant, replace(record, question=question if keep else None)))
        del self._waiting[:-_MAX_WAITING]
        return identified

    async def run(self) -> None:
        """Write answers at intervals, and delete old questions, until the task is cancelled."""
        cleaned_at = -_CLEANED_EVERY_S
        while True:
            await asyncio.sleep(WRITTEN_EVERY_S)
            await self.write_answers()
            if time.monotonic() - cleaned_at >= _CLEANED_EVERY_S:
                cleaned_at = time.monotonic()
                await self._forget_old_questions()

    async def _forget_old_questions(self) -> None:
        try:
            await self._questions.forget_old_texts()
        except AgenticRagError as error:
            _log.warning("old_questions_not_deleted", code=error.code, reason=error.message)

    async def write_answers(self) -> None:
        """Write the answers that wait, also those that another task is writing. If that fails, they wait on."""
        # If the caller is cancelled, the records would otherwise be lost between memory and the catalogue.
        await asyncio.shield(self._write_records())

    async def _write_records(self) -> None:
        async with self._writing:
            records, self._waiting = self._waiting, []
            if not records:
                return
            try:
                await self._catalogue.add_answers(records)
            except AgenticRagError as error:
                self._waiting = [*records, *self._waiting][-_MAX_WAITING:]
                _log.warning("answers_not_recorded", code=error.code, reason=error.message, rows=len(records))

    async def submit(self, tenant: TenantId, key_id: str, draft: FeedbackDraft) -> Feedback:
        """Record feedback. The same key's feedback on the same subject is replaced.

        Raises:
            NotFound: the tenant has no such answer, or it is too old.
            InvalidRequest: the answer has no such citation or result.
        """
        await self.write_answers()
        try:
            return await self._catalogue.submit(tenant, key_id, draft)
        except NotFound:
            if not self._patience_s:
                raise
        await asyncio.sleep(self._patience_s)
        return await self._catalogue.submit(tenant, key_id, draft)

    async def list_feedback(
        self,
        tenant: TenantId,
        *,
        limit: int,
        cursor: str | None = None,
        rating: Rating | None = None,
        strategy: str | None = None,
        answer_id: str | None = None,
        question: str | None = None,
    ) -> Page[Feedback]:
        """Return feedback, the newest first, of a rating, a strategy, an answer or a question."""
        return await self._catalogue.page(
            tenant,
            limit=limit,
            cursor=cursor,
            rating=rating,
            strategy=strategy,
            answer_id=answer_id,
            question_hash=hash_question(question) if question is not None else None,
        )
