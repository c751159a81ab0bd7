"""Submission of a document: a new document, a new version, new metadata, or no change."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from sqlalchemy import Update, bindparam, insert, select, update
from sqlalchemy.engine import Connection, RowMapping

from agentic_rag_backend.domain.document import DocumentState
from agentic_rag_backend.domain.job import JobKind
from agentic_rag_backend.domain.size_limits import merge_file_fields
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import Conflict, NotFound, PreconditionFailed
from agentic_rag_backend.stores.catalogue.columns import options_from_json, options_to_json, plain, utc_now
from agentic_rag_backend.stores.catalogue.documents.document_values import Enqueue, Submission, Submitted
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
from agentic_rag_backend.stores.catalogue.quota_catalogue import require_volume
from agentic_rag_backend.stores.catalogue.tables import document_versions as versions
from agentic_rag_backend.stores.catalogue.tables import documents
from agentic_rag_backend.stores.catalogue.tenants.tenant_directory import read_ontology

PENDING = DocumentState.PENDING.value
UNFINISHED_STATES = (DocumentState.PENDING.value, DocumentState.PROCESSING.value)
FAILED_STATES = (DocumentState.FAILED.value, DocumentState.UNREADABLE.value, DocumentState.CANCELLED.value)

FACE = ("title", "content_hash", "media_type", "size_bytes", "metadata", "failures")
"""Columns that a document copies from its visible version or, without one, from the newest submitted version."""
VERSION_COLUMNS = tuple(column for column in versions.c if column.name != "text")

_INSERT_DOCUMENT = insert(documents)
_INSERT_VERSION = insert(versions)
_BY_KEY = (
    select(documents)
    .where(documents.c.tenant_id == bindparam("tenant"), documents.c.key == bindparam("key"), documents.c.deleted_at.is_(None))
    .with_for_update(key_share=True)
)
_BY_PLACE = (
    select(documents)
    .where(
        documents.c.tenant_id == bindparam("tenant"),
        documents.c.parent_id == bindparam("parent"),
        documents.c.place == bindparam("place"),
        documents.c.deleted_at.is_(None),
    )
    .with_for_update(key_share=True)
)
_BY_ID = select(documents.c.id).where(documents.c.tenant_id == bindparam("tenant"), documents.c.id == bindparam("document"))
_ONE = (
    versions.c.tenant_id == bindparam("tenant"),
    versions.c.document_id == bindparam("document"),
    versions.c.version == bindparam("version"),
)
_VERSION = select(*VERSION_COLUMNS).where(*_ONE)
_TEXT = select(versions.c.text).where(*_ONE)


def read_version(connection: Connection, tenant: TenantId, document_id: str, version: int) -> RowMapping | None:
    """Return a version's row without its text."""
    bound = {"tenant": tenant.value, "document": document_id, "version": version}
    return connection.execute(_VERSION, bound).mappings().first()


def submit(connection: Connection, tenant: TenantId, submission: Submission, enqueue: Enqueue) -> Submitted:
    """Record a new document, or a new version of a document, and enqueue its job in the same transaction.

    The content is processed again if content, media type, options or the value of a field of metadata that names entities
    in the tenant's ontology differ from the latest
    version, or if that version failed. A tombstoned document no longer owns its key: an upload under that key creates
    another document. `PreconditionFailed` if the document under the key has none of the expected revisions, or if no
    document has the key. `Conflict` if the key belongs to an attachment, and the submission has no parent.

    With a ``parent``, the document is the attachment at its place. If its content is the same, its title and the keys of
    its metadata that the submission does not have are kept. `NotFound` if the message was deleted, or shows another
    version.
    """
    lock_tenant(connection, tenant)
    document = _find_document(connection, tenant, submission)
    if document is None:
        if submission.expected is not None:
            raise PreconditionFailed("there is no document of this key to compare a revision with")
        return _create_document(connection, tenant, submission, enqueue)
    require_revision(document, submission.expected)
    latest = read_version(connection, tenant, document["id"], document["latest_version"])
    if submission.parent is not None and latest is not None:
        submission = _keeping_changes(submission, latest)
    if latest is None or not _same_work(latest, submission) or latest["state"] in FAILED_STATES:
        return _add_version(connection, tenant, document, submission, enqueue)
    if latest["submitted_title"] == submission.title and latest["submitted_metadata"] == plain(submission.metadata):
        return Submitted(document_from(document), None, unchanged=True)
    if latest["state"] in UNFINISHED_STATES:
        # Its job may be merging the old metadata right now. A separate version avoids this race.
        return _add_version(connection, tenant, document, submission, enqueue)
    if differ(latest["metadata"], _merge_metadata(latest, submission), _entity_fields(connection, tenant)):
        return _add_version(connection, tenant, document, submission, enqueue)
    return _update_metadata(connection, tenant, document, latest, submission)


