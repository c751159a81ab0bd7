"""States of documents, for comparing other stores with the catalogue, and jobs for documents that lack one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import and_, exists, select
from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.job import Job, JobKind
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.columns import utc_now
from agentic_rag_backend.stores.catalogue.documents.document_values import DocumentStatus, Enqueue
from agentic_rag_backend.stores.catalogue.documents.submissions import PENDING, UNFINISHED_STATES, change_document, read_version
from agentic_rag_backend.stores.catalogue.documents.visible_documents import record_change, select_readable
from agentic_rag_backend.stores.catalogue.jobs.job_rows import OPEN, new_job
from agentic_rag_backend.stores.catalogue.operations import (
    batches,
    document_from,
    lock_document,
    lock_tenant,
    raise_state_version,
)
from agentic_rag_backend.stores.catalogue.pages import check_limit
from agentic_rag_backend.stores.catalogue.tables import chunks, document_versions, documents, jobs

_visible, _latest = document_versions.alias("visible"), document_versions.alias("latest")
_OPEN_JOB = exists().where(
    jobs.c.tenant_id == documents.c.tenant_id, jobs.c.document_id == documents.c.id, jobs.c.state.in_(OPEN)
)
_STATUSES = select(
    *documents.c,
    _visible.c.blob_key,
    _latest.c.state.label("latest_state"),
    _OPEN_JOB.label("in_flight"),
).select_from(
    documents.outerjoin(
        _visible,
        and_(
            _visible.c.tenant_id == documents.c.tenant_id,
            _visible.c.document_id == documents.c.id,
            _visible.c.version == documents.c.current_version,
        ),
    ).outerjoin(
        _latest,
        and_(
            _latest.c.tenant_id == documents.c.tenant_id,
            _latest.c.document_id == documents.c.id,
            _latest.c.version == documents.c.latest_version,
        ),
    )
)


def statuses(
    connection: Connection, tenant: TenantId, *, ids: Sequence[str] | None = None, after: str = "", limit: int = 100
) -> list[DocumentStatus]:
    """Return up to ``limit`` documents with id > ``after``, tombstoned ones too, ordered by id; of ``ids`` if given."""
    check_limit(limit)
    if ids is not None and not ids:
        return []
    statement = _STATUSES.where(documents.c.tenant_id == tenant.value, documents.c.id > after)
    if ids is not None:
        statement = statement.where(documents.c.id.in_(sorted(set(ids))))
    rows = connection.execute(statement.order_by(documents.c.id).limit(limit)).mappings()
    return [
        DocumentStatus(
            document=document_from(row),
            deleted=row["deleted_at"] is not None,
            in_flight=bool(row["in_flight"]),
            unfinished=row["latest_state"] in UNFINISHED_STATES,
            blob_key=row["blob_key"] or None,
        )
        for row in rows
    ]


_CURRENT = and_(
    documents.c.tenant_id == chunks.c.tenant_id,
    documents.c.id == chunks.c.document_id,
    documents.c.current_version == chunks.c.version,
)


def visible_chunk_ids(connection: Connection, tenant: TenantId, document_ids: Sequence[str]) -> dict[str, list[str]]:
    """Return the chunk ids of each document's visible version, in reading order. Documents without one are absent."""
    chunk_ids: dict[str, list[str]] = {}
    readable = select_readable(connection, tenant, document_ids)
    for batch in batches([id for id in dict.fromkeys(document_ids) if id in readable]):
        statement = (
            select(chunks.c.document_id, chunks.c.chunk_id)
            .join(documents, _CURRENT)
            .where(chunks.c.tenant_id == tenant.value, documents.c.deleted_at.is_(None), chunks.c.document_id.in_(batch))
            .order_by(chunks.c.document_id, chunks.c.ordinal)
        )
        for document_id, chunk_id in connection.execute(statement):
            chunk_ids.setdefault(document_id, []).append(chunk_id)
    return chunk_ids


def visible_chunks_in_order(connection: Connection, tenant: TenantId) -> list[str]:
    """Return the ids of all visible chunks, ordered by the key of their document and in reading order.

    The order depends on the documents alone. Ids are random.
    """
    statement = (
        select(chunks.c.chunk_id, documents.c.key, chunks.c.ordinal)
        .join(documents, _CURRENT)
        .where(chunks.c.tenant_id == tenant.value, documents.c.deleted_at.is_(None))
    )
    # Sorted here, because databases sort texts differently.
    rows = sorted(connection.execute(statement), key=lambda row: (row[1], row[2]))
    return [chunk_id for chunk_id, _, _ in rows]


def take_up(connection: Connection, tenant: TenantId, document_id: str, enqueue: Callable[[JobKind], Enqueue]) -> Job | None:
    """Give a document a new job, in one transaction, if the job to finish its processing or deletion is missing.

    A tombstoned document gets a delete job. A document whose newest version waits to be processed gets an ingest job.
    ``enqueue`` returns the function that enqueues a job of a kind. None, with no change, if the document has an
    unfinished job, needs none, or does not exist.
    """
    lock_tenant(connection, tenant)
    document = lock_document(connection, tenant, document_id)
    open_one = select(jobs.c.id).where(
        jobs.c.tenant_id == tenant.value, jobs.c.document_id == document_id, jobs.c.state.in_(OPEN)
    )
    if document is None or connection.execute(open_one.limit(1)).first() is not None:
        return None
    version, changed = document["latest_version"], {}
    if document["deleted_at"] is not None:
        kind = JobKind.DELETE
    else:
        latest = read_version(connection, tenant, document_id, version)
        if latest is None or latest["state"] not in UNFINISHED_STATES:
            return None
        kind, changed = JobKind.INGEST, {"state": PENDING}
    job = new_job(connection, tenant, kind, document_id=document_id, version=version)
    change_document(connection, tenant, document_id, {**changed, "job_id": job.id, "updated_at": utc_now()})
    enqueue(kind)(connection, tenant, job)
    return job


def record_repair(connection: Connection, tenant: TenantId, document_id: str | None, *, knowledge: bool) -> None:
    """Raise ``state_version`` after a repair: another store changed its data of a document, which may be deleted.

    None stands for data of no document in particular, such as communities.
    With ``knowledge``, the graph changed, and communities that depend on it become stale, as after `publish`.
    """
    lock_tenant(connection, tenant)
    raise_state_version(connection, tenant, content=knowledge)
    if knowledge and document_id is not None:
        document = lock_document(connection, tenant, document_id)
        is_visible = document is not None and document["deleted_at"] is None
        record_change(connection, tenant, document_id, document["current_version"] if document is not None and is_visible else 0)
