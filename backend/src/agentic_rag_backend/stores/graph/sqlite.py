"""The knowledge graph in one SQLite file: the embedded profile's graph store."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from agentic_rag_backend.domain.graph import (
    Community,
    Direction,
    DocumentKnowledge,
    Entity,
    GraphDeletion,
    GraphEdge,
    KnowledgeBatch,
    Mention,
    NameUse,
    Naming,
    Relationship,
    StatedFact,
    UseKind,
    normalise_name,
)
from agentic_rag_backend.domain.tenant import TenantId, require_tenant
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.stores.graph import graph_rows
from agentic_rag_backend.stores.graph.base import GraphCounts, HeldVersion
from agentic_rag_backend.stores.graph.connections import SqliteConnections
from agentic_rag_backend.stores.graph.knowledge_batches import stream_knowledge, stream_knowledge_of_documents
from agentic_rag_backend.stores.graph.statements import load_statements, migrate
from agentic_rag_backend.stores.local_files import create_private

_SQL = load_statements()

_ENTITIES_PER_BATCH = 1_000
_MENTIONS_PER_BATCH = 5_000
_NAMES_PER_BATCH = 5_000
_RELATIONSHIPS_PER_BATCH = 500
_DOCUMENTS_PER_BATCH = 200

_TENANT_TABLES = (
    "community_members",
    "communities",
    "relationship_supports",
    "relationships",
    "mentions",
    "entity_supports",
    "entity_names",
    "entities",
    "written_versions",
)
"""Ordered so that deletion violates no foreign key."""
_OWNING_TABLES = ("entities", "communities", "written_versions")
"""Tables that have a row of every tenant with any data."""


def _add(connection: sqlite3.Connection, tenant: TenantId, knowledge: DocumentKnowledge) -> None:
    graph_rows.check_scope(knowledge)
    names = graph_rows.name_rows(tenant, knowledge)
    supports = graph_rows.support_rows(tenant, knowledge)
    connection.executemany(_SQL["add_entity"], graph_rows.entity_rows(tenant, knowledge))
    connection.executemany(_SQL["add_entity_name"], names)
    connection.executemany(_SQL["add_entity_support"], names)
    connection.executemany(_SQL["add_mention"], graph_rows.mention_rows(tenant, knowledge))
    connection.executemany(_SQL["add_relationship"], graph_rows.relationship_rows(tenant, knowledge, supports))
    connection.executemany(_SQL["add_relationship_support"], supports)
    connection.execute(_SQL["label_entities"], _select_among(tenant.value, {row["entity"] for row in names}))
    connection.execute(_SQL["weigh_relationships"], _select_among(tenant.value, {row["relationship"] for row in supports}))
    parameters = {"tenant": tenant.value, "document": knowledge.document_id, "version": knowledge.version}
    connection.execute(_SQL["record_version"], parameters)
    connection.execute(_SQL["renew_revision"], parameters)


def _delete(connection: sqlite3.Connection, tenant: TenantId, document_id: str, up_to: int, above: int) -> GraphDeletion:
    values = {"tenant": tenant.value, "document": document_id, "version": up_to, "above": above}
    connection.execute(_SQL["change_revision"], values)
    entities = {row[0] for row in connection.execute(_SQL["touched_entities"], values)}
    touched = [row[0] for row in connection.execute(_SQL["touched_relationships"], values)]
    mentions = connection.execute(_SQL["delete_mentions"], values).rowcount
    supports = connection.execute(_SQL["delete_relationship_supports"], values).rowcount
    connection.execute(_SQL["delete_entity_supports"], values)
    connection.execute(_SQL["delete_written_versions"], values)
    edges = connection.execute(_SQL["delete_unsupported_relationships"], _select_among(tenant.value, touched)).fetchall()
    connection.execute(_SQL["weigh_relationships"], _select_among(tenant.value, touched))
    entities.update(end for _, *ends in edges for end in ends)
    among = _select_among(tenant.value, sorted(entities))
    deleted_rows = connection.execute(_SQL["delete_unsupported_entities"], among).fetchall()
    connection.execute(_SQL["label_entities"], among)
    connection.execute(_SQL["delete_unsupported_names"], among)
    return GraphDeletion(
        entities=len(deleted_rows),
        relationships=len(edges),
        mentions=mentions,
        supports=supports,
        entity_ids=tuple(sorted(row[0] for row in deleted_rows)),
        relationship_ids=tuple(sorted(row[0] for row in edges)),
    )


class SqliteGraphStore:
    """`GraphStore` on SQLite; see `stores.graph.base` for the contract.

    An entity has the name and the type that most documents give it. ``aliases`` are its other names, sorted. A
    relationship's ``fact`` is the first of its sentences in alphabetical order; its weight is the sum over its documents.
    """

    def __init__(self, connections: SqliteConnections) -> None:
        self._connections = connections

    @classmethod
    async def open(cls, path: Path) -> SqliteGraphStore:
        """Open or create the file at ``path`` and migrate its schema.

        Raises:
            StoreUnavailable: the file cannot be opened or is no SQLite database.
            ConfigurationError: the file was written by a newer release.
        """
        try:
            create_private(path)
        except OSError as error:
            raise StoreUnavailable(f"the graph store's file {path} cannot be made: {error}") from error
        connections = SqliteConnections(path)
        try:
            await connections.prepare(migrate)
        except BaseException:
            await connections.close()
            raise
        return cls(connections)

    async def write_document(self, tenant: TenantId, knowledge: DocumentKnowledge) -> None:
        """Add one version's knowledge in one transaction. Idempotent.

        Raises:
            InvalidRequest: it names an entity or relationship that neither it nor the tenant's graph has, or a passage
                of another document or version.
        """
        require_tenant(tenant)
        await self._connections.write(partial(_add, tenant=tenant, knowledge=knowledge))

    async def replace_document(self, tenant: TenantId, knowledge: DocumentKnowledge) -> set[str]:
        """Replace a version's knowledge in one transaction."""
        require_tenant(tenant)

        def work(connection: sqlite3.Connection) -> set[str]:
            removal = _delete(connection, tenant, knowledge.document_id, knowledge.version, knowledge.version - 1)
            _add(connection, tenant, knowledge)
            return set(removal.relationship_ids) - {relationship.id for relationship in knowledge.relationships}

        return await self._connections.write(work)

    async def delete_document(self, tenant: TenantId, document_id: str, *, up_to_version: int, above: int = 0) -> GraphDeletion:
        """Remove the knowledge of versions > ``above`` and ≤ ``up_to_version``. The cost depends on what they touch only."""
        require_tenant(tenant)
        return await self._connections.write(
            partial(_delete, tenant=tenant, document_id=document_id, up_to=up_to_version, above=above)
        )

    async def find_entities(self, tenant: TenantId, names: Sequence[str]) -> dict[str, list[Entity]]:
        """Return the entities by normalised name. A name matches an entity's name or an alias. Unknown names are absent."""
        scope = require_tenant(tenant).value
        names_json = json.dumps(sorted({normalise_name(name) for name in names} - {""}))

        def work(connection: sqlite3.Connection) -> dict[str, list[Entity]]:
            graph_rows = connection.execute(_SQL["entity_ids_by_name"], {"tenant": scope, "names": names_json}).fetchall()
            ids = list({entity_id for _, entity_id in graph_rows})
            entities = {entity.id: entity for entity in _entities(connection, scope, ids)}
            result: dict[str, dict[str, Entity]] = {}
            for name, entity_id in graph_rows:
                result.setdefault(name, {})[entity_id] = entities[entity_id]
            return {
                name: sorted(having.values(), key=lambda entity: (entity.name, entity.type, entity.id))
                for name, having in result.items()
            }

        return await self._connections.read(work)

    async def name_uses(self, tenant: TenantId, names: Sequence[str], kind: UseKind, *, limit: int) -> dict[str, list[NameUse]]:
        """Return the uses of normalised names, by name. Each spelling costs two index lookups."""
        scope, statement = require_tenant(tenant).value, _SQL[f"{kind}_uses"]

        def work(connection: sqlite3.Connection) -> dict[str, list[NameUse]]:
            uses_of: dict[str, list[NameUse]] = {}
            for name in dict.fromkeys(names):
                spelled = connection.execute(_SQL["spellings_of_name"], {"tenant": scope, "normalised": name}).fetchall()
                for entity, spelling in spelled:
                    parameters = {"tenant": scope, "entity": entity, "name": spelling, "limit": limit}
                    uses = [graph_rows.to_name_use(row) for row in connection.execute(statement, parameters)]
                    if uses:
                        uses_of.setdefault(name, []).extend(uses)
            return {name: sorted(uses, key=graph_rows.use_order) for name, uses in uses_of.items()}

        return await self._connections.read(work)

    async def documents_naming(self, tenant: TenantId, entity_ids: Sequence[str]) -> list[str]:
        """Return the documents of which a version names one of the entities, ordered by id."""
        pairs = await self._rows("documents_naming", _select_among(require_tenant(tenant).value, entity_ids))
        return [document for (document,) in pairs]

    async def entities(self, tenant: TenantId, ids: Sequence[str]) -> dict[str, Entity]:
        """Return the entities among ``ids`` that exist."""
        scope = require_tenant(tenant).value
        matches = await self._connections.read(lambda connection: _entities(connection, scope, ids))
        return {entity.id: entity for entity in matches}

    async def relationships(self, tenant: TenantId, ids: Sequence[str]) -> dict[str, Relationship]:
        """Return the relationships among ``ids`` that exist, supports included."""
        matches = await self._relationships("relationships_by_id", _select_among(require_tenant(tenant).value, ids))
        return {relationship.id: relationship for relationship in matches}

    async def relationships_of(self, tenant: TenantId, entity_ids: Sequence[str]) -> list[Relationship]:
        """Return the relationships with both ends among ``entity_ids``, ordered by id."""
        return await self._relationships("relationships_between", _select_among(require_tenant(tenant).value, entity_ids))

    async def edges_at(
        self,
        tenant: TenantId,
        entity_ids: Sequence[str],
        *,
        limit: int,
        direction: Direction = "any",
        relations: Sequence[str] | None = None,
    ) -> dict[str, list[GraphEdge]]:
        """Return the heaviest relationships of each entity, with two index lookups per entity."""
        scope, types = require_tenant(tenant).value, None if relations is None else json.dumps(list(relations))

        def work(connection: sqlite3.Connection) -> dict[str, list[GraphEdge]]:
            edge_rows: list[Any] = []
            for entity in dict.fromkeys(entity_ids):
                parameters = {"tenant": scope, "entity": entity, "relations": types, "limit": limit}
                for side in graph_rows.EDGE_STATEMENTS[direction]:
                    edge_rows += connection.execute(_SQL[side], parameters).fetchall()
            return graph_rows.to_edges(edge_rows, limit)

        return await self._connections.read(work)

    async def fact_sentences(self, tenant: TenantId, relationship_ids: Sequence[str]) -> list[StatedFact]:
        """Return the sentences of the relationships, ordered by relationship, document, version, chunk and offset."""
        records = await self._rows("fact_sentences", _select_among(require_tenant(tenant).value, relationship_ids))
        return [graph_rows.to_sentence(row) for row in records]

    def all_entities(self, tenant: TenantId) -> AsyncIterator[list[Entity]]:
        """Stream every entity, ordered by id. Each batch is its own read: no snapshot is held between batches."""
        return self._all_entities(require_tenant(tenant).value)

    def all_mentions(self, tenant: TenantId, document_ids: Sequence[str] | None = None) -> AsyncIterator[list[Mention]]:
        """Stream every mention, or those of some documents, ordered by document, version, chunk and entity."""
        scope = require_tenant(tenant).value
        if document_ids is None:
            return self._mention_pages("mentions_page", scope, "")
        return self._mentions_of(scope, sorted(set(document_ids)))

    def all_names(self, tenant: TenantId, document_ids: Sequence[str] | None = None) -> AsyncIterator[list[Naming]]:
        """Stream every name, or those of some documents, ordered by document, version, entity and name."""
        scope = require_tenant(tenant).value
        if document_ids is None:
            return self._name_pages("names_page", scope, "")
        return self._names_of(scope, sorted(set(document_ids)))

    def stream_knowledge(self, tenant: TenantId, document_ids: Sequence[str] | None = None) -> AsyncIterator[KnowledgeBatch]:
        """Stream mentions and names, grouped by chunk and version in the database, which costs less than many rows."""
        scope = require_tenant(tenant).value
        if document_ids is None:
            return stream_knowledge(self._connections, scope)
        return stream_knowledge_of_documents(self._connections, scope, sorted(set(document_ids)))

    def all_relationships(self, tenant: TenantId, document_ids: Sequence[str] | None = None) -> AsyncIterator[list[Relationship]]:
        """Stream every relationship, or those that some documents support, ordered by id, with all their supports."""
        scope = require_tenant(tenant).value
        if document_ids is None:
            return self._all_relationships(scope)
        return self._relationships_of_documents(scope, document_ids)

    def all_versions(self, tenant: TenantId, document_ids: Sequence[str] | None = None) -> AsyncIterator[list[HeldVersion]]:
        """Stream the versions, ordered by document and version. Only indexes are read to count their knowledge."""
        scope = require_tenant(tenant).value
        if document_ids is None:
            return self._every_version(scope)
        return self._versions_of(scope, sorted(set(document_ids)))

    async def revision(self, tenant: TenantId) -> str:
        """Return a value that every write of knowledge replaces. Empty if nothing was written."""
        records = await self._rows("revision", {"tenant": require_tenant(tenant).value})
        return str(records[0][0]) if records else ""

    async def counts(self, tenant: TenantId) -> GraphCounts:
        """Count the tenant's entities, relationships and mentions."""
        ((entities, relationships, mentions),) = await self._rows("counts", {"tenant": require_tenant(tenant).value})
        return GraphCounts(entities=entities, relationships=relationships, mentions=mentions)

    async def mention_counts(self, tenant: TenantId, entity_ids: Sequence[str]) -> Mapping[str, int]:
        """Return the number of chunks that mention each entity, over all versions. Entities without mentions are absent."""
        return dict(await self._rows("mention_counts", _select_among(require_tenant(tenant).value, entity_ids)))

    async def write_communities(self, tenant: TenantId, generation: int, communities: Sequence[Community]) -> None:
        """Replace the communities of ``generation``, in one transaction. Other generations stay.

        Raises:
            InvalidRequest: a community belongs to another generation, or two communities have the same id.
        """
        scope = require_tenant(tenant).value
        community_records, members = graph_rows.community_rows(tenant, generation, communities)

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_SQL["delete_generation"], {"tenant": scope, "generation": generation})
            connection.executemany(_SQL["add_community"], community_records)
            connection.executemany(_SQL["add_community_member"], members)

        await self._connections.write(work)

    async def communities(
        self,
        tenant: TenantId,
        generation: int,
        *,
        level: int | None = None,
        ids: Sequence[str] | None = None,
        members: bool = True,
    ) -> list[Community]:
        """Return a generation's communities, ordered by level, descending size, id. Members are in the order written."""
        key = {"tenant": require_tenant(tenant).value, "generation": generation}

        def work(connection: sqlite3.Connection) -> list[Community]:
            name = "communities_of_generation" if ids is None else "communities_by_id"
            parameters = {**key, "level": level, "ids": json.dumps(list(ids or ()))}
            records = connection.execute(_SQL[name], parameters).fetchall()
            among = {**key, "ids": json.dumps([row[0] for row in records])}
            members_of: dict[str, list[str]] = {}
            for community_id, entity_id in connection.execute(_SQL["members_of_communities"], among) if members else ():
                members_of.setdefault(community_id, []).append(entity_id)
            return [
                Community(
                    id=identifier,
                    generation=generation,
                    level=depth,
                    parent_id=parent,
                    entity_ids=tuple(members_of.get(identifier, ())),
                    fingerprint=fingerprint,
                    entity_count=count,
                )
                for identifier, depth, parent, fingerprint, count in records
            ]

        return await self._connections.read(work)

    async def generations(self, tenant: TenantId) -> list[int]:
        """Return the generations that have communities, ascending."""
        return [row[0] for row in await self._rows("generations", {"tenant": require_tenant(tenant).value})]

    async def delete_generations(self, tenant: TenantId, *, below: int) -> int:
        """Remove generations < ``below`` and return the number of removed communities."""
        key = {"tenant": require_tenant(tenant).value, "generation": below}
        return await self._connections.write(
            lambda connection: connection.execute(_SQL["delete_generations_below"], key).rowcount
        )

    async def delete_tenant(self, tenant: TenantId) -> int:
        """Remove all data of the tenant and return the number of removed rows."""
        key = {"tenant": require_tenant(tenant).value}

        def work(connection: sqlite3.Connection) -> int:
            connection.execute(_SQL["delete_tenant_revision"], key)
            return sum(connection.execute(_SQL[f"delete_tenant_{table}"], key).rowcount for table in _TENANT_TABLES)

        return await self._connections.write(work)

    async def tenants(self) -> list[TenantId]:
        """Return every tenant that has data, with one index lookup per tenant and table."""

        def work(connection: sqlite3.Connection) -> list[str]:
            ids: list[str] = []
            while True:
                behind = {"after": ids[-1] if ids else ""}
                ahead = [connection.execute(_SQL[f"next_tenant_{table}"], behind).fetchone()[0] for table in _OWNING_TABLES]
                if not any(ahead):
                    return ids
                ids.append(min(tenant for tenant in ahead if tenant))

        return [TenantId(value) for value in await self._connections.read(work)]

    async def ping(self) -> None:
        """Raise `StoreUnavailable` unless the file answers and has room to grow."""
        self._connections.require_room()
        await self._connections.read(lambda connection: connection.execute("SELECT 1 FROM entities LIMIT 1").fetchone())

    async def close(self) -> None:
        """Close the file; further calls raise `StoreUnavailable`."""
        await self._connections.close()

    async def _rows(self, name: str, values: Mapping[str, Any]) -> list[Any]:
        return await self._connections.read(lambda connection: connection.execute(_SQL[name], values).fetchall())

    async def _relationships(self, name: str, values: Mapping[str, Any]) -> list[Relationship]:
        return await self._connections.read(
            lambda connection: list(graph_rows.to_relationships(connection.execute(_SQL[name], values)))
        )

    async def _all_entities(self, scope: str) -> AsyncIterator[list[Entity]]:
        after = ""
        while True:
            page = {"tenant": scope, "after": after, "limit": _ENTITIES_PER_BATCH}

            def work(connection: sqlite3.Connection, page: Mapping[str, Any] = page) -> list[Entity]:
                records = connection.execute(_SQL["entities_page"], page).fetchall()
                return _with_names(connection, scope, records)

            batch = await self._connections.read(work)
            if batch:
                yield batch
            if len(batch) < _ENTITIES_PER_BATCH:
                return
            after = batch[-1].id

    async def _every_version(self, scope: str) -> AsyncIterator[list[HeldVersion]]:
        after = ""
        while True:
            page = {"tenant": scope, "after": after, "limit": _DOCUMENTS_PER_BATCH}
            ids = [row[0] for row in await self._rows("documents_page", page)]
            if not ids:
                return
            async for batch in self._versions_of(scope, ids):
                yield batch
            after = ids[-1]

    async def _versions_of(self, scope: str, document_ids: Sequence[str]) -> AsyncIterator[list[HeldVersion]]:
        for start in range(0, len(document_ids), _DOCUMENTS_PER_BATCH):
            ids_json = json.dumps(document_ids[start : start + _DOCUMENTS_PER_BATCH])
            batch = graph_rows.to_versions(await self._rows("held_versions", {"tenant": scope, "documents": ids_json}))
            if batch:
                yield batch

    async def _mention_pages(self, statement: str, scope: str, document_id: str) -> AsyncIterator[list[Mention]]:
        after = {"document": document_id, "version": -1, "chunk": "", "entity": ""}
        while True:
            page = {"tenant": scope, "limit": _MENTIONS_PER_BATCH, **after}
            batch = await self._connections.read(
                lambda connection, page=page: graph_rows.to_mentions(connection.execute(_SQL[statement], page))  # type: ignore[misc]
            )
            if batch:
                yield batch
            if len(batch) < _MENTIONS_PER_BATCH:
                return
            last_row = batch[-1]
            after = {
                "document": last_row.support.document_id,
                "version": last_row.support.version,
                "chunk": last_row.support.chunk_id,
                "entity": last_row.entity_id,
            }

    async def _mentions_of(self, scope: str, document_ids: Iterable[str]) -> AsyncIterator[list[Mention]]:
        for document_id in document_ids:
            async for batch in self._mention_pages("mentions_of_document_page", scope, document_id):
                yield batch

    async def _name_pages(self, statement: str, scope: str, document_id: str) -> AsyncIterator[list[Naming]]:
        after = {"document": document_id, "version": -1, "entity": "", "name": ""}
        while True:
            page = {"tenant": scope, "limit": _NAMES_PER_BATCH, **after}
            batch = await self._connections.read(
                lambda connection, page=page: [graph_rows.to_naming(row) for row in connection.execute(_SQL[statement], page)]  # type: ignore[misc]
            )
            if batch:
                yield batch
            if len(batch) < _NAMES_PER_BATCH:
                return
            last_row = batch[-1]
            after = {
                "document": last_row.document_id,
                "version": last_row.version,
                "entity": last_row.entity_id,
                "name": last_row.name,
            }

    async def _names_of(self, scope: str, document_ids: Iterable[str]) -> AsyncIterator[list[Naming]]:
        for document_id in document_ids:
            async for batch in self._name_pages("names_of_document_page", scope, document_id):
                yield batch

    async def _all_relationships(self, scope: str) -> AsyncIterator[list[Relationship]]:
        after = ""
        while True:
            page = {"tenant": scope, "after": after, "limit": _RELATIONSHIPS_PER_BATCH}
            batch = await self._relationships("relationships_page", page)
            if not batch:
                return
            yield batch
            after = batch[-1].id

    async def _relationships_of_documents(self, scope: str, document_ids: Sequence[str]) -> AsyncIterator[list[Relationship]]:
        documents = {"tenant": scope, "documents": json.dumps(list(document_ids))}
        ids = [row[0] for row in await self._rows("relationship_ids_of_documents", documents)]
        for start in range(0, len(ids), _RELATIONSHIPS_PER_BATCH):
            batch = await self._relationships(
                "relationships_by_id", _select_among(scope, ids[start : start + _RELATIONSHIPS_PER_BATCH])
            )
            if batch:
                yield batch


def _select_among(scope: str, ids: Iterable[str]) -> dict[str, str]:
    """Return the parameters of a statement about some ids of a tenant."""
    return {"tenant": scope, "ids": json.dumps(list(ids))}


def _entities(connection: sqlite3.Connection, scope: str, ids: Iterable[str]) -> list[Entity]:
    return _with_names(connection, scope, connection.execute(_SQL["entities_by_id"], _select_among(scope, ids)).fetchall())


def _with_names(connection: sqlite3.Connection, scope: str, records: Sequence[Sequence[Any]]) -> list[Entity]:
    among = _select_among(scope, (row[0] for row in records))
    names = connection.execute(_SQL["names_of_entities"], among).fetchall()
    descriptions = dict(connection.execute(_SQL["descriptions_of_entities"], among).fetchall())
    return graph_rows.to_entities(records, names, descriptions)
