"""Feedback on answers, and the answers that can get it.

`tests.fixtures.catalogue_checks.feedback` checks the contract on both databases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, delete, func, or_, select, update
from sqlalchemy.engine import Connection, RowMapping

from agentic_rag_backend.domain.asked_questions import RatingCounts
from agentic_rag_backend.domain.feedback import MAX_ANSWERS, AnswerRecord, Feedback, FeedbackDraft, Rating
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import NotFound
from agentic_rag_backend.stores.catalogue.columns import utc_now
from agentic_rag_backend.stores.catalogue.operations import (
    CataloguePart,
    batches,
    find_undeleted,
    lock_tenant,
    read,
    upsert,
    write,
)
from agentic_rag_backend.stores.catalogue.pages import Page, beyond, check_limit, time_cursor
from agentic_rag_backend.stores.catalogue.tables import answers, feedback, feedback_documents, tenants

_SCOPE = "feedback"
_COPIED = ("strategy", "generator", "confidence", "estimate", "grounded", "question_hash")
"""Columns that feedback copies from its answer, because the answer is removed earlier."""
_TEXTS = ("reason", "correction", "question")
_CHANGEABLE = ("rating", *_TEXTS, "texts_removed", "updated_at")


def add_answers(connection: Connection, records: Sequence[tuple[TenantId, AnswerRecord]]) -> None:
    """Record answers. Those of removed tenants are left out. Of each tenant, the newest `MAX_ANSWERS` stay."""
    ids = sorted({tenant.value for tenant, _ in records})
    present: set[str] = set()
    for batch in batches(ids):
        # The lock keeps the tenant until the rows are there, and lets all other writers work.
        locked = select(tenants.c.tenant_id).where(tenants.c.tenant_id.in_(batch)).order_by(tenants.c.tenant_id)
        present.update(connection.execute(locked.with_for_update(read=True, key_share=True)).scalars())
    rows = [_answer_row(tenant, record) for tenant, record in records if tenant.value in present]
    upsert(connection, answers, rows, keys=("tenant_id", "id"))
    for tenant_id in sorted(present):
        of_tenant = answers.c.tenant_id == tenant_id
        newest = select(answers.c.created_at).where(of_tenant).order_by(answers.c.created_at.desc(), answers.c.id.desc())
        _find_oldest_time = newest.offset(MAX_ANSWERS).limit(1).scalar_subquery()
        connection.execute(delete(answers).where(of_tenant, answers.c.created_at <= _find_oldest_time))


def _answer_row(tenant: TenantId, record: AnswerRecord) -> dict[str, Any]:
    return {
        "tenant_id": tenant.value,
        "id": record.id,
        "key_id": record.key_id,
        **{name: getattr(record, name) for name in _COPIED},
        "question": record.question,
        "citations": [[marker, chunk_id] for marker, chunk_id in record.citations.items()],
        "documents": dict(record.documents),
        "created_at": record.created_at,
    }


def read_answer(connection: Connection, tenant: TenantId, answer_id: str) -> AnswerRecord:
    """Return an answer. `NotFound` if the tenant has no such answer, or has more than `MAX_ANSWERS` newer ones."""
    statement = select(answers).where(answers.c.tenant_id == tenant.value, answers.c.id == answer_id)
    row = connection.execute(statement).mappings().first()
    if row is None:
        raise _no_answer(answer_id)
    values = {name: row[name] for name in ("id", "key_id", *_COPIED, "question", "created_at", "documents")}
    return AnswerRecord(**values, citations={marker: chunk_id for marker, chunk_id in row["citations"]})  # noqa: C416 (JSON lists)


def _no_answer(answer_id: str) -> NotFound:
    return NotFound(f"there is no answer {answer_id[:80]!r} that can get feedback")


def submit(connection: Connection, tenant: TenantId, key_id: str, draft: FeedbackDraft) -> Feedback:
    """Record feedback, and return it. The same key's feedback on the same subject is replaced.

    Its texts are left out if a document that they may quote was deleted meanwhile.

    Raises:
        NotFound: see `read_answer`.
        InvalidRequest: see `FeedbackDraft.find_chunk`.
    """
    lock_tenant(connection, tenant)
    answer = read_answer(connection, tenant, draft.answer_id)
    if tenant.access is not None and answer.key_id != key_id:
        raise _no_answer(draft.answer_id)  # it may quote documents that the key may not read
    chunk_id = draft.find_chunk(answer)
    quotable_documents = sorted(set(answer.documents.values()) if chunk_id is None else {answer.documents[chunk_id]})
    removed = len(find_undeleted(connection, tenant, quotable_documents)) < len(quotable_documents)
    now, id = utc_now(), draft.make_id(key_id)
    row = {
        "tenant_id": tenant.value,
        "id": id,
        "answer_id": answer.id,
        "key_id": key_id,
        "citation": draft.citation,
        "result": draft.result,
        "chunk_id": chunk_id,
        **{name: getattr(answer, name) for name in _COPIED},
        "rating": draft.rating.value,
        **{name: None if removed else getattr(draft, name) for name in _TEXTS},
        "texts_removed": removed and any(getattr(draft, name) is not None for name in _TEXTS),
        "created_at": now,
        "updated_at": now,
    }
    upsert(connection, feedback, [row], keys=("tenant_id", "id"), replace=_CHANGEABLE)
    links = [{"tenant_id": tenant.value, "document_id": name, "feedback_id": id} for name in quotable_documents]
    upsert(connection, feedback_documents, links, keys=("tenant_id", "document_id", "feedback_id"))
    of_feedback = (feedback.c.tenant_id == tenant.value, feedback.c.id == id)
    return _feedback_from(connection.execute(select(feedback).where(*of_feedback)).mappings().one())


def remove_texts(connection: Connection, tenant: TenantId, document_id: str) -> None:
    """Remove the texts of feedback that may quote a document. Ratings stay."""
    linked = select(feedback_documents.c.feedback_id).where(
        feedback_documents.c.tenant_id == tenant.value, feedback_documents.c.document_id == document_id
    )
    has_text = or_(*(feedback.c[name].is_not(None) for name in _TEXTS))
    connection.execute(
        update(feedback)
        .where(feedback.c.tenant_id == tenant.value, feedback.c.id.in_(linked), has_text)
        .values({**dict.fromkeys(_TEXTS), "texts_removed": True})
    )
    of_document = (feedback_documents.c.tenant_id == tenant.value, feedback_documents.c.document_id == document_id)
    connection.execute(delete(feedback_documents).where(*of_document))


def page(
    connection: Connection,
    tenant: TenantId,
    *,
    limit: int,
    cursor: str | None = None,
    rating: Rating | None = None,
    strategy: str | None = None,
    answer_id: str | None = None,
    question_hash: str | None = None,
) -> Page[Feedback]:
    """Return feedback, the newest first, of a rating, a strategy, an answer or a question."""
    statement = select(feedback).where(feedback.c.tenant_id == tenant.value)
    filters = {"rating": rating, "strategy": strategy, "answer_id": answer_id, "question_hash": question_hash}
    for name, value in filters.items():
        if value is not None:
            statement = statement.where(feedback.c[name] == str(value))
    if cursor is not None:
        statement = statement.where(beyond(feedback, _SCOPE, cursor, newest_first=True))
    statement = statement.order_by(feedback.c.created_at.desc(), feedback.c.id.desc()).limit(check_limit(limit) + 1)
    items = [_feedback_from(row) for row in connection.execute(statement).mappings()]
    last_item = items[limit - 1] if len(items) > limit else None
    return Page(tuple(items[:limit]), time_cursor(_SCOPE, last_item.created_at, last_item.id) if last_item else None)


def count_ratings(connection: Connection, tenant: TenantId, hashes: Sequence[str] | Select[str]) -> dict[str, RatingCounts]:
    """Return the ratings of whole answers by the hash of their question, for the hashes that have any."""
    statement = (
        select(feedback.c.question_hash, feedback.c.rating, func.count())
        .where(
            feedback.c.tenant_id == tenant.value,
            feedback.c.question_hash.in_(hashes),
            feedback.c.citation.is_(None),
            feedback.c.result.is_(None),
        )
        .group_by(feedback.c.question_hash, feedback.c.rating)
    )
    ratings: dict[str, RatingCounts] = {}
    for question_hash, rating, count in connection.execute(statement):
        ratings[question_hash] = ratings.get(question_hash, RatingCounts()) + RatingCounts(**{rating: count})
    return ratings


def _feedback_from(row: RowMapping) -> Feedback:
    draft = FeedbackDraft(
        rating=Rating(row["rating"]),
        **{name: row[name] for name in ("answer_id", "citation", "result", *_TEXTS)},
    )
    names = ("id", "key_id", "chunk_id", *_COPIED, "texts_removed", "created_at", "updated_at")
    return Feedback(draft=draft, **{name: row[name] for name in names})


class FeedbackCatalogue(CataloguePart):
    """Answers that can get feedback, and the feedback on them."""

    add_answers = write(add_answers)
    answer = read(read_answer)
    submit = write(submit)
    page = read(page)
