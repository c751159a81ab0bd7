"""The knowledge graph in Neo4j, in Graphiti's schema: the server profile's graph store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

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
from agentic_rag_backend.stores.graph import graph_rows, nodes
from agentic_rag_backend.stores.graph.base import GraphCounts, HeldVersion
from agentic_rag_backend.stores.graph.bolt import Neo4jAddress, Neo4jConnections, Record, Transaction
from agentic_rag_backend.stores.graph.knowledge_batches import group_knowledge
from agentic_rag_backend.stores.graph.neo4j_schema import claim, migrate, require_migrated
from agentic_rag_backend.stores.graph.neo4j_writes import CYPHER, Addition, delete_knowledge, run_delete
from agentic_rag_backend.stores.ownership import Owner

T = TypeVar("T")
Row = Sequence[Any]

_ENTITIES_PER_BATCH = 1_000
_MENTIONS_PER_BATCH = 5_000
_NAMES_PER_BATCH = 5_000
_RELATIONSHIPS_PER_BATCH = 500
_DOCUMENTS_PER_BATCH = 200
_DELETED_PER_BATCH = 10_000
_HUB_DEGREE = 1_000
"""Entities with more edges are not expanded."""

_OF_TENANTS = (
    "statements",
    "mentions",
    "relationships",
    "names",
    "theme_records",
    "communities",
    "entities",
    "sagas",
    "chunks",
    "versions",
    "documents",
)
"""Statements of `delete_tenant`, in order. Relationships come before nodes, which would delete theirs in one step."""


class Neo4jGraphStore:
    """`GraphStore` on Neo4j; see `stores.graph.base` for the contract.

    An entity has the name and the type that most documents give it. ``aliases`` are its other names, sorted. A
    relationship's ``fact`` is the first of its sentences in alphabetical order; its weight is the sum over its documents. Each
    batch of a stream is read in its own transaction.
    """

    def __init__(self, connections: Neo4jConnections, deployment: str | None = None) -> None:
        self._connections = connections
        self._deployment = deployment

    @classmethod
    async def open(cls, address: Neo4jAddress, *, migrating: bool = True, owner: Owner | None = None) -> Neo4jGraphStore:
        """Connect, and migrate the schema. Without ``migrating``, only check that the schema is current.

        Args:
            owner: the deployment whose tenants are listed and marked. None: all tenants.

        Raises:
            StoreUnavailable: the server does not answer.
            ConfigurationError: the server refuses the credentials, a newer release wrote the database, or another deployment has
                the same name.
        """
        connections = Neo4jConnections.open(address)
        try:
            await (migrate(connections) if migrating else require_migrated(connections))
            if owner is not None:
                await claim(connections, owner)
        except BaseException:
            await connections.close()
            raise
        return cls(connections, owner.deployment.id if owner is not None else None)

    @property
    def connections(self) -> Neo4jConnections:
        """The connection pool of the process, for other readers of this graph."""
        return self._connections

    async def write_document(self, tenant: TenantId, knowledge: DocumentKnowledge) -> None:
        """Add one version's knowledge in one transaction with a fixed number of statements. Idempotent.

        Raises:
            InvalidRequest: the knowledge names an entity or relationship that neither it nor the tenant's graph has, a passage of
                another document or version, or a name that is too long.
        """
        # In a thread: a long document has a hundred thousand rows.
        addition = await asyncio.to_thread(Addition.of, tenant, knowledge, self._deployment)
        await self._connections.write(addition.write)

    async def replace_document(self, tenant: TenantId, knowledge: DocumentKnowledge) -> set[str]:
        """Replace a version's knowledge in one transaction."""
        addition = await asyncio.to_thread(Addition.of, tenant, knowledge, self._deployment)
        key = _range(tenant, knowledge.document_id, up_to=knowledge.version, above=knowledge.version - 1)

        async def work(transaction: Transaction) -> set[str]:
            removal = await delete_knowledge(transaction, key)
            await addition.write(transaction)
            return set(removal.relationship_ids) - {relationship.id for relationship in knowledge.relationships}

        return await self._connections.write(work)

    async def delete_document(self, tenant: TenantId, document_id: str, *, up_to_version: int, above: int = 0) -> GraphDeletion:
        """Remove the knowledge of versions > ``above`` and ≤ ``up_to_version`` in one transaction of fixed length."""
        key = _range(tenant, document_id, up_to=up_to_version, above=above)
        return await self._connections.write(partial(delete_knowledge, key=key))

    async def find_entities(self, tenant: TenantId, names: Sequence[str]) -> dict[str, list[Entity]]:
        """Return the entities by normalised name. A name matches an entity's name or an alias. Unknown names are absent."""
        normalised_names = sorted({normalise_name(name) for name in names} - {""})
        result: dict[str, list[Entity]] = {}
        for name, *entity in await self._list("entities_by_name", tenant, names=normalised_names):
            result.setdefault(name, []).append(_entity(entity))
        return result

    async def name_uses(self, tenant: TenantId, names: Sequence[str], kind: UseKind, *, limit: int) -> dict[str, list[NameUse]]:
        """Return the uses of normalised names, by name."""
        uses_of: dict[str, list[NameUse]] = {}
        for name, *use in await self._list(f"{kind}_uses", tenant, names=sorted(set(names)), limit=limit):
            uses_of.setdefault(name, []).append(nodes.to_name_use(*use))
        return {name: sorted(uses, key=graph_rows.use_order) for name, uses in uses_of.items()}

    async def documents_naming(self, tenant: TenantId, entity_ids: Sequence[str]) -> list[str]:
        """Return the documents of which a version names one of the entities, ordered by id."""
        records = await self._list("documents_naming", tenant, uuids=_uuid_list(tenant, entity_ids))
        return sorted(document for (document,) in records)

    async def entities(self, tenant: TenantId, ids: Sequence[str]) -> dict[str, Entity]:
        """Return the entities among ``ids`` that exist."""
        records = await self._list("entities_by_uuid", tenant, uuids=_uuid_list(tenant, ids))
        return {entity.id: entity for entity in map(_entity, records)}

    async def relationships(self, tenant: TenantId, ids: Sequence[str]) -> dict[str, Relationship]:
        """Return the relationships among ``ids`` that exist, supports included."""
        matches = _relationships(await self._list("relationships_by_uuid", tenant, uuids=_uuid_list(tenant, ids)))
        return {relationship.id: relationship for relationship in matches}

    async def relationships_of(self, tenant: TenantId, entity_ids: Sequence[str]) -> list[Relationship]:
        """Return the relationships with both ends among ``entity_ids``, ordered by id."""
        ends = _uuid_list(tenant, entity_ids)
        return _relationships(await self._list("relationships_between", tenant, uuids=ends, hub_degree=_HUB_DEGREE))

    async def edges_at(
        self,
        tenant: TenantId,
        entity_ids: Sequence[str],
        *,
        limit: int,
        direction: Direction = "any",
        relations: Sequence[str] | None = None,
    ) -> dict[str, list[GraphEdge]]:
        """Return the heaviest relationships of each entity, with at most two statements."""
        parameters = {
            "uuids": _uuid_list(tenant, entity_ids),
            "limit": limit,
            "relations": None if relations is None else list(relations),
        }
        records = [row for side in graph_rows.EDGE_STATEMENTS[direction] for row in await self._list(side, tenant, **parameters)]
        return graph_rows.to_edges(records, limit)

    async def fact_sentences(self, tenant: TenantId, relationship_ids: Sequence[str]) -> list[StatedFact]:
        """Return the sentences of the relationships, ordered by relationship, document, version, chunk and offset."""
        records = await self._list("fact_sentences", tenant, uuids=_uuid_list(tenant, relationship_ids))
        sentences = [graph_rows.to_sentence(nodes.to_sentence_row(*row)) for row in records]
        return [sentence for sentence in sentences if sentence.end_char > sentence.start_char]

    def all_entities(self, tenant: TenantId) -> AsyncIterator[list[Entity]]:
        """Stream every entity, ordered by id."""
        return self._all_entities(require_tenant(tenant))

    def all_mentions(self, tenant: TenantId, document_ids: Sequence[str] | None = None) -> AsyncIterator[list[Mention]]:
        """Stream every mention, or those of some documents, ordered by document, version, chunk and entity."""

        def read(records: Sequence[Row]) -> list[Mention]:
            return graph_rows.to_mentions(nodes.to_mention_row(*row) for row in records)

        pages = self._positions("mentions", require_tenant(tenant), document_ids, _MENTIONS_PER_BATCH)
        return _map_record(pages, read)

    def all_names(self, tenant: TenantId, document_ids: Sequence[str] | None = None) -> AsyncIterator[list[Naming]]:
        """Stream every name, or those of some documents, ordered by document, version, entity and name."""

        def read(records: Sequence[Row]) -> list[Naming]:
            return [nodes.to_naming(*row) for row in records]

        pages = self._positions("names", require_tenant(tenant), document_ids, _NAMES_PER_BATCH)
        return _map_record(pages, read)

    def stream_knowledge(self, tenant: TenantId, document_ids: Sequence[str] | None = None) -> AsyncIterator[KnowledgeBatch]:
        """Stream mentions and names, merged from their two streams."""
        return group_knowledge(self.all_mentions(tenant, document_ids), self.all_names(tenant, document_ids))

    def all_relationships(self, tenant: TenantId, document_ids: Sequence[str] | None = None) -> AsyncIterator[list[Relationship]]:
        """Stream every relationship with all its supports, ordered by id, optionally only those some documents support."""
        require_tenant(tenant)
        if document_ids is None:
            return self._all_relationships(tenant)
        return self._relationships_of_documents(tenant, document_ids)

    def all_versions(self, tenant: TenantId, document_ids: Sequence[str] | None = None) -> AsyncIterator[list[HeldVersion]]:
        """Stream the versions, ordered by document and version. Only indexes are read to count their knowledge."""
        require_tenant(tenant)
        if document_ids is None:
            return self._every_version(tenant)
        return self._versions_of(tenant, sorted(set(document_ids)))

    async def revision(self, tenant: TenantId) -> str:
        """Return a value that every write of knowledge replaces. Empty if nothing was written."""
        records = await self._rows("revision", tenant)
        return (records[0]["revision"] or "") if records else ""

    async def counts(self, tenant: TenantId) -> GraphCounts:
        """Count the tenant's entities, relationships and mentions."""
        (row,) = await self._rows("counts", tenant)
        return GraphCounts(**row)

    async def mention_counts(self, tenant: TenantId, entity_ids: Sequence[str]) -> Mapping[str, int]:
        """Return the number of chunks that mention each entity, over all versions. Entities without mentions are absent."""
        records = await self._list("mention_counts", tenant, uuids=_uuid_list(tenant, entity_ids))
        return {identifier: chunks for identifier, chunks in records}  # noqa: C416 - rows are lists, dict() needs pairs

    async def write_communities(self, tenant: TenantId, generation: int, communities: Sequence[Community]) -> None:
        """Replace the communities of ``generation``, in one transaction. Other generations stay.

        Raises:
            InvalidRequest: a community belongs to another generation, or two communities have the same id.
        """
        key = {"tenant": require_tenant(tenant).value, "deployment": self._deployment, "generation": generation}
        community_records, members = nodes.community_rows(tenant, generation, communities)

        async def work(transaction: Transaction) -> None:
            await transaction.run(CYPHER["lock_tenant"], key)
            await transaction.run(CYPHER["delete_generation"], key)
            await transaction.run(CYPHER["add_communities"], {**key, "rows": community_records})
            await transaction.run(CYPHER["add_members"], {**key, "rows": members})

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
        parameters: dict[str, Any] = {"generation": generation, "level": level, "members": members}
        if ids is None:
            records = await self._rows("communities_of_generation", tenant, **parameters)
        else:
            uuids = [nodes.graph_uuid(tenant, nodes.theme_id(id, generation)) for id in dict.fromkeys(ids)]
            records = await self._rows("communities_by_id", tenant, uuids=uuids, **parameters)
        return [
            Community(
                id=row["id"],
                generation=generation,
                level=row["level"],
                parent_id=row["parent"],
                entity_ids=tuple(row["members"]),
                fingerprint=row["fingerprint"],
                entity_count=row["count"],
            )
            for row in records
        ]

    async def generations(self, tenant: TenantId) -> list[int]:
        """Return the generations that have communities, ascending."""
        return [row["generation"] for row in await self._rows("generations", tenant)]

    async def delete_generations(self, tenant: TenantId, *, below: int) -> int:
        """Remove generations < ``below`` and return the number of removed communities."""
        key = {"tenant": require_tenant(tenant).value, "generation": below}

        async def work(transaction: Transaction) -> int:
            return await run_delete(transaction, "delete_generations_below", key)

        return await self._connections.write(work)

    async def delete_tenant(self, tenant: TenantId) -> int:
        """Remove all data of the tenant, and return the number of removed nodes and relationships.

        Each transaction has a bounded size, and the last one removes the tenant's own node. If the removal is interrupted,
        the next call removes the rest.
        """
        key = {"tenant": require_tenant(tenant).value, "limit": _DELETED_PER_BATCH}
        total = 0
        for what in _OF_TENANTS:
            while count_deleted := await self._delete_some(f"delete_tenant_{what}", key):
                total += count_deleted
        await self._connections.write(lambda transaction: transaction.run(CYPHER["delete_tenant_lock"], key))
        return total

    async def tenants(self) -> list[TenantId]:
        """Return every tenant that has data."""
        of = {"deployment": self._deployment}
        records = await self._connections.read(lambda transaction: transaction.rows(CYPHER["list_tenants"], of))
        return [TenantId(row["tenant"]) for row in records]

    async def ping(self) -> None:
        """Raise `StoreUnavailable` unless the server answers."""
        await self._connections.ping()

    async def close(self) -> None:
        """Close every connection; further calls raise `StoreUnavailable`."""
        await self._connections.close()

    async def _rows(self, name: str, tenant: TenantId, **values: Any) -> list[Record]:
        key = {"tenant": require_tenant(tenant).value, **values}
        return await self._connections.read(lambda transaction: transaction.rows(CYPHER[name], key))

    async def _list(self, name: str, tenant: TenantId, **values: Any) -> list[Row]:
        (row,) = await self._rows(name, tenant, **values)
        items: list[Row] = row["rows"]
        return items

    async def _delete_some(self, name: str, key: Mapping[str, Any]) -> int:
        return await self._connections.write(lambda transaction: run_delete(transaction, name, key))

    async def _all_entities(self, tenant: TenantId) -> AsyncIterator[list[Entity]]:
        after = ""
        while batch := await self._list("entities_page", tenant, after=after, limit=_ENTITIES_PER_BATCH):
            yield [_entity(row) for row in batch]
            after = batch[-1][0]

    async def _positions(
        self, what: str, tenant: TenantId, document_ids: Sequence[str] | None, limit: int
    ) -> AsyncIterator[list[Row]]:
        """Page through items with a position, a fixed number of rows at a time."""
        for ids in [None] if document_ids is None else _batches(sorted(set(document_ids)), _DOCUMENTS_PER_BATCH):
            name = f"{what}_page" if ids is None else f"{what}_of_documents_page"
            prefixes = [nodes.version_prefix(document) for document in ids or ()]
            after = ""
            while batch := await self._list(name, tenant, prefixes=prefixes, after=after, limit=limit):
                yield batch
                if len(batch) < limit:
                    break
                after = batch[-1][0]

    async def _all_relationships(self, tenant: TenantId) -> AsyncIterator[list[Relationship]]:
        after = ""
        while records := await self._list("relationships_page", tenant, after=after, limit=_RELATIONSHIPS_PER_BATCH):
            batch = _relationships(records)
            yield batch
            after = batch[-1].id

    async def _relationships_of_documents(
        self, tenant: TenantId, document_ids: Sequence[str]
    ) -> AsyncIterator[list[Relationship]]:
        prefixes = [nodes.version_prefix(document) for document in sorted(set(document_ids))]
        pairs = await self._list("relationship_uuids_of_documents", tenant, prefixes=prefixes)
        for uuid_batch in _batches([uuid for _, uuid in pairs], _RELATIONSHIPS_PER_BATCH):
            batch = _relationships(await self._list("relationships_by_uuid", tenant, uuids=uuid_batch))
            if batch:
                yield batch

    async def _every_version(self, tenant: TenantId) -> AsyncIterator[list[HeldVersion]]:
        after = ""
        while records := await self._list("documents_page", tenant, after=after, limit=_DOCUMENTS_PER_BATCH):
            ids = [identifier for (identifier,) in records]
            async for batch in self._versions_of(tenant, ids):
                yield batch
            after = ids[-1]

    async def _versions_of(self, tenant: TenantId, document_ids: Sequence[str]) -> AsyncIterator[list[HeldVersion]]:
        for ids in _batches(document_ids, _DOCUMENTS_PER_BATCH):
            documents = [{"id": document, "prefix": nodes.version_prefix(document)} for document in ids]
            records = await self._list("held_versions", tenant, documents=documents)
            if batch := graph_rows.to_versions(records):
                yield batch


