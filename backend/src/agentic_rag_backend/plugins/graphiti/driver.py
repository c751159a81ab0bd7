"""Graphiti's access to the graph: always limited to one tenant, and only with our own statements."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn, TypeVar

from pydantic import ConfigDict

from agentic_rag_backend.domain.tenant import TenantId, require_tenant
from agentic_rag_backend.errors import InvalidScope
from agentic_rag_backend.plugins.graphiti.sdk import (
    EdgeNotFoundError,
    EntityEdge,
    EntityNode,
    EpisodeType,
    EpisodicNode,
    GraphDriver,
    GraphDriverSession,
    GraphOperationsInterface,
    GraphProvider,
    NodeNotFoundError,
    SearchInterface,
)
from agentic_rag_backend.stores.graph.bolt import Neo4jConnections, Record
from agentic_rag_backend.stores.graph.statements import load_statements

T = TypeVar("T")

_CYPHER = load_statements(".cypher")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DATES = ("created_at", "valid_at", "invalid_at", "expired_at")


class GraphReader:
    """Entities, facts and passages of one tenant as Graphiti's models, read by statements that bind the tenant."""

    def __init__(self, connections: Neo4jConnections, tenant: TenantId) -> None:
        self._connections = connections
        self.tenant = require_tenant(tenant)

    async def nodes(self, uuids: Sequence[str]) -> dict[str, EntityNode]:
        """Return the tenant's entities among ``uuids``."""
        return {row["uuid"]: to_node(row, self.tenant) for row in await self.rows("graphiti_nodes", uuids=list(uuids))}

    async def edges(self, uuids: Sequence[str]) -> dict[str, EntityEdge]:
        """Return the tenant's facts among ``uuids``."""
        return {row["uuid"]: to_edge(row, self.tenant) for row in await self.rows("graphiti_edges", uuids=list(uuids))}

    async def episodes(self, uuids: Sequence[str]) -> dict[str, EpisodicNode]:
        """Return the tenant's passages among ``uuids``; their text is in the catalogue."""
        return {row["uuid"]: to_episode(row, self.tenant) for row in await self.rows("graphiti_episodes", uuids=list(uuids))}

    async def rows(self, statement: str, **values: Any) -> list[Record]:
        """Return the rows of one of our own statements in the tenant. Its single record holds the rows as maps.

        Raises:
            StoreUnavailable: Neo4j does not answer.
        """
        key = {"tenant": self.tenant.value, **values}
        (record,) = await self._connections.read(lambda transaction: transaction.rows(_CYPHER[statement], key))
        return [{**row, **{name: _moment(row[name]) for name in _DATES if name in row}} for row in record["rows"]]


class TenantReads(GraphOperationsInterface):
    """Graphiti's reads by uuid, limited to the tenant. All other operations reach the driver, which refuses them.

    Deletions are among these: knowledge is removed with its document, through our own store.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    reader: GraphReader

    async def node_get_by_uuid(self, _cls: Any, driver: Any, uuid: str) -> EntityNode:
        """Return an entity.

        Raises:
            NodeNotFoundError: the tenant has no entity with this uuid. Other tenants do not matter.
        """
        return _only_row(await self.reader.nodes([uuid]), NodeNotFoundError(uuid))

    async def node_get_by_uuids(self, _cls: Any, driver: Any, uuids: list[str], group_id: str | None = None) -> list[EntityNode]:
        """Return the tenant's entities among ``uuids``.

        Raises:
            InvalidScope: another group is requested.
        """
        if group_id is not None:
            require_group(self.reader.tenant, [group_id])
        return list((await self.reader.nodes(uuids)).values())

    async def episodic_node_get_by_uuid(self, _cls: Any, driver: Any, uuid: str) -> EpisodicNode:
        """Return a passage, or raise as `node_get_by_uuid` does."""
        return _only_row(await self.reader.episodes([uuid]), NodeNotFoundError(uuid))

    async def episodic_node_get_by_uuids(self, _cls: Any, driver: Any, uuids: list[str]) -> list[EpisodicNode]:
        """Return the passages that the tenant has."""
        return list((await self.reader.episodes(uuids)).values())

    async def edge_get_by_uuid(self, _cls: Any, driver: Any, uuid: str) -> EntityEdge:
        """Return a fact, or raise ``EdgeNotFoundError``."""
        return _only_row(await self.reader.edges([uuid]), EdgeNotFoundError(uuid))

    async def edge_get_by_uuids(self, _cls: Any, driver: Any, uuids: list[str]) -> list[EntityEdge]:
        """Return the facts that the tenant has."""
        return list((await self.reader.edges(uuids)).values())


class RefusingDriver(GraphDriver):
    """A driver that runs no statement of Graphiti's: they find by uuid regardless of the group, and no group means all groups."""

    provider = GraphProvider.NEO4J

    async def execute_query(self, cypher_query_: str, **kwargs: Any) -> NoReturn:
        """Refuse the statement.

        Raises:
            InvalidScope: always.
        """
        raise InvalidScope(
            f"a statement of Graphiti's is bound to no tenant and is not run: {' '.join(cypher_query_.split())[:80]}"
        )

    def session(self, database: str | None = None) -> GraphDriverSession:
        """Refuse, as `execute_query` does."""
        raise InvalidScope("Graphiti gets no session of its own: its statements are bound to no tenant")

    async def close(self) -> None:
        """Do nothing: the store owns the connections."""

    async def delete_all_indexes(self) -> None:
        """Do nothing: the schema stays."""

    async def build_indices_and_constraints(self, delete_existing: bool = False) -> None:
        """Do nothing: our migrations create the schema, constraints before indexes."""