def _entity_fields(connection: Connection, tenant: TenantId) -> frozenset[str]:
    """Return the fields of metadata that name entities in the ontology of the tenant."""
    ontology = read_ontology(connection, tenant)
    return ontology.field_names if ontology is not None else frozenset()


def differ(before: Mapping[str, Any], after: Mapping[str, Any], fields: frozenset[str]) -> bool:
    """Return whether the value of one of ``fields`` differs between two documents' metadata."""
    return any(before.get(name) != after.get(name) for name in fields)


def _merge_metadata(latest: RowMapping, submission: Submission) -> dict[str, Any]:
    """Return the metadata: the caller's old values are removed, parsed values (front matter) stay, the new values win."""
    parsed = {name: value for name, value in latest["metadata"].items() if name not in latest["submitted_metadata"]}
    submitted = plain(submission.metadata)
    return present({**merge_file_fields(submitted, parsed), **submitted})


def require_parent(connection: Connection, tenant: TenantId, parent_id: str, version: int) -> None:
    """Lock a message.

    Raises:
        NotFound: the message was deleted, or shows another version.
    """
    parent = lock_document(connection, tenant, parent_id)
    if parent is None or parent["deleted_at"] is not None or parent["current_version"] != version:
        raise NotFound(f"version {version} of document {parent_id!r} is not visible")


def _find_document(connection: Connection, tenant: TenantId, submission: Submission) -> RowMapping | None:
    """Return the document that the submission is about."""
    parent = submission.parent
    if parent is not None:
        require_parent(connection, tenant, parent.document_id, parent.version)
        bound = {"tenant": tenant.value, "parent": parent.document_id, "place": parent.place}
        return connection.execute(_BY_PLACE, bound).mappings().first()
    document = _with_key(connection, tenant, submission.key)
    if document is not None and document["parent_id"] is not None:
        raise Conflict(
            f"the key {submission.key!r} belongs to an attachment of document {document['parent_id']!r}; "
            "upload the message again, or use another key"
        )
    return document


def _with_key(connection: Connection, tenant: TenantId, key: str) -> RowMapping | None:
    return connection.execute(_BY_KEY, {"tenant": tenant.value, "key": key}).mappings().first()


def _keeping_changes(submission: Submission, latest: RowMapping) -> Submission:
    """Return the submission of an attachment with its owner's title and metadata, if its content is the same."""
    if (latest["content_hash"], latest["media_type"]) != (submission.content_hash, submission.media_type):
        return submission
    merged = {**merge_file_fields(submission.metadata, latest["submitted_metadata"]), **submission.metadata}
    return replace(submission, title=latest["submitted_title"], metadata=merged)


def _free_key(connection: Connection, tenant: TenantId, submission: Submission) -> str:
    """Return the key of a new document. A document that the owner uploaded under the key of an attachment keeps it.

    Raises:
        Conflict: other documents have both keys of an attachment.
    """
    parent = submission.parent
    if parent is None:
        return submission.key
    keys = (submission.key, f"{parent.document_id}#{parent.place}")
    free = next((key for key in keys if _with_key(connection, tenant, key) is None), None)
    if free is None:
        raise Conflict(f"other documents have the keys {' and '.join(map(repr, keys))} of an attachment")
    return free


