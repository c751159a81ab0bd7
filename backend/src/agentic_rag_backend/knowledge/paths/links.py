"""Connections of entities, for the search of paths and neighbourhoods: relationships and, on request, shared mentions."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from agentic_rag_backend.domain.graph import Direction, GraphEdge
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.relation_types import stored_names
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.knowledge.tenant_graph.neighbours import shared_count, sharing_chunks
from agentic_rag_backend.stores.graph.base import KnowledgeStore

MENTION_WEIGHT = 0.1
"""Weight of a shared mention for each shared chunk: less than a relationship's."""
MAX_MENTION_WEIGHT = 0.5


@dataclass(frozen=True, slots=True)
class Link:
    """A connection of two entities: their relationships, heaviest first, and the number of chunks that mention both, if read."""

    edges: tuple[GraphEdge, ...] = ()
    shared: int = 0

    @property
    def weight(self) -> float:
        """The weight of the heaviest relationship; without one, that of the shared mentions."""
        return max((edge.weight for edge in self.edges), default=weigh_mentions(self.shared))


def weigh_mentions(shared: int) -> float:
    """Return the weight of a shared mention."""
    return min(MENTION_WEIGHT * shared, MAX_MENTION_WEIGHT)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkOptions:
    """Which connections are read. ``mentions``: shared mentions, too."""

    relations: tuple[str, ...] | None = None
    min_weight: float = 0.0
    mentions: bool = False


@dataclass(slots=True)
class Links:
    """The connections of one tenant's entities that a search has read, by ids. Hidden entities have none.

    ``hubs`` are entities with more connections than were read.
    """

    tenant: TenantId
    store: KnowledgeStore
    graph: TenantGraph
    options: LinkOptions
    hubs: set[str] = field(default_factory=set)
    _known: dict[tuple[str, Direction], dict[str, Link]] = field(default_factory=dict)

    async def read(self, ids: Sequence[str], direction: Direction, *, limit: int) -> None:
        """Read the ``limit`` strongest connections of entities, unless they were read before."""
        unread = [id for id in ids if (id, direction) not in self._known]
        if not unread:
            return
        relations = None if self.options.relations is None else stored_names(self.options.relations)
        edges = await self.store.edges_at(self.tenant, unread, limit=limit, direction=direction, relations=relations)
        for id in unread:
            entity_edges = edges.get(id, [])
            self._note_hub(id, len(entity_edges), limit)
            self._known[id, direction] = self._group_edges(id, entity_edges)
        if self.options.mentions:
            # In a thread: the chunks of a hub take milliseconds.
            await asyncio.to_thread(self._add_shared_mentions, unread, direction, limit)

    def of(self, id: str, direction: Direction) -> Mapping[str, Link]:
        """Return the connections of an entity that were read, by the other entity."""
        return self._known.get((id, direction), {})

    def connect(self, entity_a: str, entity_b: str) -> None:
        """Add the shared mentions of two entities, which the strongest connections of a hub may lack."""
        numbers = self.graph.find_mentioned_number(entity_a), self.graph.find_mentioned_number(entity_b)
        if not self.options.mentions or entity_a == entity_b or numbers[0] is None or numbers[1] is None:
            return
        if shared := shared_count(self.graph, numbers[0], numbers[1]):
            self._set_shared_count(entity_a, "any", entity_b, shared)
            self._set_shared_count(entity_b, "any", entity_a, shared)

    def _note_hub(self, id: str, count: int, limit: int) -> None:
        if count >= limit:
            self.hubs.add(id)

    def _group_edges(self, id: str, edges: Sequence[GraphEdge]) -> dict[str, Link]:
        related: dict[str, list[GraphEdge]] = {}
        for edge in edges:
            neighbour = edge.target_id if edge.source_id == id else edge.source_id
            if (
                neighbour != id
                and edge.weight >= self.options.min_weight
                and self.graph.find_mentioned_number(neighbour) is not None
            ):
                related.setdefault(neighbour, []).append(edge)
        return {neighbour: Link(tuple(pair_edges)) for neighbour, pair_edges in related.items()}

    def _add_shared_mentions(self, ids: Sequence[str], direction: Direction, limit: int) -> None:
        for id in ids:
            number = self.graph.find_mentioned_number(id)
            sharing = sharing_chunks(self.graph, number, limit=limit) if number is not None else {}
            self._note_hub(id, len(sharing), limit)
            for neighbour, shared in sharing.items():
                self._set_shared_count(id, direction, self.graph.entity(neighbour).id, shared)

    def _set_shared_count(self, id: str, direction: Direction, neighbour: str, shared: int) -> None:
        links = self._known.setdefault((id, direction), {})
        if weigh_mentions(shared) >= self.options.min_weight or neighbour in links:
            links[neighbour] = replace(links.get(neighbour, Link()), shared=shared)
