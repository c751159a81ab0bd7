"""The entities around one entity, over one to four relationships, with the connections between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from agentic_rag_backend.domain.graph import GraphEdge
from agentic_rag_backend.domain.query import EntityRef
from agentic_rag_backend.domain.tenant import Tenant
from agentic_rag_backend.knowledge.paths.base import MAX_HOPS, Connection, require_range
from agentic_rag_backend.knowledge.paths.links import LinkOptions, Links, passage_factor, strength, weigh_mentions
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph, shared_chunk
from agentic_rag_backend.knowledge.visible.entity_reader import no_entity
from agentic_rag_backend.knowledge.visible.fact_reader import FactReader
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue
from agentic_rag_backend.stores.graph.base import KnowledgeStore

MAX_NODES = 200
MAX_EDGES = 400
"""Connections of a neighbourhood, the heaviest ones."""
READ_PER_NODE = 60
"""Connections that are read of each entity beyond the first; of the first, as many as there may be nodes."""
_BEAM = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourhoodOptions:
    """What a neighbourhood may consist of.

    Args:
        hops: 1–4.
        relations: types of relationships, in any case; None: all. With types, no connection is a shared mention.
        limit: 1–200 entities, in addition to the first.
        mentions: whether connections may be shared mentions if no relationship connects the entity with another one.
        as_of: only relationships that held at this time; None: now.

    Raises:
        InvalidRequest: a number is outside its range.
    """

    hops: int = 1
    relations: tuple[str, ...] | None = None
    limit: int = 50
    mentions: bool = True
    as_of: datetime | None = None

    def __post_init__(self) -> None:
        require_range("hops", self.hops, MAX_HOPS)
        require_range("limit", self.limit, MAX_NODES)


@dataclass(frozen=True, slots=True)
class NeighbourNode:
    """An entity, the least number of connections that lead to it, and the number of visible chunks that mention it.

    ``position`` is its place on a map, each coordinate from 0 to 1; None: it was not placed.
    """

    entity: EntityRef
    hops: int
    mention_count: int
    position: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Entities by distance, the first one included, and connections by decreasing weight.

    ``bounded`` if entities or connections were left out.
    """

    nodes: tuple[NeighbourNode, ...]
    edges: tuple[Connection, ...]
    bounded: bool


