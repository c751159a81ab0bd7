"""Answers between their response and the catalogue, and feedback on answers of other processes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from agentic_rag_backend.domain.answer import Answer
from agentic_rag_backend.domain.contradictions import Contradiction, Side
from agentic_rag_backend.domain.feedback import AnswerRecord, FeedbackDraft, Rating
from agentic_rag_backend.domain.graph import EntityRef, Finding, Support
from agentic_rag_backend.domain.query import FactHit, Retrieval, ThemeHit, Trace
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import NotFound, StoreUnavailable
from agentic_rag_backend.evaluation.feedback import FeedbackService

TENANT = TenantId(f"t_{'0' * 32}")


class _Rows:
    """Recorded answers, behind a connection that can fail."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.fails = False

    async def add_answers(self, records: Sequence[tuple[TenantId, AnswerRecord]]) -> None:
        await asyncio.sleep(0.01)
        if self.fails:
            raise StoreUnavailable("the catalogue does not answer")
        self.ids += [record.id for _, record in records]

    async def submit(self, tenant: TenantId, key_id: str, draft: FeedbackDraft) -> str:
        if draft.answer_id not in self.ids:
            raise NotFound("there is no such answer")
        return draft.answer_id


def _service(rows: Any, patience_s: float = 0.0) -> FeedbackService:
    return FeedbackService(rows, rows, patience_s=patience_s)


def _answer(service: FeedbackService) -> str:
    retrieval = Retrieval(hits=(), trace=Trace(strategy="hybrid"))
    return service.record_answer(
        TENANT, "k", Answer(text="", citations=(), confidence=0.0, grounded=False, retrieval=retrieval), question="Who?"
    ).id


def test_an_answer_knows_the_documents_of_its_facts_themes_and_contradictions() -> None:
    """Feedback may quote them, so their deletion removes its texts."""
    entity = EntityRef("e", "Ada", "person")
    fact = FactHit(id="f", source=entity, relation="r", target=entity, fact="x", chunk_id="c1", document_id="d1", score=1.0)
    finding = Finding("x", (Support("d2", 1, "c2"),))
    theme = ThemeHit(
        id="t", name="n", summary="s", keywords=(), entity_count=1, level=0, generation=1, score=1.0, findings=(finding,)
    )
    a, b = (
        Side(fact="x", value="x", chunk_id=f"c{number}", document_id=f"d{number}", title="", quote="x", start_char=0)
        for number in (3, 4)
    )
    contradiction = Contradiction(
        kind="date", about=None, subject="x", entity_a=None, entity_b=None, a=a, b=b, reason="", confidence=1.0
    )
    retrieval = Retrieval(facts=(fact,), themes=(theme,), trace=Trace(strategy="dual_level"))
    answer = Answer(text="", citations=(), confidence=0.0, grounded=False, retrieval=retrieval, contradictions=(contradiction,))
    record = AnswerRecord.of_answer(answer, key_id="k", question="Who?", created_at=datetime.now(UTC))
    assert set(record.documents.values()) == {"d1", "d2", "d3", "d4"}


async def test_failed_writes_lose_and_repeat_nothing() -> None:
    rows = _Rows()
    service = _service(rows)
    ids = [_answer(service)]
    rows.fails = True
    await service.write_answers()
    ids.append(_answer(service))
    rows.fails = False
    await asyncio.gather(*(service.write_answers() for _ in range(3)))
    await service.write_answers()
    assert rows.ids == ids


async def test_feedback_waits_for_an_answer_that_is_being_written() -> None:
    rows = _Rows()
    service = _service(rows)
    id = _answer(service)
    writing = asyncio.create_task(service.write_answers())
    await asyncio.sleep(0)
    assert await service.submit(TENANT, "k", FeedbackDraft(answer_id=id, rating=Rating.GOOD)) == id  # type: ignore[comparison-overlap]
    await writing


async def test_feedback_waits_for_an_answer_of_another_process() -> None:
    rows = _Rows()
    another, patient, alone = _service(rows), _service(rows, 0.1), _service(rows)
    draft = FeedbackDraft(answer_id=_answer(another), rating=Rating.BAD)
    with pytest.raises(NotFound):
        await alone.submit(TENANT, "k", draft)
    waiting = asyncio.create_task(patient.submit(TENANT, "k", draft))
    await asyncio.sleep(0)
    await another.write_answers()
    assert await waiting == draft.answer_id  # type: ignore[comparison-overlap]
    with pytest.raises(NotFound):
        await patient.submit(TENANT, "k", FeedbackDraft(answer_id="a_0", rating=Rating.BAD))
