"""Questions that tenants allowed to keep. They are a column of the answers, and go with them."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Select, select, update
from sqlalchemy.engine import Connection, RowMapping

from agentic_rag_backend.domain.asked_questions import QUESTION_DAYS, AskedQuestion, QuestionFilter
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import NotFound
from agentic_rag_backend.stores.catalogue.columns import utc_now
from agentic_rag_backend.stores.catalogue.operations import CataloguePart, read, write
from agentic_rag_backend.stores.catalogue.pages import Page, beyond, check_limit, time_cursor
from agentic_rag_backend.stores.catalogue.tables import answers, feedback

_SCOPE = "asked questions"
_NAMES = ("id", "question", "strategy", "grounded", "confidence", "created_at")


def _select_questions(tenant: TenantId, chosen: QuestionFilter) -> Select[tuple[object, ...]]:
    """Select the questions that pass a filter and are not too old, newest first."""
    statement = (
        select(*(answers.c[name] for name in _NAMES), answers.c.question_hash)
        .where(answers.c.tenant_id == tenant.value, answers.c.question.is_not(None), answers.c.created_at >= _find_oldest_time())
        .order_by(answers.c.created_at.desc(), answers.c.id.desc())
    )
    if chosen.grounded is not None:
        statement = statement.where(answers.c.grounded.is_(chosen.grounded))
    if chosen.rating is not None:
        rated = select(feedback.c.answer_id).where(feedback.c.tenant_id == tenant.value, feedback.c.rating == chosen.rating.value)
        statement = statement.where(answers.c.id.in_(rated))
    return statement


def _find_oldest_time() -> datetime:
    """Return the time before which no question is kept."""
    return utc_now() - timedelta(days=QUESTION_DAYS)


def page(
    connection: Connection, tenant: TenantId, *, limit: int, cursor: str | None = None, chosen: QuestionFilter
) -> Page[AskedQuestion]:
    """List the questions that pass a filter, newest first."""
    statement = _select_questions(tenant, chosen)
    if cursor is not None:
        statement = statement.where(beyond(answers, _SCOPE, cursor, newest_first=True))
    items = [_question_from(row) for row in connection.execute(statement.limit(check_limit(limit) + 1)).mappings()]
    last_item = items[limit - 1] if len(items) > limit else None
    return Page(tuple(items[:limit]), time_cursor(_SCOPE, last_item.asked_at, last_item.id) if last_item else None)


def list_distinct_texts(connection: Connection, tenant: TenantId, *, count: int, chosen: QuestionFilter) -> list[str]:
    """Return the texts of at most ``count`` different questions that pass a filter, newest first."""
    different: dict[str, str] = {}
    for row in connection.execute(_select_questions(tenant, chosen)).mappings():
        different.setdefault(row["question_hash"], row["question"])
        if len(different) == count:
            break
    return list(different.values())


def forget(connection: Connection, tenant: TenantId, question_id: str) -> None:
    """Delete the text of one question. `NotFound` if none of the id is kept."""
    its = (answers.c.tenant_id == tenant.value, answers.c.id == question_id, answers.c.question.is_not(None))
    if connection.execute(update(answers).where(*its).values(question=None)).rowcount == 0:
        raise NotFound(f"no question {question_id[:80]!r} is kept")


def forget_all(connection: Connection, tenant: TenantId) -> int:
    """Delete the texts of all questions, and return their number."""
    its = (answers.c.tenant_id == tenant.value, answers.c.question.is_not(None))
    return connection.execute(update(answers).where(*its).values(question=None)).rowcount


def forget_old_texts(connection: Connection) -> int:
    """Delete the texts of questions of all tenants that are older than `QUESTION_DAYS`, and return their number."""
    old = (answers.c.question.is_not(None), answers.c.created_at < _find_oldest_time())
    return connection.execute(update(answers).where(*old).values(question=None)).rowcount


def _question_from(row: RowMapping) -> AskedQuestion:
    fields = {name: row[name] for name in _NAMES if name != "created_at"}
    return AskedQuestion(**fields, asked_at=row["created_at"])


class AskedQuestionCatalogue(CataloguePart):
    """Questions that tenants allowed to keep."""

    page = read(page)
    list_distinct_texts = read(list_distinct_texts)
    forget = write(forget)
    forget_all = write(forget_all)
    forget_old_texts = write(forget_old_texts)
