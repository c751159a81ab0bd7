"""Deletion of documents as their owners see it: a tombstone hides a document with its attachments, and its job removes it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import delete, select, update
from sqlalchemy.engine import Connection, RowMapping

from agentic_rag_backend.domain.document import DocumentState
from agentic_rag_backend.domain.job import Job, JobKind
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import NotFound
from agentic_rag_backend.stores.catalogue.columns import utc_now
from agentic_rag_backend.stores.catalogue.documents.document_values import Enqueue, Expected
from agentic_rag_backend.stores.catalogue.documents.submissions import change_document, require_parent
from agentic_rag_backend.stores.catalogue.documents.visible_documents import record_change
from agentic_rag_backend.stores.catalogue.feedback import remove_texts
from agentic_rag_backend.stores.catalogue.jobs.job_rows import cancel_open_jobs, new_job
from agentic_rag_backend.stores.catalogue.operations import (
    batches,
    lock_document,
    lock_tenant,
    raise_state_version,
    require_revision,
)
from agentic_rag_backend.stores.catalogue.tables import document_set_members as members
from agentic_rag_backend.stores.catalogue.tables import documents

ATTACHMENTS = "attachments"
"""Argument of a delete job: the attachments that were deleted with the document."""


def tombstone(connection: Connection, tenant: TenantId, document_id: str, enqueue: Enqueue, *, expected: Expected = None) -> Job:
    """Hide a document and its attachments, and record a delete job for each, in one transaction that also enqueues the jobs.

    The documents' open jobs are asked to stop. The ``version`` of a job is the newest version, for `purge`. Return the job
    of the document itself. Its arguments have ``attachments``: a list of ``document_id`` and ``job_id``, those of attached
    messages included. `NotFound` if the document does not exist or was deleted before. `PreconditionFailed` if it has none
    of the expected revisions.
    """
    lock_tenant(connection, tenant)
    document = lock_document(connection, tenant, document_id)
    if document is None:
        raise NotFound(f"there is no document {document_id!r}")
    if document["deleted_at"] is None:
        require_revision(document, expected)
    return _hide_all(connection, tenant, document, enqueue)


def retire_attachments(
    connection: Connection, tenant: TenantId, parent_id: str, version: int, kept_locations: Sequence[str], enqueue: Enqueue
) -> int:
    """Delete, as `tombstone` does, the attachments of a message that are not at ``kept_locations``. Return their number.

    `NotFound` if the message was deleted, or shows another version.
    """
    lock_tenant(connection, tenant)
    require_parent(connection, tenant, parent_id, version)
    retired = [row for row in _attached_to(connection, tenant, [parent_id]) if row["place"] not in kept_locations]
    for row in retired:
        _hide_all(connection, tenant, row, enqueue)
    return len(retired)


def _hide_all(connection: Connection, tenant: TenantId, document: RowMapping, enqueue: Enqueue) -> Job:
    """Hide a document and everything attached to it. Return the document's own job."""
    within: dict[str, RowMapping] = {}
    layer = [document["id"]]
    while layer:
        attachments = [row for row in _attached_to(connection, tenant, layer) if row["id"] not in {document["id"], *within}]
        within.update((row["id"], row) for row in attachments)
        layer = [row["id"] for row in attachments]
    jobs = [_hide_document(connection, tenant, row, enqueue) for row in within.values()]
    return _hide_document(connection, tenant, document, enqueue, jobs)


def _hide_document(
    connection: Connection, tenant: TenantId, document: RowMapping, enqueue: Enqueue, attachments: Sequence[Job] = ()
) -> Job:
    now, document_id = utc_now(), document["id"]
    hidden = connection.execute(
        update(documents)
        .where(documents.c.tenant_id == tenant.value, documents.c.id == document_id, documents.c.deleted_at.is_(None))
        .values(state=DocumentState.DELETING.value, deleted_at=now, updated_at=now)
    )
    if hidden.rowcount == 0:
        raise NotFound(f"there is no document {document_id!r}")
    cancel_open_jobs(connection, tenant, document_id)
    deleted = [{"document_id": job.document_id, "job_id": job.id} for job in attachments]
    arguments = {ATTACHMENTS: deleted} if deleted else {}
    version = document["latest_version"]
    job = new_job(connection, tenant, JobKind.DELETE, document_id=document_id, version=version, arguments=arguments)
    change_document(connection, tenant, document_id, {"job_id": job.id})
    raise_state_version(connection, tenant, content=True)
    record_change(connection, tenant, document_id, 0)
    remove_texts(connection, tenant, document_id)
    connection.execute(delete(members).where(members.c.tenant_id == tenant.value, members.c.document_id == document_id))
    enqueue(connection, tenant, job)
    return job


def _attached_to(connection: Connection, tenant: TenantId, parents: Sequence[str]) -> list[RowMapping]:
    """Return the attachments of messages, locked, in the order of message and place. Deleted ones are absent.

    This is the order of an index. An order by id would read all documents of the tenant.
    """
    attachments: list[RowMapping] = []
    for batch in batches(parents):
        statement = (
            select(documents)
            .where(documents.c.tenant_id == tenant.value, documents.c.deleted_at.is_(None), documents.c.parent_id.in_(batch))
            .order_by(documents.c.parent_id, documents.c.place)
            .with_for_update(key_share=True)
        )
        attachments += connection.execute(statement).mappings()
    return attachments
