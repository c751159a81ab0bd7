"""Chunks as readers get them: only through a visible version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from sqlalchemy import Text, and_, bindparam, func, select, type_coerce
from sqlalchemy.engine import Connection, Row

from agentic_rag_backend.domain.document import Chunk, ChunkSpan, ParentPassage, VisibleChunk
from agentic_rag_backend.domain.location import LOCATION_FIELDS, LOCATION_TABLE, FieldKind, Location
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import NotFound
from agentic_rag_backend.stores.catalogue.documents.visible_documents import select_readable
from agentic_rag_backend.stores.catalogue.operations import batches, public_key
from agentic_rag_backend.stores.catalogue.pages import Page, check_limit, decode_cursor, encode_cursor
from agentic_rag_backend.stores.catalogue.tables import chunk_texts, chunks, documents
from agentic_rag_backend.stores.catalogue.tables import document_versions as versions

_SCOPE = "chunks"
AnyRow = Row[*tuple[Any, ...]]

# JSON is decoded by `chunk_from`, faster than by SQLAlchemy.
_JSON_FIELDS = tuple(row.name for row in LOCATION_TABLE if row.kind in (FieldKind.TEXTS, FieldKind.REGIONS))
_LOCATION_COLUMNS = tuple(
    type_coerce(chunks.c[name], Text).label(f"{name}_json") if name in _JSON_FIELDS else chunks.c[name]
    for name in LOCATION_FIELDS
)
CHUNK_COLUMNS = (
    chunks.c.chunk_id,
    chunks.c.document_id,
    chunks.c.version,
    chunks.c.ordinal,
    chunk_texts.c.text,
    chunk_texts.c.size_tokens,
    chunk_texts.c.content_hash,
    *_LOCATION_COLUMNS,
)
_DOCUMENT_COLUMNS = (
    documents.c.title,
    documents.c.key,
    documents.c.content_hash.label("document_hash"),
    # Decoded once a document instead of once a chunk.
    type_coerce(documents.c.metadata, Text).label("metadata_json"),
    versions.c.created_at.label("published_at"),
)
_LOCATION_AT = len(CHUNK_COLUMNS) - len(LOCATION_FIELDS)
_DOCUMENT_AT = len(CHUNK_COLUMNS)
WITH_TEXT = chunks.join(
    chunk_texts, and_(chunk_texts.c.tenant_id == chunks.c.tenant_id, chunk_texts.c.chunk_id == chunks.c.chunk_id)
)
# The join that keeps superseded and tombstoned text from ever being shown: the version must be the document's current one.
_VISIBLE = WITH_TEXT.join(
    documents,
    and_(
        documents.c.tenant_id == chunks.c.tenant_id,
        documents.c.id == chunks.c.document_id,
        documents.c.current_version == chunks.c.version,
        documents.c.deleted_at.is_(None),
    ),
).join(
    versions,
    and_(
        versions.c.tenant_id == chunks.c.tenant_id,
        versions.c.document_id == chunks.c.document_id,
        versions.c.version == chunks.c.version,
    ),
)
_HYDRATE = (
    select(*CHUNK_COLUMNS, *_DOCUMENT_COLUMNS)
    .select_from(_VISIBLE)
    .where(chunks.c.tenant_id == bindparam("tenant"), chunks.c.chunk_id.in_(bindparam("ids", expanding=True)))
)
_LIST = (
    select(*CHUNK_COLUMNS, *_DOCUMENT_COLUMNS)
    .select_from(_VISIBLE)
    .where(
        chunks.c.tenant_id == bindparam("tenant"),
        chunks.c.document_id == bindparam("document"),
        chunks.c.ordinal > bindparam("after"),
    )
    .order_by(chunks.c.ordinal)
    .limit(bindparam("count"))
)
_PARENTS = (
    select(chunks.c.document_id, chunks.c.version, chunks.c.parent_start, chunks.c.parent_end)
    .distinct()
    .select_from(_VISIBLE)
    .where(
        chunks.c.tenant_id == bindparam("tenant"),
        chunks.c.chunk_id.in_(bindparam("ids", expanding=True)),
        chunks.c.parent_start.is_not(None),
    )
)
_IN_PARENT = (
    select(*CHUNK_COLUMNS)
    .select_from(WITH_TEXT)
    .where(
        chunks.c.tenant_id == bindparam("tenant"),
        chunks.c.document_id == bindparam("document"),
        chunks.c.version == bindparam("number"),
        chunks.c.parent_start == bindparam("first"),
    )
    .order_by(chunks.c.ordinal)
)
_IN_SPAN = (
    select(*CHUNK_COLUMNS)
    .select_from(_VISIBLE)
    .where(
        chunks.c.tenant_id == bindparam("tenant"),
        chunks.c.document_id == bindparam("document"),
        chunks.c.ordinal.between(bindparam("low"), bindparam("high")),
    )
    .order_by(chunks.c.ordinal)
)
_TEXT = select(func.substr(versions.c.text, bindparam("first") + 1, bindparam("length"))).where(
    versions.c.tenant_id == bindparam("tenant"),
    versions.c.document_id == bindparam("document"),
    versions.c.version == bindparam("number"),
)
_EXISTS = select(documents.c.id).where(
    documents.c.tenant_id == bindparam("tenant"), documents.c.id == bindparam("document"), documents.c.deleted_at.is_(None)
)


def hydrate(connection: Connection, tenant: TenantId, chunk_ids: Sequence[str]) -> dict[str, VisibleChunk]:
    """Return the chunks that belong to a visible version. Other chunks are absent. One statement for each 500 ids."""
    rows: list[AnyRow] = []
    for batch in batches(list(dict.fromkeys(chunk_ids))):
        rows.extend(connection.execute(_HYDRATE, {"tenant": tenant.value, "ids": batch}).all())
    readable = select_readable(connection, tenant, [row[1] for row in rows])
    return {chunk.chunk.id: chunk for chunk in _make_visible([row for row in rows if row[1] in readable])}


def read_parents(connection: Connection, tenant: TenantId, chunk_ids: Sequence[str]) -> dict[str, ParentPassage]:
    """Return the parents of chunks of visible versions, by their ids. Chunks without a parent are ignored.

    Two statements for each parent.
    """
    passages: dict[str, ParentPassage] = {}
    for batch in batches(list(dict.fromkeys(chunk_ids))):
        places = connection.execute(_PARENTS, {"tenant": tenant.value, "ids": batch}).all()
        readable = select_readable(connection, tenant, [place.document_id for place in places])
        for document_id, version, start, end in places:
            if document_id not in readable:
                continue
            bound = {"tenant": tenant.value, "document": document_id, "number": version, "first": start}
            children = tuple(chunk_from(row) for row in connection.execute(_IN_PARENT, bound).all())
            text = str(connection.execute(_TEXT, {**bound, "length": end - start}).scalar_one())
            id = children[0].parent_id or ""
            passages[id] = ParentPassage(id=id, start_char=start, end_char=end, text=text, chunks=children)
    return passages


def read_passages(connection: Connection, tenant: TenantId, spans: Sequence[ChunkSpan]) -> dict[ChunkSpan, ParentPassage]:
    """Return the text of neighbouring chunks of visible versions. Spans without a chunk are absent.

    Two statements for each span.
    """
    passages: dict[ChunkSpan, ParentPassage] = {}
    readable = select_readable(connection, tenant, [span.document_id for span in spans])
    for span in dict.fromkeys(span for span in spans if span.document_id in readable):
        bound = {"tenant": tenant.value, "document": span.document_id}
        rows = connection.execute(_IN_SPAN, {**bound, "low": span.first, "high": span.last}).all()
        members = [chunk_from(row) for row in rows]
        if not members:
            continue
        start, end = min(chunk.location.start_char for chunk in members), max(chunk.location.end_char for chunk in members)
        part = {**bound, "number": members[0].version, "first": start, "length": end - start}
        passages[span] = ParentPassage.of_chunks(members, str(connection.execute(_TEXT, part).scalar_one()), start)
    return passages


def list_chunks(
    connection: Connection, tenant: TenantId, document_id: str, *, limit: int, cursor: str | None = None
) -> Page[VisibleChunk]:
    """List a visible document's chunks in reading order. `NotFound` if the document does not exist."""
    check_limit(limit)
    after = -1 if cursor is None else decode_cursor(_SCOPE, cursor, int)[0]
    bound = {"tenant": tenant.value, "document": document_id}
    if connection.execute(_EXISTS, bound).first() is None or not select_readable(connection, tenant, [document_id]):
        raise NotFound(f"there is no document {document_id!r}")
    rows = connection.execute(_LIST, {**bound, "after": after, "count": limit + 1}).all()
    next_cursor = encode_cursor(_SCOPE, (rows[limit - 1].ordinal,)) if len(rows) > limit else None
    return Page(tuple(_make_visible(rows[:limit])), next_cursor)


