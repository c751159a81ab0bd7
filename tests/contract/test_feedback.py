"""The contract of feedback on SQLite, and on stores with planted faults."""

from __future__ import annotations

from pathlib import Path

import pytest
from catalogue_checks import feedback as contract
from planted_statements import plant

from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.stores.catalogue import feedback as module
from agentic_rag_backend.stores.catalogue.base import Catalogue


async def test_sqlite(tmp_path: Path) -> None:
    for check in contract.CHECKS:
        opened = await Catalogue.open(f"sqlite:///{tmp_path / check.__name__}.db")
        await opened.migrate()
        await check(opened)
        await opened.close()


@pytest.mark.parametrize(
    ("check", "kind", "old", "new"),
    [
        (contract.feedback_on_nothing_is_refused, "SELECT", "answers.tenant_id = ?", "? <> ''"),
        (contract.pages_and_filters, "SELECT", "feedback.tenant_id = ?", "? <> ''"),
        (
            contract.cases_have_the_ratings_of_their_questions,
            "SELECT",
            "feedback.tenant_id = ? AND feedback.question",
            "? <> '' AND feedback.question",
        ),
        (contract.cases_have_the_ratings_of_their_questions, "SELECT", "feedback.citation IS NULL", "1 = 1"),
        (contract.kept_questions_can_be_listed_and_forgotten, "SELECT", "answers.tenant_id = ?", "? <> ''"),
        (contract.kept_questions_can_be_listed_and_forgotten, "UPDATE", "answers.tenant_id = ?", "? <> ''"),
        (contract.a_deleted_document_takes_the_texts_with_it, "UPDATE", "correction=?", "correction=coalesce(?, correction)"),
        (contract.a_deleted_document_takes_the_texts_with_it, "SELECT", "documents.deleted_at IS NULL", "1 = 1"),
    ],
)
async def test_faulty_statements_fail(catalogue: Catalogue, check: contract.Check, kind: str, old: str, new: str) -> None:
    planted = plant(catalogue, kind, old, new)
    with pytest.raises((AssertionError, AgenticRagError)):
        await check(catalogue)
    assert planted


async def test_only_the_newest_answers_stay(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ANSWERS", 3)
    a, b = [(await catalogue.tenants.create(name)).id for name in "ab"]
    await catalogue.feedback.add_answers([(b, contract.answer("of another tenant"))])
    await catalogue.feedback.add_answers([(a, contract.answer(f"a_{number}", minutes=number)) for number in (4, 1, 3, 2, 0)])
    left = []
    for number in range(5):
        try:
            left.append((await catalogue.feedback.answer(a, f"a_{number}")).id)
        except AgenticRagError:
            continue
    assert left == ["a_2", "a_3", "a_4"]
    await catalogue.feedback.answer(b, "of another tenant")
