"""Chunks: staged with what was computed for them, and read back only through a visible version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import orjson
from sqlalchemy import Text, and_, bindparam, delete, insert, or_, select, type_coerce
from sqlalchemy.engine import Connection, Row

from agentic_rag_backend.domain.document import Chunk, VisibleChunk
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidRequest, NotFound
from agentic_rag_backend.stores.catalogue.base import Page, PreparedChunk
from agentic_rag_backend.stores.catalogue.columns import extraction_from_json
from agentic_rag_backend.stores.catalogue.pages import check_limit, decode_cursor, encode_cursor
from agentic_rag_backend.stores.catalogue.rows import batches, public_key, upsert
from agentic_rag_backend.stores.catalogue.tables import chunk_texts, chunks, documents, prepared_chunks
from agentic_rag_backend.stores.catalogue.versions import writable

_SCOPE = "chunks"
AnyRow = Row[*tuple[Any, ...]]

_CHUNK_COLUMNS = (
    chunks.c.chunk_id,
    chunks.c.document_id,
    chunks.c.version,
    chunks.c.ordinal,
    chunk_texts.c.text,
    chunks.c.start_char,
    chunks.c.end_char,
    chunks.c.start_line,
    chunks.c.end_line,
    chunk_texts.c.size_tokens,
    chunk_texts.c.content_hash,
    type_coerce(chunks.c.headings, Text).label("headings_json"),
)
_DOCUMENT_COLUMNS = (
    documents.c.title,
    documents.c.key,
    documents.c.content_hash.label("document_hash"),
    # Decoded once a document instead of once a chunk.
    type_coerce(documents.c.metadata, Text).label("metadata_json"),
)
_DOCUMENT_AT = len(_CHUNK_COLUMNS)
_WITH_TEXT = chunks.join(
    chunk_texts, and_(chunk_texts.c.tenant_id == chunks.c.tenant_id, chunk_texts.c.chunk_id == chunks.c.chunk_id)
)
# The join that keeps superseded and tombstoned text from ever being shown: the version must be the document's current one.
_VISIBLE = _WITH_TEXT.join(
    documents,
    and_(
        documents.c.tenant_id == chunks.c.tenant_id,
        documents.c.id == chunks.c.document_id,
        documents.c.current_version == chunks.c.version,
        documents.c.deleted_at.is_(None),
    ),
)
_HYDRATE = (
    select(*_CHUNK_COLUMNS, *_DOCUMENT_COLUMNS)
    .select_from(_VISIBLE)
    .where(chunks.c.tenant_id == bindparam("tenant"), chunks.c.chunk_id.in_(bindparam("ids", expanding=True)))
)
_LIST = (
    select(*_CHUNK_COLUMNS, *_DOCUMENT_COLUMNS)
    .select_from(_VISIBLE)
    .where(
        chunks.c.tenant_id == bindparam("tenant"),
        chunks.c.document_id == bindparam("document"),
        chunks.c.ordinal > bindparam("after"),
    )
    .order_by(chunks.c.ordinal)
    .limit(bindparam("count"))
)
_PREPARED = (
    select(*_CHUNK_COLUMNS, prepared_chunks.c.vector, prepared_chunks.c.extraction)
    .select_from(
        _WITH_TEXT.join(
            prepared_chunks,
            and_(
                prepared_chunks.c.tenant_id == chunks.c.tenant_id,
                prepared_chunks.c.document_id == chunks.c.document_id,
                prepared_chunks.c.version == chunks.c.version,
                prepared_chunks.c.ordinal == chunks.c.ordinal,
            ),
        )
    )
    .where(
        chunks.c.tenant_id == bindparam("tenant"),
        chunks.c.document_id == bindparam("document"),
        chunks.c.version == bindparam("number"),
    )
    .order_by(chunks.c.ordinal)
)
_ANY = (
    select(chunks.c.ordinal)
    .where(
        chunks.c.tenant_id == bindparam("tenant"),
        chunks.c.document_id == bindparam("document"),
        chunks.c.version == bindparam("number"),
    )
    .limit(1)
)
_EXISTS = select(documents.c.id).where(
    documents.c.tenant_id == bindparam("tenant"), documents.c.id == bindparam("document"), documents.c.deleted_at.is_(None)
)
_INSERT_CHUNKS = insert(chunks)
_INSERT_PREPARED = insert(prepared_chunks)


def save_prepared(
    connection: Connection, tenant: TenantId, document_id: str, version: int, prepared: Sequence[PreparedChunk]
) -> None:
    """See `DocumentCatalogue.save_prepared`."""
    for item in prepared:
        if (item.chunk.document_id, item.chunk.version) != (document_id, version):
            raise InvalidRequest(
                f"a chunk of document {item.chunk.document_id!r}, version {item.chunk.version} "
                f"cannot be staged for document {document_id!r}, version {version}"
            )
    if writable(connection, tenant, document_id, version) is None or not prepared:
        return
    bound = {"tenant": tenant.value, "document": document_id, "number": version}
    if connection.execute(_ANY, bound).first() is not None:
        _unstage(connection, tenant, document_id, version, [item.chunk for item in prepared])
    common = {"tenant_id": tenant.value, "document_id": document_id}
    texts = [
        {
            **common,
            "chunk_id": item.chunk.id,
            "content_hash": item.chunk.content_hash,
            "size_tokens": item.chunk.size_tokens,
            "text": item.chunk.text,
        }
        for item in prepared
    ]
    upsert(connection, chunk_texts, texts, keys=("tenant_id", "chunk_id"))
    connection.execute(_INSERT_CHUNKS, [_chunk_row(common, item.chunk) for item in prepared])
    staged = [
        {
            **common,
            "version": version,
            "ordinal": item.chunk.ordinal,
            "vector": np.ascontiguousarray(item.vector, dtype="<f4").tobytes(),
            "extraction": item.extraction,
        }
        for item in prepared
    ]
    connection.execute(_INSERT_PREPARED, staged)


def _chunk_row(common: Mapping[str, Any], chunk: Chunk) -> dict[str, Any]:
    return {
        **common,
        "version": chunk.version,
        "ordinal": chunk.ordinal,
        "chunk_id": chunk.id,
        "start_char": chunk.start_char,
        "end_char": chunk.end_char,
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
        "headings": chunk.headings,
    }


def _unstage(connection: Connection, tenant: TenantId, document_id: str, version: int, replaced: Sequence[Chunk]) -> None:
    """Remove the staged rows that ``replaced`` takes the place of, by chunk or by position."""
    for batch in batches(replaced):
        here = and_(chunks.c.tenant_id == tenant.value, chunks.c.document_id == document_id, chunks.c.version == version)
        taken = or_(
            chunks.c.chunk_id.in_([chunk.id for chunk in batch]), chunks.c.ordinal.in_([chunk.ordinal for chunk in batch])
        )
        ordinals = list(connection.execute(select(chunks.c.ordinal).where(here, taken)).scalars())
        for table in (prepared_chunks, chunks):
            for some in batches(ordinals):
                connection.execute(
                    delete(table).where(
                        table.c.tenant_id == tenant.value,
                        table.c.document_id == document_id,
                        table.c.version == version,
                        table.c.ordinal.in_(some),
                    )
                )


def prepared(connection: Connection, tenant: TenantId, document_id: str, version: int) -> list[PreparedChunk]:
    """See `DocumentCatalogue.prepared`."""
    bound = {"tenant": tenant.value, "document": document_id, "number": version}
    return [
        PreparedChunk(
            chunk=_chunk(row),
            vector=np.frombuffer(row.vector, dtype="<f4").astype(np.float32),
            extraction=extraction_from_json(row.extraction),
        )
        for row in connection.execute(_PREPARED, bound).all()
    ]


def hydrate(connection: Connection, tenant: TenantId, chunk_ids: Sequence[str]) -> dict[str, VisibleChunk]:
    """See `DocumentCatalogue.hydrate`; one statement for each 500 ids, all on one snapshot."""
    rows: list[AnyRow] = []
    for batch in batches(list(dict.fromkeys(chunk_ids))):
        rows.extend(connection.execute(_HYDRATE, {"tenant": tenant.value, "ids": batch}).all())
    return {chunk.chunk.id: chunk for chunk in _visible(rows)}


def list_chunks(connection: Connection, tenant: TenantId, document_id: str, limit: int, cursor: str | None) -> Page[VisibleChunk]:
    """See `DocumentCatalogue.chunks`."""
    check_limit(limit)
    after = -1 if cursor is None else decode_cursor(_SCOPE, cursor, int)[0]
    bound = {"tenant": tenant.value, "document": document_id}
    if connection.execute(_EXISTS, bound).first() is None:
        raise NotFound(f"there is no document {document_id!r}")
    rows = connection.execute(_LIST, {**bound, "after": after, "count": limit + 1}).all()
    more = encode_cursor(_SCOPE, (rows[limit - 1].ordinal,)) if len(rows) > limit else None
    return Page(tuple(_visible(rows[:limit])), more)


def _visible(rows: Sequence[AnyRow]) -> list[VisibleChunk]:
    metadata: dict[str, Mapping[str, Any]] = {}
    found = []
    for row in rows:
        title, key, document_hash, metadata_json = row[_DOCUMENT_AT:]
        held = metadata.get(row[1])
        if held is None:
            held = metadata[row[1]] = orjson.loads(metadata_json)
        found.append(
            VisibleChunk(chunk=_chunk(row), document_title=title, document_key=public_key(key, document_hash), metadata=held)
        )
    return found


def _chunk(row: AnyRow) -> Chunk:
    # By position, as `_CHUNK_COLUMNS` orders them: names cost a look-up each, and this is the hot path of every query.
    return Chunk(
        id=row[0],
        document_id=row[1],
        version=row[2],
        ordinal=row[3],
        text=row[4],
        start_char=row[5],
        end_char=row[6],
        start_line=row[7],
        end_line=row[8],
        size_tokens=row[9],
        content_hash=row[10],
        headings=tuple(orjson.loads(row[11])),
    )