def _make_visible(rows: Sequence[AnyRow]) -> list[VisibleChunk]:
    metadata: dict[str, Mapping[str, Any]] = {}
    visible_chunks = []
    for row in rows:
        title, key, document_hash, metadata_json, published_at = row[_DOCUMENT_AT:]
        document_metadata = metadata.get(row[1])
        if document_metadata is None:
            document_metadata = metadata[row[1]] = orjson.loads(metadata_json)
        visible_chunks.append(
            VisibleChunk(
                chunk=chunk_from(row),
                document_title=title,
                document_key=public_key(key, document_hash),
                metadata=document_metadata,
                published_at=published_at,
            )
        )
    return visible_chunks


def chunk_from(row: AnyRow) -> Chunk:
    """Return the chunk in a row that begins with `CHUNK_COLUMNS`."""
    # By position, as `CHUNK_COLUMNS` orders them: names cost a look-up each, and this is the hot path of every query.
    values = dict(zip(LOCATION_FIELDS, row[_LOCATION_AT:], strict=False))
    values |= {name: () if values[name] == "[]" else orjson.loads(values[name]) for name in _JSON_FIELDS}
    return Chunk(
        id=row[0],
        document_id=row[1],
        version=row[2],
        ordinal=row[3],
        text=row[4],
        size_tokens=row[5],
        content_hash=row[6],
        location=Location.of_fields(values),
    )
