"""Results computed for chunks: staged with them, recorded, and copied to other versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Executable,
    FromClause,
    and_,
    bindparam,
    delete,
    insert,
    literal,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.document import Chunk, Failure
from agentic_rag_backend.domain.graph import Extraction
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.stores.catalogue.columns import extraction_from_json
from agentic_rag_backend.stores.catalogue.documents.chunk_rows import CHUNK_COLUMNS, WITH_TEXT, chunk_from
from agentic_rag_backend.stores.catalogue.documents.document_values import HandOn, ParsedVersion, PreparedChunk
from agentic_rag_backend.stores.catalogue.documents.questions import (
    insert_questions,
    question_columns,
    read_questions,
    recorded_questions,
)
from agentic_rag_backend.stores.catalogue.documents.versions import STAGED_TABLES, record_parsed_text, writable
from agentic_rag_backend.stores.catalogue.operations import batches, upsert
from agentic_rag_backend.stores.catalogue.tables import chunk_texts, chunks, prepared_chunks


def _results_of(chunk_table: FromClause) -> ColumnElement[bool]:
    """Join the results for the chunk at ``place``."""
    return and_(
        prepared_chunks.c.tenant_id == chunk_table.c.tenant_id,
        prepared_chunks.c.document_id == chunk_table.c.document_id,
        prepared_chunks.c.version == chunk_table.c.version,
        prepared_chunks.c.ordinal == chunk_table.c.ordinal,
    )


_PREPARED = (
    select(
        *CHUNK_COLUMNS,
        prepared_chunks.c.vector,
        prepared_chunks.c.extraction,
        prepared_chunks.c.recipe,
        prepared_chunks.c.failure,
        prepared_chunks.c.reused,
        prepared_chunks.c.question_recipe,
        prepared_chunks.c.question_failure,
    )
    .select_from(
        WITH_TEXT.join(
            prepared_chunks,
            _results_of(chunks),
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
_IDS: BindParameter[Any] = bindparam("ids", expanding=True)
_RECIPES: BindParameter[Any] = bindparam("recipes", expanding=True)
_KNOWN = (
    select(chunks.c.chunk_id, chunks.c.version)
    .select_from(chunks.join(prepared_chunks, _results_of(chunks)))
    .where(
        chunks.c.tenant_id == bindparam("tenant"),
        chunks.c.document_id == bindparam("document"),
        chunks.c.chunk_id.in_(_IDS),  # uses the index; the pairs are checked afterwards
        tuple_(chunks.c.chunk_id, prepared_chunks.c.recipe).in_(_RECIPES),
    )
)
_EXTRACTIONS = (
    select(chunks.c.chunk_id, prepared_chunks.c.ordinal, prepared_chunks.c.extraction)
    .select_from(chunks.join(prepared_chunks, _results_of(chunks)))
    .where(
        chunks.c.tenant_id == bindparam("tenant"),
        chunks.c.document_id == bindparam("document"),
        chunks.c.version == bindparam("number"),
        chunks.c.chunk_id.in_(_IDS),
    )
)
_REPLACE_EXTRACTION = (
    update(prepared_chunks)
    .where(
        prepared_chunks.c.tenant_id == bindparam("tenant"),
        prepared_chunks.c.document_id == bindparam("document"),
        prepared_chunks.c.version == bindparam("number"),
        prepared_chunks.c.ordinal == bindparam("place"),
    )
    .values(extraction=bindparam("new_extraction"))
)
_INSERT_CHUNKS = insert(chunks)
_INSERT_PREPARED = insert(prepared_chunks)


@cache
def _copy_statement(dialect: str) -> Executable:
    """Return the statement that copies results to the version ``number``, which already has the chunks ``ids``."""
    copied, source = chunks.alias("copied"), chunks.alias("held")
    same_chunk = and_(source.c.tenant_id == copied.c.tenant_id, source.c.chunk_id == copied.c.chunk_id)
    key_columns = [copied.c[name] for name in ("tenant_id", "document_id", "version", "ordinal")]
    result = [prepared_chunks.c[name] for name in ("recipe", "failure", "extraction", "vector")]
    copies = (
        select(*key_columns, *result, literal(True))
        .select_from(copied.join(source, same_chunk).join(prepared_chunks, _results_of(source)))
        .where(
            copied.c.tenant_id == bindparam("tenant"),
            copied.c.document_id == bindparam("document"),
            copied.c.version == bindparam("number"),
            copied.c.chunk_id.in_(_IDS),
            source.c.document_id == bindparam("document"),
            tuple_(copied.c.chunk_id, prepared_chunks.c.recipe).in_(_RECIPES),
        )
    )
    names = [*(column.name for column in (*key_columns, *result)), "reused"]
    # Several versions may hold the same result. The first one found is used.
    statement = postgresql.insert(prepared_chunks) if dialect == "postgresql" else sqlite.insert(prepared_chunks)
    return statement.from_select(names, copies).on_conflict_do_nothing()


def save_prepared(
    connection: Connection,
    tenant: TenantId,
    document_id: str,
    version: int,
    prepared: Sequence[PreparedChunk],
    *,
    parsed: ParsedVersion | None = None,
    hand_on: HandOn | None = None,
) -> None:
    """Record chunks of a version that is not visible yet, with vectors and extractions. Idempotent.

    The chunks may come in batches of any size. A version that is visible, or older than a visible one, is not changed.
    ``parsed`` is recorded before, as by `save_parsed`, and ``hand_on`` enqueues the job's next workflow, in the same
    transaction. `NotFound` if the document was deleted.
    """
    _require_owner(document_id, version, [item.chunk for item in prepared])
    if parsed is not None:
        status = record_parsed_text(connection, tenant, document_id, version, parsed)
    else:
        status = writable(connection, tenant, document_id, version)
    if status is not None and prepared:
        _stage_chunks(connection, tenant, document_id, version, prepared)
    if hand_on is not None:
        hand_on.enqueue(connection, tenant, hand_on.job)


def _stage_chunks(
    connection: Connection, tenant: TenantId, document_id: str, version: int, prepared: Sequence[PreparedChunk]
) -> None:
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
    _insert_positions(connection, tenant, document_id, version, [item.chunk for item in prepared])
    staged = [
        {
            **common,
            "version": version,
            "ordinal": item.chunk.ordinal,
            "recipe": item.recipe if item.complete else None,
            "reused": item.reused,
            "failure": item.failure,
            "extraction": item.extraction,
            "vector": None if item.vector is None else np.ascontiguousarray(item.vector, dtype="<f4").tobytes(),
            **question_columns(item.questions),
        }
        for item in prepared
    ]
    connection.execute(_INSERT_PREPARED, staged)
    questions_of = {item.chunk.ordinal: item.questions for item in prepared if item.questions is not None}
    insert_questions(connection, tenant, document_id, version, questions_of)


def save_extractions(
    connection: Connection, tenant: TenantId, document_id: str, version: int, extractions: Sequence[Extraction]
) -> None:
    """Replace the extractions of staged chunks. Chunks that are not staged are skipped. Idempotent.

    A version that is visible, or older than a visible one, is not changed. `NotFound` if the document was deleted.

    Rows that would not change are not written.
    """
    if writable(connection, tenant, document_id, version) is None:
        return
    bound = {"tenant": tenant.value, "document": document_id, "number": version}
    for batch in batches(extractions):
        extraction_of = {extraction.chunk_id: extraction for extraction in batch}
        rows = connection.execute(_EXTRACTIONS, {**bound, "ids": list(extraction_of)}).all()
        changed = [
            {**bound, "place": row.ordinal, "new_extraction": extraction_of[row.chunk_id]}
            for row in rows
            if extraction_from_json(row.extraction) != extraction_of[row.chunk_id]
        ]
        if changed:
            connection.execute(_REPLACE_EXTRACTION, changed)


def reuse(
    connection: Connection, tenant: TenantId, document_id: str, version: int, requests: Sequence[tuple[Chunk, str]]
) -> frozenset[str]:
    """Stage the chunks of ``requests``, (chunk, recipe), that have recorded results. Return their chunk ids.

    A result counts if it has the same recipe and no failure. It may belong to this version, or to another version of
    the document; then it is copied. `NotFound` if the document was deleted.

    Takes three statements per 500 chunks. Vectors stay in the database.
    """
    _require_owner(document_id, version, [chunk for chunk, _ in requests])
    open_for_writing = writable(connection, tenant, document_id, version) is not None
    bound = {"tenant": tenant.value, "document": document_id, "number": version}
    reused: set[str] = set()
    for batch in batches(requests):
        recipes = {chunk.id: recipe for chunk, recipe in batch}
        recorded = connection.execute(_KNOWN, {**bound, "ids": list(recipes), "recipes": list(recipes.items())}).all()
        own_ids = {row.chunk_id for row in recorded if row.version == version}
        reused |= own_ids
        copied_ids = {row.chunk_id for row in recorded} - own_ids
        copied = [chunk for chunk, _ in batch if chunk.id in copied_ids]
        if copied and open_for_writing:
            _insert_positions(connection, tenant, document_id, version, copied)
            pairs = [(chunk.id, recipes[chunk.id]) for chunk in copied]
            connection.execute(_copy_statement(connection.dialect.name), {**bound, "ids": sorted(copied_ids), "recipes": pairs})
            reused |= copied_ids
    return frozenset(reused)


def _require_owner(document_id: str, version: int, staged: Sequence[Chunk]) -> None:
    for chunk in staged:
        if (chunk.document_id, chunk.version) != (document_id, version):
            raise InvalidRequest(
                f"a chunk of document {chunk.document_id!r}, version {chunk.version} "
                f"cannot be staged for document {document_id!r}, version {version}"
            )


def _insert_positions(
    connection: Connection, tenant: TenantId, document_id: str, version: int, positioned: Sequence[Chunk]
) -> None:
    """Insert the positions of chunks in a version, in place of the staged ones. The chunks' texts already exist."""
    bound = {"tenant": tenant.value, "document": document_id, "number": version}
    if connection.execute(_ANY, bound).first() is not None:
        _remove_staged_rows(connection, tenant, document_id, version, positioned)
    common = {"tenant_id": tenant.value, "document_id": document_id}
    connection.execute(_INSERT_CHUNKS, [_chunk_row(common, chunk) for chunk in positioned])