async def _map_record(pages: AsyncIterator[list[Row]], convert: Callable[[Sequence[Row]], list[T]]) -> AsyncIterator[list[T]]:
    async for page in pages:
        yield convert(page)


def _batches(items: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _range(tenant: TenantId, document_id: str, *, up_to: int, above: int) -> dict[str, Any]:
    """Return the parameters of statements about the versions > ``above`` and ≤ ``up_to`` of a document."""
    return {
        "tenant": require_tenant(tenant).value,
        "document": document_id,
        "document_uuid": nodes.graph_uuid(tenant, document_id),
        "version": up_to,
        "above": above,
        **nodes.version_range(document_id, up_to_version=up_to, above=above),
    }


def _uuid_list(tenant: TenantId, ids: Iterable[str]) -> list[str]:
    scope = require_tenant(tenant)
    return [nodes.graph_uuid(scope, identifier) for identifier in dict.fromkeys(ids)]


def _entity(row: Row) -> Entity:
    identifier, name, kind, summary, names = row
    names_of = [(identifier, alias) for alias in names]
    (entity,) = graph_rows.to_entities([(identifier, name, kind)], names_of, {identifier: summary})
    return entity


def _relationships(records: Sequence[Row]) -> list[Relationship]:
    return list(graph_rows.to_relationships(nodes.to_support_row(*row) for row in records))
