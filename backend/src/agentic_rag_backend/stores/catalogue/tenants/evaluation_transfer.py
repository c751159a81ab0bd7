"""Datasets, feedback and submitted scores of a tenant, as an archive has them. Runs and answers do not move."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Table, delete, select, tuple_
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from agentic_rag_backend.domain.asked_questions import hash_question
from agentic_rag_backend.domain.evaluation import EvaluationCase
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import Conflict
from agentic_rag_backend.stores.catalogue.columns import plain
from agentic_rag_backend.stores.catalogue.evaluation.dataset_catalogue import IN_COLUMNS, read_case_fields
from agentic_rag_backend.stores.catalogue.operations import CataloguePart, batches, lock_tenant, read, upsert, write
from agentic_rag_backend.stores.catalogue.tables import (
    evaluation_case_documents,
    evaluation_cases,
    evaluation_datasets,
    feedback,
    feedback_documents,
    submitted_scores,
)
from agentic_rag_backend.stores.catalogue.tenants.tenant_records import (
    ArchivedCase,
    ArchivedDataset,
    ArchivedFeedback,
    ArchivedScore,
    EvaluationRecord,
)

_WRITTEN = (
    evaluation_case_documents,
    evaluation_cases,
    evaluation_datasets,
    feedback_documents,
    feedback,
    submitted_scores,
)
_DATASET = ("id", "name", "version", "created_at", "updated_at")
_CASE = ("dataset_id", "number", "id", "added_in", "removed_in")
_FEEDBACK = tuple(column.name for column in feedback.c if column.name != "tenant_id")
_SCORE = tuple(column.name for column in submitted_scores.c if column.name != "tenant_id")


def is_empty(connection: Connection, tenant: TenantId) -> bool:
    """Return whether the tenant has no datasets, feedback and scores."""
    tables = (evaluation_datasets, feedback, submitted_scores)
    return all(
        connection.execute(select(table.c.id).where(table.c.tenant_id == tenant.value).limit(1)).first() is None
        for table in tables
    )


def datasets(connection: Connection, tenant: TenantId) -> list[ArchivedDataset]:
    """Return all datasets without their cases, in the order of their creation."""
    statement = select(evaluation_datasets).where(evaluation_datasets.c.tenant_id == tenant.value)
    rows = connection.execute(statement.order_by(evaluation_datasets.c.created_at, evaluation_datasets.c.id)).mappings()
    return [ArchivedDataset(**{name: row[name] for name in _DATASET}) for row in rows]


def cases(connection: Connection, tenant: TenantId, dataset_id: str, *, after: int, limit: int) -> list[ArchivedCase]:
    """Return cases of all versions of a dataset, by number, from the one after ``after``."""
    its = (evaluation_cases.c.tenant_id == tenant.value, evaluation_cases.c.dataset_id == dataset_id)
    statement = select(evaluation_cases).where(*its, evaluation_cases.c.number > after).order_by(evaluation_cases.c.number)
    rows = connection.execute(statement.limit(limit)).mappings().all()
    numbers = [row["number"] for row in rows]
    sources = evaluation_case_documents.c
    links = select(sources.number, sources.document_id).where(
        sources.tenant_id == tenant.value, sources.dataset_id == dataset_id, sources.number.in_(numbers)
    )
    documents: dict[int, list[str]] = defaultdict(list)
    for number, document_id in connection.execute(links.order_by(sources.document_id)):
        documents[number].append(document_id)
    archived_cases = [EvaluationCase(**read_case_fields(row), documents=tuple(documents[row["number"]])) for row in rows]
    return [
        ArchivedCase(**{name: row[name] for name in _CASE}, case=case) for row, case in zip(rows, archived_cases, strict=True)
    ]


def list_feedback(connection: Connection, tenant: TenantId, *, after: str, limit: int) -> list[ArchivedFeedback]:
    """Return feedback by id, from the one after ``after``, with the documents that its texts may quote."""
    statement = select(feedback).where(feedback.c.tenant_id == tenant.value, feedback.c.id > after).order_by(feedback.c.id)
    rows = connection.execute(statement.limit(limit)).mappings().all()
    links = feedback_documents.c
    statement_of_links = select(links.feedback_id, links.document_id).where(
        links.tenant_id == tenant.value, links.feedback_id.in_([row["id"] for row in rows])
    )
    documents: dict[str, list[str]] = defaultdict(list)
    for feedback_id, document_id in connection.execute(statement_of_links.order_by(links.document_id)):
        documents[feedback_id].append(document_id)
    return [ArchivedFeedback(**{name: row[name] for name in _FEEDBACK}, documents=tuple(documents[row["id"]])) for row in rows]


def list_scores(connection: Connection, tenant: TenantId, *, after: tuple[str, str], limit: int) -> list[ArchivedScore]:
    """Return scores by submission and metric, from the one after ``after``."""
    key = (submitted_scores.c.id, submitted_scores.c.metric)
    statement = select(submitted_scores).where(submitted_scores.c.tenant_id == tenant.value, tuple_(*key) > tuple_(*after))
    rows = connection.execute(statement.order_by(*key).limit(limit)).mappings()
    return [ArchivedScore(**{name: row[name] for name in _SCORE}) for row in rows]


def stage(connection: Connection, tenant: TenantId, records: Sequence[EvaluationRecord]) -> None:
    """Write records of an archive. A record that is there already stays.

    Raises:
        Conflict: two cases have the same id.
    """
    lock_tenant(connection, tenant)
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        for table, row in _rows_of(record):
            rows[table.name].append({"tenant_id": tenant.value, **row})
    try:
        for table in reversed(_WRITTEN):
            for batch in batches(rows[table.name]):
                upsert(connection, table, batch, keys=tuple(column.name for column in table.primary_key.columns))
    except IntegrityError as error:
        raise Conflict("two cases of the archive have the same id, or a record belongs to none") from error


def _rows_of(record: EvaluationRecord) -> list[tuple[Table, dict[str, Any]]]:
    """Return the rows of a record. Rows that others refer to come first."""
    if isinstance(record, ArchivedDataset):
        return [(evaluation_datasets, {**asdict(record), "job_id": None})]
    if isinstance(record, ArchivedScore):
        return [(submitted_scores, asdict(record))]
    if isinstance(record, ArchivedFeedback):
        row = {name: getattr(record, name) for name in _FEEDBACK}
        links = [{"document_id": document_id, "feedback_id": record.id} for document_id in record.documents]
        return [(feedback, row), *((feedback_documents, link) for link in links)]
    case = record.case
    content = {name: value for name, value in asdict(case).items() if name not in IN_COLUMNS}
    shared = {name: getattr(record, name) for name in _CASE}
    columns = {"source": case.source.value, "kind": case.kind, "question_hash": hash_question(case.question)}
    number: dict[str, Any] = {"dataset_id": record.dataset_id, "number": record.number}
    document_links = [{**number, "document_id": document_id} for document_id in case.documents]
    return [
        (evaluation_cases, {**shared, **columns, "content": plain(content)}),
        *((evaluation_case_documents, link) for link in document_links),
    ]


def abandon(connection: Connection, tenant: TenantId) -> None:
    """Remove everything that `stage` wrote, from a tenant that had nothing before."""
    for table in _WRITTEN:
        connection.execute(delete(table).where(table.c.tenant_id == tenant.value))


class EvaluationTransferCatalogue(CataloguePart):
    """Export and import of datasets, feedback and scores."""

    is_empty = read(is_empty)
    datasets = read(datasets)
    cases = read(cases)
    feedback = read(list_feedback)
    scores = read(list_scores)
    stage = write(stage)
    abandon = write(abandon)
