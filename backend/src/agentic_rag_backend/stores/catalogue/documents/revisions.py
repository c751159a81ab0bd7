"""Changes to a document that keep its content: title or metadata in place, other chunking as a new version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import update
from sqlalchemy.engine import Connection, RowMapping

from agentic_rag_backend.domain.document import DocumentState
from agentic_rag_backend.domain.job import JobKind
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import Conflict, NotFound
from agentic_rag_backend.stores.catalogue.columns import options_from_json, options_to_json, plain, utc_now
from agentic_rag_backend.stores.catalogue.documents.document_values import Change, Enqueue, Submitted
from agentic_rag_backend.stores.catalogue.documents.submissions import (
    FAILED_STATES,
    UNFINISHED_STATES,
    change_document,
    differ,
    next_version,
    present,
    read_version,
)
from agentic_rag_backend.stores.catalogue.documents.visible_documents import RELABELLED, record_change
from agentic_rag_backend.stores.catalogue.jobs.job_rows import new_job
from agentic_rag_backend.stores.catalogue.jobs.outbox import Topic, record
from agentic_rag_backend.stores.catalogue.operations import (
    document_from,
    lock_document,
    lock_tenant,
    raise_state_version,
    require_revision,
)
from agentic_rag_backend.stores.catalogue.tables import document_versions as versions


def revise(connection: Connection, tenant: TenantId, document_id: str, change: Change, enqueue: Enqueue) -> Submitted:
    """Change title and metadata in place, or add a version of the same original with its job.

    A version is added for other chunking, questions or extraction, for another value of an entity field, and if the change
    asks for it.

    A version in processing is superseded by a version with the new title or metadata, because its job may have read the old
    ones. `NotFound` if the document does not exist. `PreconditionFailed` if it has none of the expected revisions.
    `Conflict` if the content is to be processed again and no version of the document was ever readable.
    """
    lock_tenant(connection, tenant)
    document = lock_document(connection, tenant, document_id)
    if document is None or document["deleted_at"] is not None:
        raise NotFound(f"there is no document {document_id!r}")
    require_revision(document, change.expected)
    latest = _read_row(connection, tenant, document, document["latest_version"])
    source = {**latest}
    if change.processes:
        source = _cut_again(connection, tenant, document, latest, change)
    labelled = _label_versions(source, change)
    cut = options_from_json(labelled["options"]) != options_from_json(latest["options"])
    if cut or change.again or (change.processes and latest["state"] in FAILED_STATES):
        return _add_version(connection, tenant, document, labelled, enqueue)
    if latest["state"] in UNFINISHED_STATES and labelled != source:
        return _add_version(connection, tenant, document, labelled, enqueue)
    if latest["state"] not in FAILED_STATES and differ(latest["metadata"], labelled["metadata"], change.entity_fields):
        return _add_version(connection, tenant, document, labelled, enqueue)
    return _relabel(connection, tenant, document, source, change)


def _read_row(connection: Connection, tenant: TenantId, document: RowMapping, version: int) -> RowMapping:
    row = read_version(connection, tenant, document["id"], version)
    if row is None:  # pragma: no cover - versions up to the visible one go, the visible and later ones stay
        raise LookupError(f"version {version} of document {document['id']} has no row")
    return row


def _cut_again(
    connection: Connection, tenant: TenantId, document: RowMapping, latest: RowMapping, change: Change
) -> dict[str, Any]:
    """Return the newest readable version, whose original is processed again, with the new options."""
    source = latest
    if latest["state"] == DocumentState.UNREADABLE.value:
        if document["current_version"] == 0:
            raise Conflict(f"document {document['id']!r} is unreadable, so it cannot be chunked again; upload it again")
        source = _read_row(connection, tenant, document, document["current_version"])
    options = options_from_json(source["options"])
    options = replace(
        options,
        chunking=change.chunking or options.chunking,
        questions=change.questions or options.questions,
        extraction=change.extraction or options.extraction,
    )
    return {**source, "options": plain(options_to_json(options))}


def _label_versions(source: Mapping[str, Any], change: Change) -> dict[str, Any]:
    """Return a version's columns with the changed title and metadata."""
    submitted, merged = dict(source["submitted_metadata"]), dict(source["metadata"])
    for name, value in plain(change.metadata or {}).items():
        if value is not None:
            submitted[name] = merged[name] = value
        elif name in merged:
            # Recorded as null: otherwise the file's own value would return when it is processed again.
            submitted[name] = None
            del merged[name]
    title, submitted_title = source["title"], source["submitted_title"]
    if change.title is not None:
        title = submitted_title = change.title
    if change.metadata is not None:
        change.check(merged)
        change.check(submitted)
    changed = {"title": title, "submitted_title": submitted_title, "metadata": merged, "submitted_metadata": submitted}
    return {**source, **changed}


def _add_version(
    connection: Connection, tenant: TenantId, document: RowMapping, source: Mapping[str, Any], enqueue: Enqueue
) -> Submitted:
    """Add a version of ``source`` with its own job."""
    job = new_job(connection, tenant, JobKind.INGEST, document_id=document["id"], version=document["latest_version"] + 1)
    next_version(connection, tenant, document, source, job.id)
    enqueue(connection, tenant, job)
    after = lock_document(connection, tenant, document["id"])
    return Submitted(document_from(after or document), job, unchanged=False)


def _relabel(
    connection: Connection, tenant: TenantId, document: RowMapping, latest: Mapping[str, Any], change: Change
) -> Submitted:
    """Write title and metadata to the newest version, to an older visible version, and to the document."""
    rows = [dict(latest)]
    if latest["state"] in FAILED_STATES and document["current_version"]:
        rows.append({**_read_row(connection, tenant, document, document["current_version"])})
    labelled = [_label_versions(row, change) for row in rows]
    if labelled == rows:
        return Submitted(document_from(document), None, unchanged=True)
    for row in labelled:
        _write_labels(connection, tenant, row)
    visible_version = labelled[-1]
    changed = {"title": visible_version["title"], "metadata": present(visible_version["metadata"]), "updated_at": utc_now()}
    change_document(connection, tenant, document["id"], changed)
    record(connection, tenant, Topic.LABELS, document["id"])
    raise_state_version(connection, tenant)
    record_change(connection, tenant, document["id"], RELABELLED)
    return Submitted(document_from({**document, **changed}), None, unchanged=False)


def _write_labels(connection: Connection, tenant: TenantId, row: Mapping[str, Any]) -> None:
    values = {name: row[name] for name in ("title", "submitted_title", "metadata", "submitted_metadata")}
    if row["state"] in FAILED_STATES:
        # A later attempt starts from these values, so removals must be recorded too.
        values["metadata"] = {**row["metadata"], **row["submitted_metadata"]}
    connection.execute(
        update(versions)
        .where(
            versions.c.tenant_id == tenant.value,
            versions.c.document_id == row["document_id"],
            versions.c.version == row["version"],
        )
        .values(**values)
    )
