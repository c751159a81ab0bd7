"""Reads a snapshot of a tenant for an archive, stages an archive unseen, and opens it. Its values: `tenant_records`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete, exists, func, insert, select, update
from sqlalchemy.engine import Connection, RowMapping
from sqlalchemy.exc import IntegrityError

from agentic_rag_backend.domain.document import Chunk, DocumentState
from agentic_rag_backend.domain.graph import CommunitySummary
from agentic_rag_backend.domain.ontology import ontology_of
from agentic_rag_backend.domain.tenant import Tenant, TenantId, TenantState
from agentic_rag_backend.errors import Conflict, NotFound
from agentic_rag_backend.stores.catalogue.columns import failures_from_json, options_from_json, options_to_json, plain, utc_now
from agentic_rag_backend.stores.catalogue.documents import chunk_results
from agentic_rag_backend.stores.catalogue.documents.chunk_rows import CHUNK_COLUMNS, WITH_TEXT, chunk_from
from agentic_rag_backend.stores.catalogue.documents.document_values import PreparedChunk
from agentic_rag_backend.stores.catalogue.documents.questions import revector_questions
from agentic_rag_backend.stores.catalogue.documents.visible_documents import CHANGES_KEPT
from agentic_rag_backend.stores.catalogue.jobs.job_rows import OPEN
from agentic_rag_backend.stores.catalogue.jobs.outbox import Topic, record
from agentic_rag_backend.stores.catalogue.operations import CataloguePart, lock_tenant, read, upsert, write
from agentic_rag_backend.stores.catalogue.summaries.generations import COMMUNITIES, summary_from
from agentic_rag_backend.stores.catalogue.tables import (
    chunk_questions,
    chunk_texts,
    chunks,
    community_pointers,
    documents,
    jobs,
    model_results,
    prepared_chunks,
    raptor_links,
    raptor_nodes,
    raptor_pointers,
    raptor_summaries,
    tenants,
)
from agentic_rag_backend.stores.catalogue.tables import community_summaries as summaries
from agentic_rag_backend.stores.catalogue.tables import document_versions as versions
from agentic_rag_backend.stores.catalogue.tenants.graph_edits import insert_edits
from agentic_rag_backend.stores.catalogue.tenants.tenant_records import DocumentHeader, DocumentRecord, Opening, TenantSnapshot

_IMPORTING, _ACTIVE = TenantState.IMPORTING.value, TenantState.ACTIVE.value
_STAGED = DocumentState.PROCESSING.value


_DOCUMENT_FIELDS = ("id", "key", "title", "created_at", "updated_at", "parent_id", "place")
_CONTENT_FIELDS = ("content_hash", "media_type", "size_bytes")
_VERSION_FIELDS = ("version", "submitted_title", "blob_key")
"""Fields of a record that are columns of the same name: of documents, of both tables, and of versions."""


def _tenant_row(connection: Connection, tenant: TenantId) -> RowMapping:
    row = connection.execute(select(tenants).where(tenants.c.tenant_id == tenant.value)).mappings().first()
    if row is None:
        raise NotFound(f"there is no tenant {tenant}")
    return row


def snapshot(connection: Connection, tenant: TenantId) -> TenantSnapshot:
    """Return the tenant without its documents, or raise `NotFound`."""
    row = _tenant_row(connection, tenant)
    return TenantSnapshot(
        tenant=Tenant(tenant, row["name"], TenantState(row["state"]), row["state_version"], row["created_at"]),
        flags=row["flags"],
        ontology=None if row["ontology"] is None else ontology_of(row["ontology"]),
        pointer=COMMUNITIES.pointer(connection, tenant),
        last_generation=COMMUNITIES.last_generation(connection, tenant),
    )


def headers(connection: Connection, tenant: TenantId) -> dict[str, DocumentHeader]:
    """Return the headers of visible documents by id, in order of submission."""
    statement = (
        select(documents.c.id, documents.c.current_version, documents.c.updated_at)
        .where(documents.c.tenant_id == tenant.value, documents.c.deleted_at.is_(None), documents.c.current_version > 0)
        .order_by(documents.c.created_at, documents.c.id)
    )
    return {row[0]: DocumentHeader(row[1], row[2]) for row in connection.execute(statement)}


def read_record(connection: Connection, tenant: TenantId, document_id: str) -> DocumentRecord | None:
    """Return a document with its visible version. None if it has no visible version or is deleted."""
    rows = connection.execute(
        select(documents).where(
            documents.c.tenant_id == tenant.value,
            documents.c.id == document_id,
            documents.c.deleted_at.is_(None),
            documents.c.current_version > 0,
        )
    ).mappings()
    face = rows.first()
    if face is None:
        return None
    number = face["current_version"]
    of_version = (versions.c.tenant_id == tenant.value, versions.c.document_id == document_id, versions.c.version == number)
    version = connection.execute(select(versions).where(*of_version)).mappings().first()
    if version is None:
        return None
    return DocumentRecord(
        **{name: face[name] for name in (*_DOCUMENT_FIELDS, "metadata")},
        **{name: version[name] for name in (*_CONTENT_FIELDS, *_VERSION_FIELDS, "submitted_metadata")},
        state=DocumentState(version["state"]),
        options=options_from_json(version["options"]),
        text=version["text"] or "",
        version_created_at=version["created_at"],
        failures=failures_from_json(version["failures"]),
        chunks=_read_chunks(connection, tenant, document_id, number),
        prepared=tuple(chunk_results.prepared(connection, tenant, document_id, number)),
    )


def _read_chunks(connection: Connection, tenant: TenantId, document_id: str, version: int) -> tuple[Chunk, ...]:
    statement = (
        select(*CHUNK_COLUMNS)
        .select_from(WITH_TEXT)
        .where(chunks.c.tenant_id == tenant.value, chunks.c.document_id == document_id, chunks.c.version == version)
        .order_by(chunks.c.ordinal)
    )
    return tuple(chunk_from(row) for row in connection.execute(statement).all())


_REVECTOR = (
    update(prepared_chunks)
    .where(
        prepared_chunks.c.tenant_id == bindparam("tenant"),
        prepared_chunks.c.document_id == bindparam("document"),
        prepared_chunks.c.version == bindparam("number"),
        prepared_chunks.c.ordinal == bindparam("place"),
    )
    .values(vector=bindparam("new_vector"), recipe=bindparam("new_recipe"), failure=bindparam("new_failure"))
)


def revector(connection: Connection, tenant: TenantId, document_id: str, version: int, prepared: Sequence[PreparedChunk]) -> None:
    """Replace the vectors, recipes and failures of chunks of a visible version. Removed chunks are not recreated."""
    rows = [
        {
            "tenant": tenant.value,
            "document": document_id,
            "number": version,
            "place": item.chunk.ordinal,
            "new_vector": None if item.vector is None else item.vector.astype("<f4").tobytes(),
            "new_recipe": item.recipe,
            "new_failure": None if item.failure is None else plain({"failure": item.failure})["failure"],
        }
        for item in prepared
    ]
    if rows:
        connection.execute(_REVECTOR, rows)
    questions_of = {item.chunk.id: item.questions for item in prepared if item.questions is not None}
    revector_questions(connection, tenant, document_id, version, questions_of)


def list_summaries(connection: Connection, tenant: TenantId) -> list[CommunitySummary]:
    """Return all recorded community summaries, of every prompt and model, in the order of writing."""
    order = (summaries.c.written_at, summaries.c.fingerprint, summaries.c.prompt_version, summaries.c.model)
    statement = select(summaries).where(summaries.c.tenant_id == tenant.value).order_by(*order)
    return [summary_from(row) for row in connection.execute(statement).mappings()]


def reserve(connection: Connection, tenant: TenantId) -> None:
    """Put an active, empty tenant into the state ``importing``. A tenant already in that state must have no job.

    Raises:
        NotFound: the tenant does not exist.
        Conflict: it has documents or open jobs, or is not active.
    """
    lock_tenant(connection, tenant)
    state = _tenant_row(connection, tenant)["state"]
    if state not in (_IMPORTING, _ACTIVE):
        raise Conflict(f"the tenant is {state}; only an active one can be filled")
    # A tenant in the state ``importing`` belongs to another import, unless that import failed before it had a job.
    open_jobs = (jobs, "jobs that have not ended", (jobs.c.tenant_id == tenant.value) & jobs.c.state.in_(OPEN))
    of_documents = (documents, "documents", documents.c.tenant_id == tenant.value)
    for table, what, which in (open_jobs,) if state == _IMPORTING else (of_documents, open_jobs):
        count = connection.execute(select(func.count()).select_from(table).where(which)).scalar_one()
        if count:
            raise Conflict(
                f"the tenant has {count} {what}; an archive is imported into an empty tenant; another name makes a copy"
            )
    connection.execute(update(tenants).where(tenants.c.tenant_id == tenant.value).values(state=_IMPORTING))


def _require_importing(connection: Connection, tenant: TenantId) -> None:
    lock_tenant(connection, tenant)
    state = _tenant_row(connection, tenant)["state"]
    if state != _IMPORTING:
        raise Conflict(f"the tenant is {state}, not being filled")


def staged(connection: Connection, tenant: TenantId) -> frozenset[str]:
    """Return the ids of the staged documents."""
    statement = select(documents.c.id).where(documents.c.tenant_id == tenant.value, documents.c.current_version == 0)
    return frozenset(connection.execute(statement).scalars())


def stage(connection: Connection, tenant: TenantId, record: DocumentRecord) -> None:
    """Record a document of a tenant in the state ``importing``, unseen by readers. A staged document is not changed.

    Raises:
        Conflict: the tenant is not being imported, or another document has the key.
    """
    try:
        _stage_record(connection, tenant, record)
    except IntegrityError as error:
        raise Conflict(f"document {record.id!r} has the key or the passages of another one of the archive") from error


def _stage_record(connection: Connection, tenant: TenantId, record: DocumentRecord) -> None:
    _require_importing(connection, tenant)
    existing = select(documents.c.id).where(documents.c.tenant_id == tenant.value, documents.c.id == record.id)
    if connection.execute(existing).first() is not None:
        return
    shared = {
        **_values_of(record, "title", *_CONTENT_FIELDS),
        "tenant_id": tenant.value,
        "metadata": plain(record.metadata),
        "failures": plain({"failures": list(record.failures)})["failures"],
    }
    face = {
        **_values_of(record, *_DOCUMENT_FIELDS),
        "state": _STAGED,
        "current_version": 0,
        "latest_version": record.version,
        "chunk_count": 0,
    }
    version = {
        **_values_of(record, *_VERSION_FIELDS, "text"),
        "document_id": record.id,
        "state": record.state.value,
        "submitted_metadata": plain(record.submitted_metadata),
        "options": options_to_json(record.options),
        "created_at": record.version_created_at,
    }
    connection.execute(insert(documents), {**shared, **face})
    connection.execute(insert(versions), {**shared, **version})
    chunk_results.save_prepared(connection, tenant, record.id, record.version, record.prepared)


def _values_of(record: DocumentRecord, *names: str) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def _show_documents(connection: Connection, tenant: TenantId) -> None:
    """Make the latest version of every staged document the visible one, and detach attachments without a message."""
    messages = documents.alias("messages")
    lost = ~exists().where(messages.c.tenant_id == documents.c.tenant_id, messages.c.id == documents.c.parent_id)
    connection.execute(
        update(documents)
        .where(documents.c.tenant_id == tenant.value, documents.c.parent_id.is_not(None), lost)
        .values(parent_id=None, place=None)
    )
    visible = (
        select(versions.c.state)
        .where(
            versions.c.tenant_id == documents.c.tenant_id,
            versions.c.document_id == documents.c.id,
            versions.c.version == documents.c.latest_version,
        )
        .scalar_subquery()
    )
    count = (
        select(func.count())
        .where(
            chunks.c.tenant_id == documents.c.tenant_id,
            chunks.c.document_id == documents.c.id,
            chunks.c.version == documents.c.latest_version,
        )
        .scalar_subquery()
    )
    connection.execute(
        update(documents)
        .where(documents.c.tenant_id == tenant.value, documents.c.current_version == 0)
        .values(current_version=documents.c.latest_version, state=visible, chunk_count=count)
    )


def open_tenant(connection: Connection, tenant: TenantId, opening: Opening) -> None:
    """Make all staged documents visible and the tenant active, in one transaction. Idempotent.

    An attachment whose message was not staged becomes a document that was uploaded by itself.
    ``state_version`` rises so far that readers discard everything they cached before.
    """
    lock_tenant(connection, tenant)
    row = _tenant_row(connection, tenant)
    if row["state"] == _ACTIVE:
        return
    _require_importing(connection, tenant)
    _show_documents(connection, tenant)
    # Beyond the range of the change log: readers with older data then reload everything.
    state_version = max(row["state_version"], opening.state_version) + CHANGES_KEPT + 1
    now = utc_now()
    changed = {"content_version": state_version, "content_changed_at": now}
    changed |= {"stale_since": now if opening.stale else None, "tree_stale_since": now if opening.tree_stale else None}
    ontology = None if opening.ontology is None else asdict(opening.ontology)
    connection.execute(
        update(tenants)
        .where(tenants.c.tenant_id == tenant.value)
        .values(state=_ACTIVE, state_version=state_version, flags=plain(opening.flags), ontology=ontology, **changed)
    )
    insert_edits(connection, tenant, opening.edits)
    for edit in opening.edits:
        # The export may have read a document before it followed the edit.
        record(connection, tenant, Topic.EDITS, str(edit.number))
    # A stale tree is compared with all documents when it is updated.
    built_from = 0 if opening.tree_stale else state_version
    connection.execute(update(raptor_pointers).where(raptor_pointers.c.tenant_id == tenant.value).values(built_from=built_from))
    if opening.generation:
        _point_to_communities(
            connection, tenant, opening, built_from=state_version - opening.stale, built_at=opening.built_at or now
        )


def _point_to_communities(
    connection: Connection, tenant: TenantId, opening: Opening, *, built_from: int, built_at: datetime
) -> None:
    pointer = {
        "tenant_id": tenant.value,
        "generation": opening.generation,
        "last_generation": opening.generation,
        "built_from": built_from,
        "built_at": built_at,
        "details": plain(opening.details),
    }
    upsert(connection, community_pointers, [pointer], keys=("tenant_id",), replace=tuple(pointer)[1:])


def abandon(connection: Connection, tenant: TenantId) -> None:
    """Remove all staged documents, and make the tenant active and empty. An opened tenant is not changed."""
    lock_tenant(connection, tenant)
    if _tenant_row(connection, tenant)["state"] != _IMPORTING:
        return
    own_tables = (chunk_questions, prepared_chunks, chunks, chunk_texts, model_results, versions, documents, summaries)
    for table in (*own_tables, raptor_links, raptor_nodes, raptor_summaries, raptor_pointers):
        connection.execute(delete(table).where(table.c.tenant_id == tenant.value))
    connection.execute(update(tenants).where(tenants.c.tenant_id == tenant.value).values(state=_ACTIVE))


class TransferCatalogue(CataloguePart):
    """Export and import of a tenant's record."""

    snapshot = read(snapshot)
    headers = read(headers)
    record = read(read_record)
    revector = write(revector)
    summaries = read(list_summaries)
    reserve = write(reserve)
    staged = read(staged)
    stage = write(stage)
    open = write(open_tenant)
    abandon = write(abandon)
