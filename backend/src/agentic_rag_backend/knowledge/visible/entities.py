"""Entities as a tenant may see them now: names, neighbours, and the paths between them.

Names and mentions come from the tenant's graph in memory, which holds visible knowledge only. Sentences are checked with the
catalogue when they are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from agentic_rag_backend.domain.query import EntityRef
from agentic_rag_backend.domain.tenant import Tenant
from agentic_rag_backend.errors import NotFound
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.knowledge.visible.relationships import RelationshipReader, VisibleRelationship
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue
from agentic_rag_backend.stores.graph.base import KnowledgeStore

MAX_NEIGHBOURS = 100
MAX_HOPS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleEntity:
    """An entity with the ids of the visible chunks that mention it, sorted. There is at least one."""

    entity: EntityRef
    chunk_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """An entity that shares visible chunks with another one, and the relationships between the two."""

    entity: EntityRef
    shared_chunks: int
    relationships: tuple[VisibleRelationship, ...]


class EntityReader:
    """Reads entities, their neighbours and paths within one tenant.

    Args:
        graphs: the tenants' graphs in memory.
        graph: the record of relationships.
    """

    def __init__(self, graphs: TenantGraphs, graph: KnowledgeStore, documents: DocumentCatalogue) -> None:
        self._graphs = graphs
        self._graph = graph
        self._relationships = RelationshipReader(graph, documents)

    async def entity(self, tenant: Tenant, id: str) -> VisibleEntity:
        """Return an entity.

        Raises:
            NotFound: no visible chunk mentions an entity of this id.
            StoreUnavailable: the graph store or the catalogue did not answer.
        """
        graph, number = await self._found(tenant, id)
        chunks = sorted(graph.chunk_ids[chunk] for chunk in graph.links.of(number).tolist())
        return VisibleEntity(entity=graph.entity(number), chunk_ids=tuple(chunks))

    async def neighbours(self, tenant: Tenant, id: str, *, limit: int = 20) -> list[Neighbour]:
        """Return the entities that share most visible chunks with this one, at most ``limit`` (1–100); of equals, by id.

        Raises:
            NotFound: as for `entity`.
            StoreUnavailable: the graph store or the catalogue did not answer.
        """
        graph, number = await self._found(tenant, id)
        shared = Counter(
            other for chunk in graph.links.of(number).tolist() for other in graph.entities_of(chunk).tolist() if other != number
        )
        near = [(graph.entity(other), count) for other, count in shared.items()]
        near.sort(key=lambda pair: (-pair[1], pair[0].id))
        near = near[: min(limit, MAX_NEIGHBOURS)]
        between = await self._between(tenant, id, [entity.id for entity, _ in near])
        return [
            Neighbour(entity=entity, shared_chunks=count, relationships=tuple(between.get(entity.id, ())))
            for entity, count in near
        ]

    async def path(self, tenant: Tenant, source_id: str, target_id: str, *, max_hops: int = 2) -> list[EntityRef]:
        """Return the entities on a shortest way from one entity to another, both included; empty if there is none.

        Two entities are one hop apart if a visible chunk mentions both. Of equally short ways, the one with the smallest ids.

        Args:
            max_hops: 1–4.

        Raises:
            NotFound: as for `entity`.
            StoreUnavailable: the graph store or the catalogue did not answer.
        """
        graph, source = await self._found(tenant, source_id)
        target = graph.mentioned(target_id)
        if target is None:
            raise _no_entity(target_id)
        came_from = {source: source}
        reached = [source]
        for _ in range(min(max_hops, MAX_HOPS)):
            if target in came_from:
                break
            reached = _next_hop(graph, reached, came_from)
        if target not in came_from:
            return []
        way = [target]
        while way[-1] != source:
            way.append(came_from[way[-1]])
        return [graph.entity(number) for number in reversed(way)]

    async def _found(self, tenant: Tenant, id: str) -> tuple[TenantGraph, int]:
        graph = await self._graphs.graph(tenant)
        number = graph.mentioned(id)
        if number is None:
            raise _no_entity(id)
        return graph, number

    async def _between(self, tenant: Tenant, id: str, others: Sequence[str]) -> dict[str, list[VisibleRelationship]]:
        """Return the relationships between an entity and others, by the other's id."""
        known = await self._graph.relationships_of(tenant.id, [id, *others])
        wanted = sorted(each.id for each in known if id in (each.source_id, each.target_id))
        between: dict[str, list[VisibleRelationship]] = {}
        for each in (await self._relationships.read(tenant.id, wanted)).values():
            ends = (each.relationship.source_id, each.relationship.target_id)
            between.setdefault(ends[1] if ends[0] == id else ends[0], []).append(each)
        return between


def _next_hop(graph: TenantGraph, reached: Sequence[int], came_from: dict[int, int]) -> list[int]:
    """Return the entities one hop further, ordered by id, and note where each was reached from."""
    further: list[int] = []
    for number in reached:
        chunks = graph.links.of(number).tolist()
        for other in sorted({other for chunk in chunks for other in graph.entities_of(chunk).tolist()} - came_from.keys()):
            came_from[other] = number
            further.append(other)
    return sorted(further, key=lambda number: graph.entity(number).id)


def _no_entity(id: str) -> NotFound:
    return NotFound(f"there is no entity {id[:64]!r}")