def present(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``metadata`` as shown with a document. A caller uses null to remove a value that the file itself sets."""
    return {name: value for name, value in metadata.items() if value is not None}


def _same_work(latest: RowMapping, submission: Submission) -> bool:
    return (
        latest["content_hash"] == submission.content_hash
        and latest["media_type"] == submission.media_type
        and options_from_json(latest["options"]) == submission.options
    )


def _create_document(connection: Connection, tenant: TenantId, submission: Submission, enqueue: Enqueue) -> Submitted:
    document_id = submission.document_id
    if connection.execute(_BY_ID, {"tenant": tenant.value, "document": document_id}).first() is not None:
        document_id = str(uuid.uuid4())  # a tombstoned document keeps it until its purge
    require_volume(connection, tenant, new_documents=1, new_bytes=submission.size_bytes)
    now = utc_now()
    job = new_job(connection, tenant, JobKind.INGEST, document_id=document_id, version=1)
    row: dict[str, Any] = {
        "id": document_id,
        "key": _free_key(connection, tenant, submission),
        "title": submission.title,
        "state": PENDING,
        "current_version": 0,
        "latest_version": 1,
        "content_hash": submission.content_hash,
        "media_type": submission.media_type,
        "size_bytes": submission.size_bytes,
        "metadata": present(plain(submission.metadata)),
        "failures": [],
        "chunk_count": 0,
        "job_id": job.id,
        "created_at": now,
        "updated_at": now,
        "parent_id": submission.parent.document_id if submission.parent else None,
        "place": submission.parent.place if submission.parent else None,
    }
    connection.execute(_INSERT_DOCUMENT, {**row, "tenant_id": tenant.value})
    _insert_version(connection, tenant, document_id, 1, submission)
    enqueue(connection, tenant, job)
    return Submitted(document_from(row), job, unchanged=False)


def _insert_version(connection: Connection, tenant: TenantId, document_id: str, version: int, submission: Submission) -> None:
    row = {
        "tenant_id": tenant.value,
        "document_id": document_id,
        "version": version,
        "state": PENDING,
        "title": submission.title,
        "submitted_title": submission.title,
        "content_hash": submission.content_hash,
        "media_type": submission.media_type,
        "size_bytes": submission.size_bytes,
        "blob_key": submission.blob_key,
        "options": options_to_json(submission.options),
        "metadata": plain(submission.metadata),
        "submitted_metadata": plain(submission.metadata),
        "failures": [],
        "created_at": utc_now(),
    }
    connection.execute(_INSERT_VERSION, row)


def _add_version(
    connection: Connection, tenant: TenantId, document: RowMapping, submission: Submission, enqueue: Enqueue
) -> Submitted:
    version = document["latest_version"] + 1
    require_volume(connection, tenant, new_bytes=submission.size_bytes - document["size_bytes"])
    _insert_version(connection, tenant, document["id"], version, submission)
    job = new_job(connection, tenant, JobKind.INGEST, document_id=document["id"], version=version)
    changed: dict[str, Any] = {"latest_version": version, "state": PENDING, "job_id": job.id, "updated_at": utc_now()}
    if document["current_version"] == 0:  # without a visible version, the document shows the newest submission
        changed |= {name: getattr(submission, name) for name in FACE if name not in ("metadata", "failures")}
        changed |= {"metadata": present(plain(submission.metadata)), "failures": []}
    change_document(connection, tenant, document["id"], changed)
    enqueue(connection, tenant, job)
    return Submitted(document_from({**document, **changed}), job, unchanged=False)


def _update_metadata(
    connection: Connection, tenant: TenantId, document: RowMapping, latest: RowMapping, submission: Submission
) -> Submitted:
    submitted = plain(submission.metadata)
    merged = _merge_metadata(latest, submission)
    title = submission.title if submission.title != latest["submitted_title"] else latest["title"]
    connection.execute(
        update(versions)
        .where(
            versions.c.tenant_id == tenant.value,
            versions.c.document_id == document["id"],
            versions.c.version == latest["version"],
        )
        .values(title=title, submitted_title=submission.title, metadata=merged, submitted_metadata=submitted)
    )
    changed = {"title": title, "metadata": merged, "updated_at": utc_now()}
    change_document(connection, tenant, document["id"], changed)
    record(connection, tenant, Topic.LABELS, document["id"])
    raise_state_version(connection, tenant)
    record_change(connection, tenant, document["id"], RELABELLED)
    return Submitted(document_from({**document, **changed}), None, unchanged=False)


def change_document(connection: Connection, tenant: TenantId, document_id: str, changed: dict[str, Any]) -> None:
    """Set columns of one document."""
    bound = {f"new_{name}": value for name, value in changed.items()}
    connection.execute(_change_row(tuple(changed)), {"tenant": tenant.value, "document": document_id, **bound})


@cache
def _change_row(names: tuple[str, ...]) -> Update:
    # Cached, because building a statement costs more than running it. There is one per set of columns.
    return (
        update(documents)
        .where(documents.c.tenant_id == bindparam("tenant"), documents.c.id == bindparam("document"))
        .values({name: bindparam(f"new_{name}") for name in names})
    )


def resubmit(connection: Connection, tenant: TenantId, document: RowMapping, version: int, job_id: str) -> int:
    """Add a version with the input of the visible ``version``, for a retried job. Return its number."""
    source = read_version(connection, tenant, document["id"], version)
    if source is None:  # pragma: no cover - the visible version's row cannot be gone
        raise LookupError(f"version {version} of document {document['id']} has no row")
    return next_version(connection, tenant, document, source, job_id)


def next_version(
    connection: Connection, tenant: TenantId, document: RowMapping, source: Mapping[str, Any] | RowMapping, job_id: str
) -> int:
    """Add a version with the submitted values of ``source``, for a job. Return its number."""
    number: int = document["latest_version"] + 1
    row = {
        **source,
        "version": number,
        "state": PENDING,
        "title": source["submitted_title"],
        "metadata": source["submitted_metadata"],
        "failures": [],
        "created_at": utc_now(),
    }
    if not source["blob_key"]:  # the original was not kept: the source's text and metadata replace it
        row["text"] = connection.execute(
            _TEXT, {"tenant": tenant.value, "document": document["id"], "version": source["version"]}
        ).scalar_one()
        row["metadata"] = {**source["metadata"], **source["submitted_metadata"]}
    connection.execute(_INSERT_VERSION, row)
    changed = {"latest_version": number, "state": PENDING, "job_id": job_id, "updated_at": utc_now()}
    if document["current_version"] == 0:  # without a visible version, the document shows the newest submission
        changed |= {name: row[name] for name in FACE} | {"metadata": present(row["metadata"])}
    change_document(connection, tenant, document["id"], changed)
    return number
