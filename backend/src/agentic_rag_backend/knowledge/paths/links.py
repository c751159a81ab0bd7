"""Connections of entities, and the steps and trails over them that become paths.

The score of a path is ``0.8^(steps - 1) × Π weight ÷ (weight + 0.5) × Π 1 ÷ (1 + log10 mentions)``: the first product is over its
steps, the second over the entities between its ends, with the number of visible chunks that mention them. So a path is better if
it is short, if its relationships are stated often and clearly, and if it does not lead through entities that are connected with
everything.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agentic_rag_backend.domain.graph import Direction, GraphEdge
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.paths.base import Connection
from agentic_rag_backend.knowledge.relation_types import stored_names
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph, shared_count, sharing_chunks
from agentic_rag_backend.knowledge.visible.facts import VisibleFact
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


def connect_entities(source_id: str, facts: Sequence[VisibleFact], *, min_weight: float = 0.0) -> Connection | None:
    """Return the step from the entity ``one`` over the heaviest of the facts; None if none has the least weight.

    Args:
        facts: visible facts between ``one`` and the next entity of the path.
    """
    enough = [fact for fact in facts if fact.weight >= min_weight]
    enough.sort(key=lambda fact: (-fact.weight, fact.relation, fact.id))
    if not enough:
        return None
    best = enough[0]
    support = best.passages[0].support
    return Connection(
        source=best.source,
        target=best.target,
        fact=best,
        weight=best.weight,
        chunk_id=support.chunk_id,
        document_id=support.document_id,
        forward=best.source.id == source_id,
        others=tuple(enough[1:]),
    )


Node = str
"""The id of an entity, so that equal scores are ordered alike in every process."""
Strengths = Mapping[Node, Mapping[Node, float]]
"""Strength of the step to each neighbour of an entity."""

HALF_WEIGHT = 0.5
"""Weight of a step with the strength 0.5."""
DECAY = 0.8
KEPT_PER_NODE = 6
"""Partial paths of one length to one entity that are continued."""


def strength(weight: float) -> float:
    """Return the strength of a step, in [0, 1)."""
    return weight / (weight + HALF_WEIGHT)


def passage_factor(mentions: int) -> float:
    """Return the factor for an entity between the ends of a path: 1 for one mention, 1/2 for ten, 1/4 for a thousand."""
    return 1 / (1 + math.log10(max(mentions, 1)))


def path_score(weights: Sequence[float], between: Sequence[int]) -> float:
    """Return the score of a path from the weights of its steps and the mentions of the entities between its ends."""
    score = DECAY ** (len(weights) - 1) * math.prod(map(strength, weights))
    return score * math.prod(map(passage_factor, between))


@dataclass(frozen=True, slots=True)
class Trail:
    """A partial path from one end, with the product of the strengths of its steps and the factors of the entities passed."""

    nodes: tuple[Node, ...]
    score: float


class Trails:
    """The best partial paths from some entities, by length.

    Args:
        starts: the entities of this end.
        goals: the entities of the other end. No trail leads through an entity of either end.
        factor: the factor of an entity that a trail leads through.
    """

    def __init__(self, starts: Collection[Node], goals: Collection[Node], factor: Callable[[Node], float]) -> None:
        self._ends = {*starts, *goals}
        self._goals = set(goals)
        self._factor = factor
        self._levels: list[dict[Node, list[Trail]]] = [{start: [Trail((start,), 1.0)] for start in starts}]

    @property
    def levels(self) -> Sequence[Mapping[Node, Sequence[Trail]]]:
        """By length: the best trails to each entity."""
        return self._levels

    def frontier(self, maximum: int) -> list[Node]:
        """Return the entities that the longest trails may be continued from, the best first, at most ``most``."""
        ends = self._levels[-1]
        inner = ends if len(self._levels) == 1 else [node for node in ends if node not in self._ends]
        return sorted(inner, key=lambda node: (-ends[node][0].score, node))[:maximum]

    def extend(self, strengths: Strengths) -> None:
        """Make the trails one step longer, over the neighbours in ``strengths``."""
        longer: dict[Node, list[Trail]] = {}
        for node, trails in self._levels[-1].items():
            if len(self._levels) > 1 and node in self._ends:
                continue
            gain = 1.0 if len(self._levels) == 1 else self._factor(node)
            for neighbour, step in strengths.get(node, {}).items():
                if neighbour in self._ends and neighbour not in self._goals:
                    continue
                for trail in trails:
                    if neighbour not in trail.nodes:
                        longer.setdefault(neighbour, []).append(Trail((*trail.nodes, neighbour), trail.score * gain * step))
        for trails in longer.values():
            trails.sort(key=lambda trail: (-trail.score, trail.nodes))
            del trails[KEPT_PER_NODE:]
        self._levels.append(longer)

    def meetings(self, trails: Trails, max_hops: int) -> Iterator[tuple[tuple[Node, ...], float]]:
        """Yield the paths that join a trail of this end with one of the other end, with their scores. Some come twice."""
        for length, ahead in enumerate(self._levels):
            for remainder, behind in enumerate(trails.levels):
                if 1 <= length + remainder <= max_hops:
                    decay = DECAY ** (length + remainder - 1)
                    for node in ahead.keys() & behind.keys():
                        inside = length > 0 and remainder > 0
                        if inside and node in self._ends:
                            continue
                        through = self._factor(node) if inside else 1.0
                        for trail in ahead[node]:
                            for two in behind[node]:
                                nodes = trail.nodes + two.nodes[-2::-1]
                                if len(set(nodes)) == len(nodes):
                                    yield nodes, decay * through * trail.score * two.score