class NeighbourhoodReader:
    """Reads neighbourhoods within one tenant.

    Args:
        graphs: the tenants' graphs in memory.
        graph: the record of relationships.
    """

    def __init__(self, graphs: TenantGraphs, graph: KnowledgeStore, documents: DocumentCatalogue, facts: FactReader) -> None:
        self._graphs = graphs
        self._store = graph
        self._documents = documents
        self._facts = facts

    async def around(self, tenant: Tenant, id: str, options: NeighbourhoodOptions | None = None) -> Neighbourhood:
        """Return the neighbourhood of an entity: the nearest entities, and of equally near ones those with the best paths.

        Raises:
            NotFound: no visible chunk mentions an entity of this id.
            StoreUnavailable: the graph store or the catalogue did not answer.
        """
        graph = await self._graphs.graph(tenant)
        if graph.find_mentioned_number(id) is None:
            raise no_entity(id)
        options = options or NeighbourhoodOptions()
        links, reached = await self._reach_entities(tenant, graph, id, options, mentions=False)
        edges = await self._read_facts(tenant, links, reached, options)
        if not edges and options.mentions and options.relations is None:
            links, reached = await self._reach_entities(tenant, graph, id, options, mentions=True)
            edges = await self._read_mentions(tenant, links, reached)
        distances = _measure_distances(id, edges)
        nodes = [
            NeighbourNode(graph.entity(graph.entity_index[node]), hops, _mention_count(graph, node))
            for node, hops in distances.items()
        ]
        shown_edges = tuple(edge for edge in edges if edge.source.id in distances)
        left_out = len(edges) >= MAX_EDGES
        if tenant.id.access is None:
            left_out = left_out or len(reached) > options.limit or bool(links.hubs)
        else:  # what was reached depends on relationships that the key may not see
            left_out = left_out or len(nodes) > options.limit
        return Neighbourhood(tuple(nodes), shown_edges, left_out)

    async def _reach_entities(
        self, tenant: Tenant, graph: TenantGraph, id: str, options: NeighbourhoodOptions, *, mentions: bool
    ) -> tuple[Links, list[str]]:
        """Return the connections read, and the ids of the entities reached, the first one included."""
        links = Links(tenant.id, self._store, graph, LinkOptions(relations=options.relations, mentions=mentions))
        scores = {id: 1.0}
        frontier = [id]
        for _ in range(options.hops):
            limit = options.limit + 1 if frontier == [id] else READ_PER_NODE
            await links.read(frontier, "any", limit=limit)
            further: dict[str, float] = {}
            for node in frontier:
                gain = scores[node] * (1.0 if node == id else passage_factor(_mention_count(graph, node)))
                for neighbour, link in links.of(node, "any").items():
                    if neighbour not in scores:
                        further[neighbour] = max(further.get(neighbour, 0.0), gain * strength(link.weight))
            room = options.limit + 1 - len(scores)
            best = sorted(further, key=lambda node_id: (-further[node_id], node_id))[:room]
            scores |= {node_id: further[node_id] for node_id in best}
            frontier = best[:_BEAM]
            if not frontier:
                break
        return links, list(scores)

    async def _read_facts(
        self, tenant: Tenant, links: Links, reached: Sequence[str], options: NeighbourhoodOptions
    ) -> list[Connection]:
        edges: dict[str, GraphEdge] = {}
        among = set(reached)
        for node in reached:
            for neighbour, link in links.of(node, "any").items():
                if neighbour in among:
                    edges |= {edge.id: edge for edge in link.edges}
        heaviest = sorted(edges.values(), key=lambda edge: (-edge.weight, edge.id))[:MAX_EDGES]
        moment = options.as_of or datetime.now(UTC)
        facts = await self._facts.read(tenant.id, links.graph, heaviest, moment=moment)
        connections = [
            Connection(
                source=fact.source,
                target=fact.target,
                fact=fact,
                weight=fact.weight,
                chunk_id=fact.passages[0].support.chunk_id,
                document_id=fact.passages[0].support.document_id,
            )
            for fact in facts.values()
        ]
        return sorted(connections, key=lambda edge: (-edge.weight, edge.source.id, edge.target.id))

    async def _read_mentions(self, tenant: Tenant, links: Links, reached: Sequence[str]) -> list[Connection]:
        graph, among = links.graph, set(reached)
        pairs = {
            (min(node, entity_b), max(node, entity_b)): link.shared
            for node in reached
            for entity_b, link in links.of(node, "any").items()
            if entity_b in among
        }
        heaviest = sorted(pairs, key=lambda pair: (-pairs[pair], pair))[:MAX_EDGES]
        chunks = {pair: shared_chunk(graph, graph.entity_index[pair[0]], graph.entity_index[pair[1]]) for pair in heaviest}
        passages = await self._documents.hydrate(tenant.id, sorted({chunk for chunk in chunks.values() if chunk is not None}))
        return [
            Connection(
                source=graph.entity(graph.entity_index[entity_a]),
                target=graph.entity(graph.entity_index[entity_b]),
                fact=None,
                weight=weigh_mentions(pairs[entity_a, entity_b]),
                chunk_id=passage.chunk.id,
                document_id=passage.chunk.document_id,
            )
            for entity_a, entity_b in heaviest
            if (passage := passages.get(chunks[entity_a, entity_b] or "")) is not None
        ]


def _measure_distances(id: str, edges: Sequence[Connection]) -> Mapping[str, int]:
    """Return the entities that visible connections lead to, nearest first, with the number of steps."""
    neighbours: dict[str, list[str]] = {}
    for edge in edges:
        neighbours.setdefault(edge.source.id, []).append(edge.target.id)
        neighbours.setdefault(edge.target.id, []).append(edge.source.id)
    distances = {id: 0}
    queue = [id]
    for node in queue:  # grows while it is read
        for neighbour in neighbours.get(node, ()):
            if neighbour not in distances:
                distances[neighbour] = distances[node] + 1
                queue.append(neighbour)
    return distances


def _mention_count(graph: TenantGraph, id: str) -> int:
    return int(graph.document_frequency[graph.entity_index[id]])
