"""The class of documents, and their lists and counts. Other operations of the class are in their own modules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Select, and_, bindparam, func, or_, select
from sqlalchemy.engine import Connection, RowMapping

from agentic_rag_backend.domain.document import Document, DocumentState
from agentic_rag_backend.domain.filters import And, Comparison, Filter
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import NotFound
from agentic_rag_backend.stores.catalogue.documents import (
    chunk_results,
    chunk_rows,
    document_status,
    model_results,
    revisions,
    submissions,
    tombstones,
    versions,
    visible_documents,
)
from agentic_rag_backend.stores.catalogue.documents.document_values import EVERY_DOCUMENT, BegunJob, Matching, ReadyVersion
from agentic_rag_backend.stores.catalogue.documents.visible_documents import passes_filter, select_readable
from agentic_rag_backend.stores.catalogue.jobs.job_catalogue import start
from agentic_rag_backend.stores.catalogue.jobs.job_rows import read_job
from agentic_rag_backend.stores.catalogue.operations import CataloguePart, document_from, read, write, write_arriving
from agentic_rag_backend.stores.catalogue.pages import Page, beyond, check_limit, time_cursor
from agentic_rag_backend.stores.catalogue.quota_catalogue import reserve_chunks
from agentic_rag_backend.stores.catalogue.tables import chunk_questions, documents
from agentic_rag_backend.stores.catalogue.tables import document_set_members as members
from agentic_rag_backend.stores.catalogue.tenants.tenant_directory import read_ontology

_SCOPE = "documents"
_FILTER_BATCH = 200
_VISIBLE_ONE = select(documents).where(
    documents.c.tenant_id == bindparam("tenant"), documents.c.id == bindparam("document"), documents.c.deleted_at.is_(None)
)


def read_document(connection: Connection, tenant: TenantId, document_id: str) -> Document:
    """Return a document that is not deleted, or raise `NotFound`."""
    row = connection.execute(_VISIBLE_ONE, {"tenant": tenant.value, "document": document_id}).mappings().first()
    if row is None or not select_readable(connection, tenant, [document_id]):
        raise NotFound(f"there is no document {document_id!r}")
    return document_from(row)


def ready(connection: Connection, tenant: TenantId, document_id: str, version: int) -> ReadyVersion:
    """Return a version with its document and prepared chunks, from one snapshot. Raises `NotFound` as `version` does."""
    return ReadyVersion(
        read_document(connection, tenant, document_id),
        versions.whole_version(connection, tenant, document_id, version),
        chunk_results.prepared(connection, tenant, document_id, version),
        model_results.usage(connection, tenant, document_id, version),
    )


def begin_job(connection: Connection, tenant: TenantId, job_id: str, attempt: int) -> BegunJob:
    """Start a job, as `JobCatalogue.start` does, and move its version to ``processing``, as `begin_processing` does.

    The version of a job that has ended, or has another attempt, is not moved. `NotFound` if there is no such job.
    """
    job, version = read_job(connection, tenant, job_id), None
    if not job.state.ended and job.attempt == attempt:
        # This locks the document. The job comes after it, because a deletion locks them in this order.
        version = versions.begin_processing(connection, tenant, job.document_id or "", job.version or 0)
    return BegunJob(start(connection, tenant, job_id), version, read_ontology(connection, tenant))


def counts(connection: Connection, tenant: TenantId) -> Mapping[str, int]:
    """Count ``documents`` by state, visible ``chunks`` and their synthetic ``questions``.

    The keys are ``documents``, ``documents_<state>``, ``chunks`` and ``questions``.
    """
    statement = (
        select(documents.c.state, func.count(), func.coalesce(func.sum(documents.c.chunk_count), 0))
        .where(documents.c.tenant_id == tenant.value)
        .group_by(documents.c.state)
    )
    totals = {"documents": 0, "chunks": 0, "questions": _count_questions(connection, tenant)} | {
        f"documents_{state.value}": 0 for state in DocumentState
    }
    for state, number, chunk_count in connection.execute(statement):
        totals[f"documents_{state}"] = number
        if state != DocumentState.DELETING.value:
            totals["documents"] += number
            totals["chunks"] += int(chunk_count)
    return totals


def _count_questions(connection: Connection, tenant: TenantId) -> int:
    visible = and_(
        documents.c.tenant_id == chunk_questions.c.tenant_id,
        documents.c.id == chunk_questions.c.document_id,
        documents.c.current_version == chunk_questions.c.version,
        documents.c.deleted_at.is_(None),
    )
    statement = select(func.count()).select_from(chunk_questions.join(documents, visible))
    return int(connection.execute(statement.where(chunk_questions.c.tenant_id == tenant.value)).scalar_one())


def list_documents(
    connection: Connection,
    tenant: TenantId,
    matching: Matching = EVERY_DOCUMENT,
    *,
    limit: int,
    cursor: str | None = None,
    after: str | None = None,
    oldest_first: bool = False,
) -> Page[Document]:
    """List documents, newest first.

    A filter is applied to batches of 200, so that memory stays bounded. ``after`` is the id of the document before the page.

    Raises:
        NotFound: there is no document ``after``.
        InvalidRequest: the cursor does not come from this list.
    """
    check_limit(limit)
    if after is not None:
        cursor = time_cursor(_SCOPE, read_document(connection, tenant, after).created_at, after)
    selected, filters = _select_documents(tenant, matching), matching.filter is not None or tenant.access is not None
    order = (documents.c.created_at, documents.c.id)
    selected = selected.order_by(*(order if oldest_first else (column.desc() for column in order)))
    size = max(_FILTER_BATCH, limit + 1) if filters else limit + 1
    matching_rows: list[RowMapping] = []
    while len(matching_rows) <= limit:
        statement = (
            selected if cursor is None else selected.where(beyond(documents, _SCOPE, cursor, newest_first=not oldest_first))
        )
        rows = connection.execute(statement.limit(size)).mappings().all()
        matching_rows.extend(_choose_passing(connection, tenant, matching, rows))
        if len(rows) < size:
            break
        cursor = time_cursor(_SCOPE, rows[-1]["created_at"], rows[-1]["id"])
    last_row = matching_rows[limit - 1] if len(matching_rows) > limit else None
    next_cursor = time_cursor(_SCOPE, last_row["created_at"], last_row["id"]) if last_row is not None else None
    return Page(tuple(document_from(row) for row in matching_rows[:limit]), next_cursor)


def _choose_passing(connection: Connection, tenant: TenantId, matching: Matching, rows: Sequence[RowMapping]) -> list[RowMapping]:
    """Return the rows that pass the filter of the list and that the scope shows."""
    passing = [row for row in rows if matching.filter is None or passes_filter(row, matching.filter)]
    readable = select_readable(connection, tenant, [row["id"] for row in passing])
    return [row for row in passing if row["id"] in readable]


def _select_documents(tenant: TenantId, matching: Matching) -> Select[Any]:
    """Return the statement that selects a list of documents, without order and paging."""
    statement = select(documents).where(documents.c.tenant_id == tenant.value)
    # A tombstoned document no longer exists for its owner, unless documents in deletion are requested.
    statement = statement.where(
        documents.c.deleted_at.is_not(None) if DocumentState.DELETING in matching.states else documents.c.deleted_at.is_(None)
    )
    if matching.states:
        statement = statement.where(documents.c.state.in_([state.value for state in matching.states]))
    if matching.key is not None:
        statement = statement.where(documents.c.key == matching.key)
    if matching.parent_id is not None:
        statement = statement.where(documents.c.parent_id == matching.parent_id)
    if matching.set_id is not None:
        added = (members.c.tenant_id == tenant.value, members.c.set_id == matching.set_id)
        batch = () if matching.batch_id is None else (members.c.batch_id == matching.batch_id,)
        statement = statement.where(documents.c.id.in_(select(members.c.document_id).where(*added, *batch)))
    if matching.name is not None:
        exact = (func.lower(column) == func.lower(matching.name) for column in (documents.c.title, documents.c.key))
        in_folder = documents.c.key.iendswith(f"/{matching.name}", autoescape=True)
        statement = statement.where(or_(*exact, in_folder))
    for document_id in _required_ids(matching.filter):
        statement = statement.where(documents.c.id == document_id)
    return statement


def _required_ids(filter: Filter | None) -> list[str]:
    """Return the document ids that every match must have. SQL and the filter grammar agree on this comparison."""
    parts = filter.filters if isinstance(filter, And) else (filter,)
    return [
        part.value
        for part in parts
        if isinstance(part, Comparison) and part.field == "document_id" and part.operator == "eq" and isinstance(part.value, str)
    ]


class DocumentCatalogue(CataloguePart):
    """Documents, their versions and their chunks."""

    submit = write_arriving(submissions.submit)
    revise = write(revisions.revise)
    document = read(read_document)
    documents = read(list_documents)
    version = read(versions.whole_version)
    begin_job = write(begin_job)
    begin_processing = write(versions.begin_processing)
    save_parsed = write(versions.save_parsed)
    reserve_chunks = write(reserve_chunks)
    save_prepared = write(chunk_results.save_prepared)
    reuse = write(chunk_results.reuse)
    save_extractions = write(chunk_results.save_extractions)
    prepared = read(chunk_results.prepared)
    ready = read(ready)
    publish = write(versions.publish)
    fail = write(versions.fail)
    forget_original = write(versions.forget_original)
    tombstone = write(tombstones.tombstone)
    retire_attachments = write(tombstones.retire_attachments)
    blob_keys = read(versions.blob_keys)
    unknown_blobs = read(versions.unknown_blobs)
    purge = write(versions.purge)
    remains = read(versions.remains)
    drop_versions = write(versions.drop_versions)
    visible_versions = read(visible_documents.visible_versions)
    visibility = read(visible_documents.list_changes)
    visible_chunk_ids = read(document_status.visible_chunk_ids)
    visible_chunks_in_order = read(document_status.visible_chunks_in_order)
    take_up = write(document_status.take_up)
    record_repair = write(document_status.record_repair)
    statuses = read(document_status.statuses)
    hydrate = read(chunk_rows.hydrate)
    parents = read(chunk_rows.read_parents)
    passages = read(chunk_rows.read_passages)
    chunks = read(chunk_rows.list_chunks)
    counts = read(counts)
