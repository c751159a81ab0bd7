"""Paths that lead outwards from some entities over visible relationships, such as from the entities that a question names.

`PathFinder` knows both ends of a path. Here only the beginning is known, and the caller chooses among the ends that are reached.
The number of relationships that are read does not depend on the number of an entity's relationships.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import GraphEdge
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.paths.base import EntityPath, PathOptions
from agentic_rag_backend.knowledge.paths.links import (
    DECAY,
    Link,
    LinkOptions,
    Links,
    Trail,
    Trails,
    connect_entities,
    passage_factor,
    path_score,
    strength,
)
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.knowledge.visible.fact_reader import FactReader
from agentic_rag_backend.knowledge.visible.facts import VisibleFact
from agentic_rag_backend.stores.graph.base import KnowledgeStore

CHECKED = 2
"""Relationships between two entities that are checked with the catalogue."""

_DATE = "date"


@dataclass(frozen=True, slots=True, kw_only=True)
class Breadth:
    """How much is read.

    Args:
        at_start: relationships of each first entity, the heaviest ones.
        further: relationships of each other entity.
        beam: entities of one length that are continued, the best ones.
    """

    at_start: int = 100
    further: int = 40
    beam: int = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a path may show: facts that hold at ``moment``, stated by passages that pass. ``known`` are passages read before."""

    moment: datetime
    known: Mapping[str, VisibleChunk]
    passes: Callable[[VisibleChunk], bool] | None = None


class Outward:
    """The paths from ``starts`` to other entities, read length by length.

    Args:
        starts: ids of entities that visible chunks mention. No path leads through one of them, but a path may end at one.
        options: relationships, direction and weights; ``limit``, ``mentions`` and ``as_of`` do not apply.
    """

    def __init__(
        self,
        tenant: TenantId,
        store: KnowledgeStore,
        graph: TenantGraph,
        starts: Sequence[str],
        options: PathOptions,
        breadth: Breadth | None = None,
    ) -> None:
        self._tenant = tenant
        self._graph = graph
        self._options = options
        self._breadth = breadth or Breadth()
        link_options = LinkOptions(relations=options.relations, min_weight=options.min_weight)
        self._links = Links(tenant, store, graph, link_options)
        self._trails = Trails(starts, starts, self._factor_of)
        self._starts = len(starts)

    @property
    def length(self) -> int:
        """The length of the longest paths that were read."""
        return len(self._trails.levels) - 1

    @property
    def bounded(self) -> bool:
        """Whether an entity has more relationships than were read."""
        return bool(self._links.hubs)

    async def extend(self) -> None:
        """Read the paths that are one relationship longer.

        Raises:
            StoreUnavailable: the graph store did not answer.
        """
        is_start, direction, breadth = self.length == 0, self._options.direction, self._breadth
        frontier = self._trails.frontier(self._starts) if is_start else self._continue_trails(breadth.beam)
        await self._links.read(frontier, direction, limit=breadth.at_start if is_start else breadth.further)
        self._trails.extend(
            {id: {to: strength(link.weight) for to, link in self._links.of(id, direction).items()} for id in frontier}
        )

    def best(self, maximum: int, *, to: Set[str] | None = None) -> list[Trail]:
        """Return the best paths of all lengths that end at one of ``to`` (None: anywhere), the shorter of equal ones first.

        The last entity counts as passed: the caller goes on from it, such as to a chunk that mentions it.
        """
        levels = self._trails.levels[1:]
        best_paths = [trail for level in levels for id in (level if to is None else to) for trail in level.get(id, ())]
        scores = {
            path: round(DECAY ** (len(path.nodes) - 2) * path.score * self._factor_of(path.nodes[-1]), 12) for path in best_paths
        }
        # Names before ids: the ids of people who share a name differ between deployments.
        return sorted(
            best_paths, key=lambda path: (-scores[path], len(path.nodes), [*map(self._name_of, path.nodes)], path.nodes)
        )[:maximum]

    async def read(self, facts: FactReader, trails: Sequence[Trail], visibility: Shown) -> dict[tuple[str, ...], EntityPath]:
        """Return the paths of which visible passages state every step, by their entities.

        Raises:
            StoreUnavailable: the graph store or the catalogue did not answer.
        """
        edges: dict[str, GraphEdge] = {}
        for trail in trails:
            for entity_a, entity_b in pairwise(trail.nodes):
                edges |= {edge.id: edge for edge in self._read_edges(entity_a, entity_b)}
        path_edges = await facts.read(
            self._tenant,
            self._graph,
            list(edges.values()),
            moment=visibility.moment,
            known=visibility.known,
            passes=visibility.passes,
        )
        paths = {trail.nodes: self._build_path(trail.nodes, path_edges) for trail in trails}
        return {nodes: path for nodes, path in paths.items() if path is not None}

    def _continue_trails(self, maximum: int) -> list[str]:
        """Return the entities that the longest paths go on from. No path leads through a date: it connects everything."""
        is_last = self._trails.levels[-1]
        inner = self._trails.frontier(len(is_last))
        inner = [id for id in inner if self._graph.entity(self._graph.entity_index[id]).type != _DATE]
        return sorted(inner, key=lambda id: (-round(is_last[id][0].score, 12), self._name_of(id), id))[:maximum]

    def _name_of(self, id: str) -> str:
        return self._graph.entity(self._graph.entity_index[id]).name

    def _build_path(self, nodes: tuple[str, ...], facts: Mapping[str, VisibleFact]) -> EntityPath | None:
        steps = []
        for entity_a, entity_b in pairwise(nodes):
            known_facts = [facts[edge.id] for edge in self._read_edges(entity_a, entity_b) if edge.id in facts]
            step = connect_entities(entity_a, known_facts, min_weight=self._options.min_weight)
            if step is None:
                return None
            steps.append(step)
        refs = tuple(self._graph.entity(self._graph.entity_index[id]) for id in nodes)
        score = path_score([step.weight for step in steps], [self._mention_count(id) for id in nodes[1:-1]])
        return EntityPath(refs, tuple(steps), score)

    def _read_edges(self, entity_a: str, entity_b: str) -> list[GraphEdge]:
        """Return the heaviest relationships of two entities."""
        link = self._links.of(entity_a, self._options.direction).get(entity_b, Link())
        return sorted(link.edges, key=lambda edge: (-edge.weight, edge.relation, edge.id))[:CHECKED]

    def _factor_of(self, id: str) -> float:
        return passage_factor(self._mention_count(id))

    def _mention_count(self, id: str) -> int:
        number = self._graph.find_mentioned_number(id)
        return 0 if number is None else int(self._graph.document_frequency[number])
