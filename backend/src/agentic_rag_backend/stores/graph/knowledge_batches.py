"""Reads mentions and names in few objects, for the in-memory graph: grouping in the database costs less than rows here."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterable, Mapping
from functools import partial
from typing import Any

from agentic_rag_backend.domain.graph import ChunkMentions, DocumentNames, EntityLabel, KnowledgeBatch, Mention, Naming, Support
from agentic_rag_backend.stores.graph.connections import SqliteConnections
from agentic_rag_backend.stores.graph.statements import load_statements

_SQL = load_statements()

_BETWEEN = "\0"
"""Separator of grouped texts. No text contains it (`storable`). A JSON array takes twice as long to parse."""
_CHUNKS_PER_BATCH = 1_000
_VERSIONS_PER_BATCH = 500
_ENTITIES_PER_BATCH = 5_000


async def stream_knowledge(connections: SqliteConnections, scope: str) -> AsyncIterator[KnowledgeBatch]:
    """Yield all mentions and names of a tenant. Each batch is its own read: no snapshot is held between batches."""
    after: dict[str, Any] = {"tenant": scope, "document": "", "version": -1, "chunk": ""}
    while mentions := await connections.read(partial(_mention_rows, "mention_batches_page", after)):
        yield KnowledgeBatch(mentions=mentions)
        last_support = mentions[-1].support
        after = {
            "tenant": scope,
            "document": last_support.document_id,
            "version": last_support.version,
            "chunk": last_support.chunk_id,
        }
    after = {"tenant": scope, "document": "", "version": -1}
    while names := await connections.read(partial(_name_rows, "name_batches_page", after)):
        yield KnowledgeBatch(names=names)
        after = {"tenant": scope, "document": names[-1].document_id, "version": names[-1].version}
    after = {"tenant": scope, "after": ""}
    while labels := await connections.read(partial(_entity_labels, "entity_labels_page", after)):
        yield KnowledgeBatch(labels=labels)
        after = {"tenant": scope, "after": labels[-1].entity_id}


async def stream_knowledge_of_documents(
    connections: SqliteConnections, scope: str, document_ids: Iterable[str]
) -> AsyncIterator[KnowledgeBatch]:
    """Yield the mentions and names of some documents, one document after the other."""
    for document_id in document_ids:
        of = {"tenant": scope, "document": document_id}

        def work(connection: sqlite3.Connection, of: dict[str, str] = of) -> KnowledgeBatch:
            return KnowledgeBatch(
                mentions=_mention_rows("mention_batches_of_document", of, connection),
                names=_name_rows("name_batches_of_document", of, connection),
                labels=_entity_labels("entity_labels_of_document", of, connection),
            )

        yield await connections.read(work)


def _mention_rows(statement: str, values: Mapping[str, Any], connection: sqlite3.Connection) -> list[ChunkMentions]:
    return [
        ChunkMentions(Support(document, version, chunk), entities.split(_BETWEEN), [digit == "1" for digit in about])
        for document, version, chunk, entities, about in connection.execute(
            _SQL[statement], {**values, "limit": _CHUNKS_PER_BATCH}
        )
    ]


def _name_rows(statement: str, values: Mapping[str, Any], connection: sqlite3.Connection) -> list[DocumentNames]:
    return [
        DocumentNames(document, version, entities.split(_BETWEEN), names.split(_BETWEEN))
        for document, version, entities, names in connection.execute(_SQL[statement], {**values, "limit": _VERSIONS_PER_BATCH})
    ]


def _entity_labels(statement: str, values: Mapping[str, Any], connection: sqlite3.Connection) -> list[EntityLabel]:
    return [EntityLabel(*row) for row in connection.execute(_SQL[statement], {**values, "limit": _ENTITIES_PER_BATCH})]


async def group_knowledge(
    mentions: AsyncIterator[list[Mention]], names: AsyncIterator[list[Naming]]
) -> AsyncIterator[KnowledgeBatch]:
    """Yield both streams as `KnowledgeBatch`, for a store whose rows are not grouped."""
    async for some_mentions in mentions:
        by_chunk: dict[Support, list[Mention]] = {}
        for mention in some_mentions:
            by_chunk.setdefault(mention.support, []).append(mention)
        chunks = [
            ChunkMentions(support, [mention.entity_id for mention in mentions], [mention.about for mention in mentions])
            for support, mentions in by_chunk.items()
        ]
        yield KnowledgeBatch(mentions=chunks)
    async for some_names in names:
        by_version: dict[tuple[str, int], list[Naming]] = {}
        visible_names = [naming for naming in some_names if naming.said is None or naming.said.mark != "deleted"]
        for naming in visible_names:
            by_version.setdefault((naming.document_id, naming.version), []).append(naming)
        versions = [
            DocumentNames(*version, [mention.entity_id for mention in mentions], [mention.name for mention in mentions])
            for version, mentions in by_version.items()
        ]
        labels = dict.fromkeys(
            EntityLabel(mention.entity_id, mention.entity_name, mention.entity_type) for mention in visible_names
        )
        yield KnowledgeBatch(names=versions, labels=tuple(labels))