def _chunk_row(common: Mapping[str, Any], chunk: Chunk) -> dict[str, Any]:
    return {
        **common,
        "version": chunk.version,
        "ordinal": chunk.ordinal,
        "chunk_id": chunk.id,
        **chunk.location.as_fields(),
    }


def _remove_staged_rows(
    connection: Connection, tenant: TenantId, document_id: str, version: int, replaced: Sequence[Chunk]
) -> None:
    """Remove the staged rows that ``replaced`` replaces, by chunk or by position."""
    for batch in batches(replaced):
        here = and_(chunks.c.tenant_id == tenant.value, chunks.c.document_id == document_id, chunks.c.version == version)
        replaced_rows = or_(
            chunks.c.chunk_id.in_([chunk.id for chunk in batch]), chunks.c.ordinal.in_([chunk.ordinal for chunk in batch])
        )
        ordinals = list(connection.execute(select(chunks.c.ordinal).where(here, replaced_rows)).scalars())
        for table in STAGED_TABLES:
            for ordinal_batch in batches(ordinals):
                connection.execute(
                    delete(table).where(
                        table.c.tenant_id == tenant.value,
                        table.c.document_id == document_id,
                        table.c.version == version,
                        table.c.ordinal.in_(ordinal_batch),
                    )
                )


def prepared(connection: Connection, tenant: TenantId, document_id: str, version: int) -> list[PreparedChunk]:
    """Return the prepared chunks in chunk order. Works for the visible version and for newer versions that have ended."""
    bound = {"tenant": tenant.value, "document": document_id, "number": version}
    rows = connection.execute(_PREPARED, bound).all()
    questions_of = read_questions(connection, tenant, document_id, version) if any(row.question_recipe for row in rows) else {}
    return [
        PreparedChunk(
            chunk=chunk_from(row),
            vector=None if row.vector is None else np.frombuffer(row.vector, dtype="<f4").astype(np.float32),
            extraction=extraction_from_json(row.extraction),
            recipe=row.recipe,
            failure=Failure(**row.failure) if row.failure else None,
            reused=row.reused,
            questions=recorded_questions(row, questions_of.get(row.ordinal, ())),
        )
        for row in rows
    ]
