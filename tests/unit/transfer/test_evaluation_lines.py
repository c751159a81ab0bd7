"""An export leaves out texts of documents that the archive lacks: no deletion would reach them there."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from agentic_rag_backend.domain.evaluation import CaseSource, EvaluationCase, GoldItem
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.base import ArchivedCase, ArchivedDataset, ArchivedFeedback, ArchivedScore
from agentic_rag_backend.transfer.evaluation_lines import CaseLine, DatasetLine, FeedbackLine, ScoreLine, read_evaluation

NOW = datetime(2026, 5, 31, tzinfo=UTC)
ID, HERE, AWAY = ("00000000-0000-4000-8000-00000000000" + digit for digit in "123")


def _case(number: int, source: CaseSource, *documents: str) -> ArchivedCase:
    gold = tuple(GoldItem(quote="a text", chunk_id=f"c-{name}", document=name) for name in documents)
    case = EvaluationCase(question="Who?", source=source, gold=gold, documents=documents)
    return ArchivedCase(dataset_id=ID, number=number, id=ID, added_in=1, removed_in=None, case=case)


def _feedback(*documents: str) -> ArchivedFeedback:
    answer: dict[str, Any] = {"answer_id": "a_1", "key_id": "k", "citation": None, "result": None, "chunk_id": None}
    quality: dict[str, Any] = {"strategy": "hybrid", "generator": "attributed", "confidence": 0.5, "estimate": 0.8}
    texts: dict[str, Any] = {"question_hash": None, "rating": "bad", "reason": "r", "correction": "c", "texts_removed": False}
    texts |= {"question": "Who?", "grounded": True}
    return ArchivedFeedback(**answer, **quality, **texts, id=ID, created_at=NOW, updated_at=NOW, documents=documents)


class FakeCatalogue:
    """Returns everything in one page."""

    async def datasets(self, _: TenantId) -> list[ArchivedDataset]:
        return [ArchivedDataset(id=ID, name="d", version=1, created_at=NOW, updated_at=NOW)]

    async def cases(self, _: TenantId, dataset_id: str, *, after: int, limit: int) -> list[ArchivedCase]:
        cases = [
            _case(1, CaseSource.GRAPH, HERE),
            _case(2, CaseSource.GRAPH, HERE, AWAY),
            _case(3, CaseSource.UPLOAD, HERE, AWAY),
        ]
        return [] if after else cases

    async def feedback(self, _: TenantId, *, after: str, limit: int) -> list[ArchivedFeedback]:
        return [] if after else [_feedback(HERE), _feedback(HERE, AWAY)]

    async def scores(self, _: TenantId, *, after: tuple[str, str], limit: int) -> list[ArchivedScore]:
        score: dict[str, Any] = {"strategy": "", "configuration": "", "value": 0.5, "computed": True}
        return [] if after[0] else [ArchivedScore(id=ID, metric="m", day=date(2026, 5, 31), **score)]


async def test_texts_of_other_documents_are_left_out() -> None:
    pages = read_evaluation(FakeCatalogue(), TenantId.new(), {HERE})  # type: ignore[arg-type]
    lines = [line async for page in pages for line in page]
    assert [type(line) for line in lines] == [DatasetLine, CaseLine, CaseLine, FeedbackLine, FeedbackLine, ScoreLine]
    cases = [line for line in lines if isinstance(line, CaseLine)]
    assert [(case.number, case.documents) for case in cases] == [(1, (HERE,)), (3, (HERE,))]
    assert [(item.quote, item.document) for item in cases[1].gold] == [("a text", HERE), ("", None)]
    feedback = [line for line in lines if isinstance(line, FeedbackLine)]
    assert [(item.reason, item.correction, item.question, item.texts_removed, item.documents) for item in feedback] == [
        ("r", "c", "Who?", False, (HERE,)),
        (None, None, None, True, (HERE,)),
    ]