class TenantDriver(RefusingDriver):
    """The driver of the Graphiti that searches, on the connections of our own store.

    The driver that Graphiti holds has no tenant and answers nothing. ``within`` returns a driver for one tenant's searches and
    reads.
    """

    def __init__(self, connections: Neo4jConnections) -> None:
        self._connections = connections
        self._database = connections.database

    def within(self, reader: GraphReader, interface: SearchInterface) -> TenantDriver:
        """Return a copy for one tenant: ``interface`` answers searches, ``reader`` answers reads by uuid."""
        scoped = copy.copy(self)
        scoped.search_interface = interface
        scoped.graph_operations_interface = TenantReads(reader=reader)
        return scoped


def require_group(tenant: TenantId, group_ids: Sequence[str] | None) -> None:
    """Check that the request names exactly the tenant. Graphiti takes None for every tenant, and turns [] into None.

    Raises:
        InvalidScope: no group, or any other group.
    """
    if group_ids is None or list(group_ids) != [tenant.value]:
        raise InvalidScope(f"a search of Graphiti's must name its tenant's group and no other; got {group_ids!r}")


def to_edge(row: Mapping[str, Any], tenant: TenantId) -> EntityEdge:
    """Return a fact; ``attributes`` has its id in our graph."""
    return EntityEdge(
        uuid=row["uuid"],
        group_id=tenant.value,
        source_node_uuid=row["source"],
        target_node_uuid=row["target"],
        created_at=row["created_at"],
        name=row["name"],
        fact=row["fact"],
        episodes=list(row["episodes"]),
        valid_at=row["valid_at"],
        invalid_at=row["invalid_at"],
        expired_at=row["expired_at"],
        attributes={"id": row["id"]},
    )


def to_node(row: Mapping[str, Any], tenant: TenantId) -> EntityNode:
    """Return an entity; ``attributes`` has its id in our graph."""
    return EntityNode(
        uuid=row["uuid"],
        group_id=tenant.value,
        name=row["name"],
        labels=list(row["labels"]),
        created_at=row["created_at"],
        summary=row["summary"],
        attributes={"id": row["id"]},
    )


def to_episode(row: Mapping[str, Any], tenant: TenantId) -> EpisodicNode:
    """Return a passage without its text."""
    return EpisodicNode(
        uuid=row["uuid"],
        group_id=tenant.value,
        name=row["name"],
        source=EpisodeType.from_str(row["source"]),
        source_description=row["source_description"],
        content=row["content"],
        created_at=row["created_at"],
        valid_at=row["valid_at"],
        entity_edges=list(row["entity_edges"]),
    )


def _moment(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else _EPOCH + timedelta(milliseconds=milliseconds)


def _only_row(rows_by_id: Mapping[str, T], error: Exception) -> T:
    if not rows_by_id:
        raise error
    (value,) = rows_by_id.values()
    return value
