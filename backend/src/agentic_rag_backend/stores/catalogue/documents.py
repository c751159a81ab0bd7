"""The documents port on SQL: each method is one transaction of `submissions`, `versions`, `chunk_rows` or `results`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import bindparam, func, select
from sqlalchemy.engine import Connection, RowMapping

from agentic_rag_backend.domain.document import Chunk, Document, DocumentState, DocumentVersion, Failure, VisibleChunk
from agentic_rag_backend.domain.filters import And, Comparison, Filter, matches
from agentic_rag_backend.domain.job import Job, JobKind
from agentic_rag_backend.domain.tenant import TenantId, require_tenant
from agentic_rag_backend.errors import NotFound
from agentic_rag_backend.stores.catalogue import chunk_rows, results, revisions, standings, submissions, versions, visibility
from agentic_rag_backend.stores.catalogue.base import (
    Change,
    Ending,
    Enqueue,
    Expected,
    HandOn,
    Page,
    PreparedChunk,
    Ready,
    Standing,
    Submission,
    Submitted,
    Visibility,
)
from agentic_rag_backend.stores.catalogue.database import Database
from agentic_rag_backend.stores.catalogue.liveness import Fence
from agentic_rag_backend.stores.catalogue.pages import beyond, check_limit, time_cursor
from agentic_rag_backend.stores.catalogue.rows import document_from, public_key
from agentic_rag_backend.stores.catalogue.tables import documents

_SCOPE = "documents"
_FILTER_BATCH = 200
_VISIBLE_ONE = select(documents).where(
    documents.c.tenant_id == bindparam("tenant"), documents.c.id == bindparam("document"), documents.c.deleted_at.is_(None)
)


class SqlDocuments:
    """Implements `DocumentCatalogue`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def submit(self, tenant: TenantId, submission: Submission, enqueue: Enqueue) -> Submitted:
        """Record a document or a new version of it, with its job."""
        return await self._database.write_arriving(submissions.submit, require_tenant(tenant), submission, enqueue)

    async def revise(self, tenant: TenantId, document_id: str, change: Change, enqueue: Enqueue) -> Submitted:
        """Change title and metadata, or cut the same original again."""
        return await self._database.write(revisions.revise, require_tenant(tenant), document_id, change, enqueue)

    async def document(self, tenant: TenantId, document_id: str) -> Document:
        """Return a document that is not deleted."""
        return await self._database.read(_document, require_tenant(tenant), document_id)

    async def documents(
        self,
        tenant: TenantId,
        *,
        limit: int,
        cursor: str | None = None,
        state: DocumentState | None = None,
        key: str | None = None,
        filter: Filter | None = None,
    ) -> Page[Document]:
        """List documents, newest first; a filter is applied to batches of 200, so memory stays bounded."""
        listing = _Listing(require_tenant(tenant), state=state, key=key, filter=filter)
        return await self._database.read(listing.page, limit, cursor)

    async def version(self, tenant: TenantId, document_id: str, version: int) -> DocumentVersion:
        """Return one version, text included."""
        return await self._database.read(versions.whole_version, require_tenant(tenant), document_id, version)

    async def begin_processing(self, tenant: TenantId, document_id: str, version: int) -> DocumentVersion | None:
        """Move a version that has not ended to ``processing``, and return it."""
        return await self._database.write(versions.begin_processing, require_tenant(tenant), document_id, version)

    async def save_parsed(
        self, tenant: TenantId, document_id: str, version: int, *, text: str, title: str, metadata: Mapping[str, Any]
    ) -> None:
        """Record a version's parsed text."""
        require_tenant(tenant)
        await self._database.write(versions.save_parsed, tenant, document_id, version, text, title, metadata)

    async def save_prepared(
        self,
        tenant: TenantId,
        document_id: str,
        version: int,
        prepared: Sequence[PreparedChunk],
        *,
        hand_on: HandOn | None = None,
    ) -> None:
        """Stage chunks with their vectors and extractions."""
        await self._database.write(results.save_prepared, require_tenant(tenant), document_id, version, prepared, hand_on)

    async def prepared(self, tenant: TenantId, document_id: str, version: int) -> list[PreparedChunk]:
        """Return what was staged."""
        return await self._database.read(results.prepared, require_tenant(tenant), document_id, version)

    async def ready(self, tenant: TenantId, document_id: str, version: int) -> Ready:
        """Return what a commit works on."""
        return await self._database.read(_ready, require_tenant(tenant), document_id, version)

    async def reuse(
        self, tenant: TenantId, document_id: str, version: int, wanted: Sequence[tuple[Chunk, str]]
    ) -> frozenset[str]:
        """Stage what is on record."""
        return await self._database.write(results.reuse, require_tenant(tenant), document_id, version, wanted)

    async def publish(
        self,
        tenant: TenantId,
        document_id: str,
        version: int,
        *,
        failures: Sequence[Failure] = (),
        fence: Fence | None = None,
        ending: Ending | None = None,
        keep_original: bool = True,
    ) -> bool:
        """Make the version the visible one."""
        how = (failures, fence, ending, keep_original)
        return await self._database.write(versions.publish, require_tenant(tenant), document_id, version, *how)

    async def fail(self, tenant: TenantId, document_id: str, version: int, *, state: DocumentState, failure: Failure) -> None:
        """End a version that could not be made visible."""
        await self._database.write(versions.fail, require_tenant(tenant), document_id, version, state, failure)

    async def tombstone(self, tenant: TenantId, document_id: str, enqueue: Enqueue, *, expected: Expected = None) -> Job:
        """Hide a document at once and record its delete job."""
        return await self._database.write(versions.tombstone, require_tenant(tenant), document_id, enqueue, expected)

    async def blob_keys(self, tenant: TenantId, document_id: str, *, up_to_version: int) -> Sequence[str]:
        """Return the keys of the originals of versions ≤ ``up_to_version``."""
        return await self._database.read(versions.blob_keys, require_tenant(tenant), document_id, up_to_version)

    async def unknown_blobs(self, tenant: TenantId, keys: Sequence[str]) -> list[str]:
        """Return the keys that no version names."""
        return await self._database.read(versions.unknown_blobs, require_tenant(tenant), keys)

    async def purge(self, tenant: TenantId, document_id: str, *, up_to_version: int) -> Mapping[str, int]:
        """Remove a tombstoned document's rows."""
        return await self._database.write(versions.purge, require_tenant(tenant), document_id, up_to_version)

    async def remains(self, tenant: TenantId, document_id: str) -> Mapping[str, int]:
        """Count a document's rows."""
        return await self._database.read(versions.remains, require_tenant(tenant), document_id)

    async def drop_versions(self, tenant: TenantId, document_id: str, *, below: int) -> Sequence[str]:
        """Remove superseded versions."""
        return await self._database.write(versions.drop_versions, require_tenant(tenant), document_id, below)

    async def visible_versions(self, tenant: TenantId) -> dict[str, int]:
        """Return the visible version of every visible document."""
        return await self._database.read(visibility.visible_versions, require_tenant(tenant))

    async def visibility(self, tenant: TenantId, *, since: int | None = None) -> Visibility:
        """Return what changed after ``since``, or everything."""
        return await self._database.read(visibility.visibility, require_tenant(tenant), since)

    async def standings(
        self, tenant: TenantId, *, ids: Sequence[str] | None = None, after: str = "", limit: int = 100
    ) -> list[Standing]:
        """Return documents with where they stand, by id."""
        return await self._database.read(standings.standings, require_tenant(tenant), ids, after, limit)

    async def visible_chunk_ids(self, tenant: TenantId, document_ids: Sequence[str]) -> dict[str, list[str]]:
        """Return the chunk ids of visible versions."""
        return await self._database.read(standings.visible_chunk_ids, require_tenant(tenant), document_ids)

    async def take_up(self, tenant: TenantId, document_id: str, enqueue: Callable[[JobKind], Enqueue]) -> Job | None:
        """Give a document the job that it lacks."""
        return await self._database.write(standings.take_up, require_tenant(tenant), document_id, enqueue)

    async def mended(self, tenant: TenantId, document_id: str, *, knowledge: bool) -> None:
        """Raise ``state_version``."""
        await self._database.write(standings.mended, require_tenant(tenant), document_id, knowledge)

    async def hydrate(self, tenant: TenantId, chunk_ids: Sequence[str]) -> dict[str, VisibleChunk]:
        """Return the chunks that belong to a visible version."""
        return await self._database.read(chunk_rows.hydrate, require_tenant(tenant), chunk_ids)

    async def chunks(self, tenant: TenantId, document_id: str, *, limit: int, cursor: str | None = None) -> Page[VisibleChunk]:
        """List a visible document's chunks in reading order."""
        return await self._database.read(chunk_rows.list_chunks, require_tenant(tenant), document_id, limit, cursor)

    async def counts(self, tenant: TenantId) -> Mapping[str, int]:
        """Count documents by state, and visible chunks."""
        return await self._database.read(_counts, require_tenant(tenant))


def _document(connection: Connection, tenant: TenantId, document_id: str) -> Document:
    row = connection.execute(_VISIBLE_ONE, {"tenant": tenant.value, "document": document_id}).mappings().first()
    if row is None:
        raise NotFound(f"there is no document {document_id!r}")
    return document_from(row)


def _ready(connection: Connection, tenant: TenantId, document_id: str, version: int) -> Ready:
    return Ready(
        _document(connection, tenant, document_id),
        versions.whole_version(connection, tenant, document_id, version),
        results.prepared(connection, tenant, document_id, version),
    )


def _counts(connection: Connection, tenant: TenantId) -> Mapping[str, int]:
    statement = (
        select(documents.c.state, func.count(), func.coalesce(func.sum(documents.c.chunk_count), 0))
        .where(documents.c.tenant_id == tenant.value)
        .group_by(documents.c.state)
    )
    counts = {"documents": 0, "chunks": 0} | {f"documents_{state.value}": 0 for state in DocumentState}
    for state, number, chunk_count in connection.execute(statement):
        counts[f"documents_{state}"] = number
        if state != DocumentState.DELETING.value:
            counts["documents"] += number
            counts["chunks"] += int(chunk_count)
    return counts


class _Listing:
    """What a list of documents is narrowed to."""

    def __init__(self, tenant: TenantId, *, state: DocumentState | None, key: str | None, filter: Filter | None) -> None:
        self.filter = filter
        statement = select(documents).where(documents.c.tenant_id == tenant.value)
        # A tombstoned document is gone for its owner, unless the question is what is being deleted.
        statement = statement.where(
            documents.c.deleted_at.is_(None) if state is not DocumentState.DELETING else documents.c.deleted_at.is_not(None)
        )
        if state is not None:
            statement = statement.where(documents.c.state == state.value)
        if key is not None:
            statement = statement.where(documents.c.key == key)
        for document_id in _required_ids(filter):
            statement = statement.where(documents.c.id == document_id)
        self.statement = statement.order_by(documents.c.created_at.desc(), documents.c.id.desc())

    def page(self, connection: Connection, limit: int, cursor: str | None) -> Page[Document]:
        """Return up to ``limit`` documents behind ``cursor``."""
        check_limit(limit)
        size = limit + 1 if self.filter is None else max(_FILTER_BATCH, limit + 1)
        found: list[RowMapping] = []
        while len(found) <= limit:
            statement = self.statement
            if cursor is not None:
                statement = statement.where(beyond(documents, _SCOPE, cursor, newest_first=True))
            rows = connection.execute(statement.limit(size)).mappings().all()
            found.extend(row for row in rows if self._passes(row))
            if len(rows) < size:
                break
            cursor = time_cursor(_SCOPE, rows[-1]["created_at"], rows[-1]["id"])
        last = found[limit - 1] if len(found) > limit else None
        more = time_cursor(_SCOPE, last["created_at"], last["id"]) if last is not None else None
        return Page(tuple(document_from(row) for row in found[:limit]), more)

    def _passes(self, row: RowMapping) -> bool:
        if self.filter is None:
            return True
        own = {"document_id": row["id"], "key": public_key(row["key"], row["content_hash"]), "title": row["title"]}
        return matches(self.filter, {**row["metadata"], **own})


def _required_ids(filter: Filter | None) -> list[str]:
    """Return the document ids that every match must have: the one comparison SQL and the grammar surely agree on."""
    parts = filter.filters if isinstance(filter, And) else (filter,)
    return [
        part.value
        for part in parts
        if isinstance(part, Comparison) and part.field == "document_id" and part.operator == "eq" and isinstance(part.value, str)
    ]
