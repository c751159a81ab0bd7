"""Finds the best paths between entities, or among the entities that a question names.

The search goes from both ends at once (`links`), so that an entity with a hundred thousand connections costs no more than one
with a hundred. Steps are checked with the catalogue before a path is returned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import Direction, GraphEdge, normalise_name
from agentic_rag_backend.domain.query import EntityRef
from agentic_rag_backend.domain.tenant import Tenant
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.knowledge.paths.base import MAX_ENDS, AmbiguousName, Connection, EntityPath, PathOptions, PathsFound
from agentic_rag_backend.knowledge.paths.links import (
    Link,
    LinkOptions,
    Links,
    Trails,
    connect_entities,
    passage_factor,
    path_score,
    strength,
    weigh_mentions,
)
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph, shared_chunk
from agentic_rag_backend.knowledge.tenant_graph.linking import link_question
from agentic_rag_backend.knowledge.visible.entity_reader import named_entities, no_entity
from agentic_rag_backend.knowledge.visible.fact_reader import FactReader
from agentic_rag_backend.knowledge.visible.facts import VisibleFact
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue
from agentic_rag_backend.stores.graph.base import KnowledgeStore

AT_AN_END = 100
"""Connections that are read of each entity at an end of the path, the strongest first."""
FURTHER = 40
"""Connections that are read of each other entity."""
BEAM = 60
"""Entities that trails of one length are continued from."""
MAX_LINKED = 6
"""Entities of a question: those whose names are rarest."""
_CHECKED = 3
"""Relationships between two entities that are checked with the catalogue."""
_ROUNDS = 4
"""Rounds of paths that are checked if hidden versions state some of their relationships."""
_OPPOSITE: Mapping[Direction, Direction] = {"any": "any", "out": "in", "in": "out"}


@dataclass(slots=True)
class _Search:
    """One search: its ends, the connections read, and the facts and passages checked."""

    tenant: Tenant
    graph: TenantGraph
    options: PathOptions
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    links: Links
    facts: dict[str, VisibleFact | None] = field(default_factory=dict)
    passages: dict[str, VisibleChunk] = field(default_factory=dict)

    def link(self, entity_a: str, entity_b: str) -> Link:
        """Return what connects an entity of a path with the next one. Either may have been read."""
        ahead = self.links.of(entity_a, self.options.direction).get(entity_b, Link())
        behind = self.links.of(entity_b, _OPPOSITE[self.options.direction]).get(entity_a, Link())
        edges = {edge.id: edge for edge in (*ahead.edges, *behind.edges)}
        ordered = sorted(edges.values(), key=lambda edge: (-edge.weight, edge.id))
        return Link(tuple(ordered), max(ahead.shared, behind.shared))

    def mentions(self, id: str) -> int:
        """Return the number of visible chunks that mention an entity."""
        number = self.graph.find_mentioned_number(id)
        return 0 if number is None else int(self.graph.document_frequency[number])

    def ref(self, id: str) -> EntityRef:
        """Return an entity in the form used in answers."""
        return self.graph.entity(self.graph.entity_index[id])


class PathFinder:
    """Finds paths within one tenant.

    Args:
        graphs: the tenants' graphs in memory.
        graph: the record of relationships.
    """

    def __init__(self, graphs: TenantGraphs, graph: KnowledgeStore, documents: DocumentCatalogue, facts: FactReader) -> None:
        self._graphs = graphs
        self._store = graph
        self._documents = documents
        self._facts = facts

    async def between(
        self, tenant: Tenant, sources: Sequence[str], targets: Sequence[str], options: PathOptions | None = None
    ) -> PathsFound:
        """Return the best paths from one of ``sources`` to one of ``targets``, which are ids or names.

        A name that several entities have stands for all of them, and the result says so.

        Raises:
            NotFound: an id or a name belongs to no entity that a visible chunk mentions.
            InvalidRequest: the names of one end belong to more than `MAX_ENDS` entities.
            StoreUnavailable: the graph store or the catalogue did not answer.
        """
        graph = await self._graphs.graph(tenant)
        ambiguous: dict[str, AmbiguousName] = {}
        ends = [_resolve_names(graph, names, ambiguous) for names in (sources, targets)]
        return await self._find_paths(tenant, graph, (ends[0], ends[1]), tuple(ambiguous.values()), options or PathOptions())

    async def of_question(self, tenant: Tenant, text: str, options: PathOptions | None = None) -> PathsFound:
        """Return the best paths among the entities that a question names. Without two of them, there are no paths.

        Raises:
            StoreUnavailable: the graph store or the catalogue did not answer.
        """
        graph = await self._graphs.graph(tenant)
        linked = link_question(graph, text)
        order = sorted(linked, key=lambda number: (-linked[number] * graph.idf[number], graph.entity(number).id))
        refs = [graph.entity(number) for number in order[:MAX_LINKED]]
        called: dict[str, list[EntityRef]] = {}
        for ref in refs:
            called.setdefault(normalise_name(ref.name), []).append(ref)
        ambiguous = tuple(
            AmbiguousName(same_name[0].name, tuple(same_name)) for same_name in called.values() if len(same_name) > 1
        )
        ids = tuple(ref.id for ref in refs)
        return await self._find_paths(tenant, graph, (ids, ids), ambiguous, options or PathOptions())

    async def _find_paths(
        self,
        tenant: Tenant,
        graph: TenantGraph,
        ends: tuple[tuple[str, ...], tuple[str, ...]],
        ambiguous: tuple[AmbiguousName, ...],
        options: PathOptions,
    ) -> PathsFound:
        paths, bounded = await self._search_paths(tenant, graph, ends, options, mentions=False)
        if not paths and options.may_use_mentions:
            paths, bounded = await self._search_paths(tenant, graph, ends, options, mentions=True)
        refs = [tuple(graph.entity(graph.entity_index[id]) for id in end) for end in ends]
        return PathsFound(sources=refs[0], targets=refs[1], ambiguous=ambiguous, paths=tuple(paths), bounded=bounded)

    async def _search_paths(
        self,
        tenant: Tenant,
        graph: TenantGraph,
        ends: tuple[tuple[str, ...], tuple[str, ...]],
        options: PathOptions,
        *,
        mentions: bool,
    ) -> tuple[list[EntityPath], bool]:
        link_options = LinkOptions(relations=options.relations, min_weight=options.min_weight, mentions=mentions)
        links = Links(tenant.id, self._store, graph, link_options)
        search = _Search(tenant, graph, options, *ends, links)
        candidates = await _find_candidates(search)
        visible_paths: list[EntityPath] = []
        size = 2 * options.limit
        for offset in range(0, min(len(candidates), _ROUNDS * size), size):
            batch = candidates[offset : offset + size]
            await self._read_steps(search, batch)
            visible_paths += [path for nodes in batch if (path := _build_path(search, nodes)) is not None]
            if len(visible_paths) >= options.limit:
                break
        visible_paths.sort(key=lambda path: (-path.score, [entity.id for entity in path.entities]))
        return visible_paths[: options.limit], bool(links.hubs)

    async def _read_steps(self, search: _Search, paths: Sequence[tuple[str, ...]]) -> None:
        """Read the facts and passages of the paths' steps that were not read before."""
        edges: dict[str, GraphEdge] = {}
        chunks: set[str] = set()
        for nodes in paths:
            for entity_a, entity_b in pairwise(nodes):
                link = search.link(entity_a, entity_b)
                edges |= {edge.id: edge for edge in link.edges[:_CHECKED] if edge.id not in search.facts}
                if link.shared and (chunk := _shared_passage(search, entity_a, entity_b)) is not None:
                    chunks.add(chunk)
        moment = search.options.as_of or datetime.now(UTC)
        facts = await self._facts.read(search.tenant.id, search.graph, list(edges.values()), moment=moment)
        search.facts |= {id: facts.get(id) for id in edges}
        if unread := sorted(chunks - search.passages.keys()):
            hydrated = await self._documents.hydrate(search.tenant.id, unread)
            search.passages |= hydrated


def _resolve_names(graph: TenantGraph, names: Sequence[str], ambiguous: dict[str, AmbiguousName]) -> tuple[str, ...]:
    """Return the ids of the entities that the names of one end belong to. Note the names that several entities have."""
    ids: dict[str, None] = {}
    for name in names:
        numbers = named_entities(graph, name)
        if not numbers:
            raise no_entity(name)
        refs = tuple(graph.entity(number) for number in numbers)
        ids |= dict.fromkeys(ref.id for ref in refs)
        if len(refs) > 1:
            ambiguous[name] = AmbiguousName(name, refs)
    if len(ids) > MAX_ENDS:
        raise InvalidRequest(
            f"the names of one end may belong to at most {MAX_ENDS} entities; they belong to {len(ids)}: use ids"
        )
    return tuple(ids)


async def _find_candidates(search: _Search) -> list[tuple[str, ...]]:
    """Return paths as the stores have them, best first. Some of their relationships may be hidden."""

    def factor(id: str) -> float:
        return passage_factor(search.mentions(id))

    ahead = Trails(search.sources, search.targets, factor)
    behind = Trails(search.targets, search.sources, factor)
    options, links = search.options, search.links
    sides = ((ahead, options.direction), (behind, _OPPOSITE[options.direction]))
    for length in range(min(options.max_hops, 3)):
        for (trails, direction), goals in zip(sides, (search.targets, search.sources), strict=True):
            # Two steps from each end make up to four. A third one finds the way to a hub whose own connections are too many.
            if length < 2 or links.hubs.intersection(goals):
                frontier = trails.frontier(BEAM if length else MAX_ENDS)
                await links.read(frontier, direction, limit=FURTHER if length else AT_AN_END)
                if not length:
                    _connect_ends(search)
                trails.extend(
                    {id: {to: strength(link.weight) for to, link in links.of(id, direction).items()} for id in frontier}
                )
    best: dict[tuple[str, ...], float] = {}
    for nodes, score in ahead.meetings(behind, options.max_hops):
        canonical = _to_canonical(search, nodes)
        best[canonical] = max(score, best.get(canonical, 0.0))
    return sorted(best, key=lambda nodes: (-round(best[nodes], 12), nodes))


def _connect_ends(search: _Search) -> None:
    for source in search.sources:
        for target in search.targets:
            search.links.connect(source, target)


def _to_canonical(search: _Search, nodes: tuple[str, ...]) -> tuple[str, ...]:
    """Return one of a path's two readings where both are possible, because its ends are sources and targets."""
    is_reversible = search.options.direction == "any" and nodes[0] in search.targets and nodes[-1] in search.sources
    return min(nodes, nodes[::-1], key=lambda way: search.sources.index(way[0])) if is_reversible else nodes


def _build_path(search: _Search, nodes: tuple[str, ...]) -> EntityPath | None:
    """Return a path with its visible steps. None if one of them is hidden or too weak."""
    steps = []
    for entity_a, entity_b in pairwise(nodes):
        step = _connect_by_fact(search, entity_a, entity_b) or _connect_by_mention(search, entity_a, entity_b)
        if step is None:
            return None
        steps.append(step)
    between = [search.mentions(id) for id in nodes[1:-1]]
    score = path_score([step.weight for step in steps], between)
    return EntityPath(tuple(map(search.ref, nodes)), tuple(steps), score)


def _connect_by_fact(search: _Search, entity_a: str, entity_b: str) -> Connection | None:
    edges = search.link(entity_a, entity_b).edges[:_CHECKED]
    facts = [fact for edge in edges if (fact := search.facts.get(edge.id)) is not None]
    return connect_entities(entity_a, facts, min_weight=search.options.min_weight)


def _connect_by_mention(search: _Search, entity_a: str, entity_b: str) -> Connection | None:
    link = replace(search.link(entity_a, entity_b), edges=())
    chunk = _shared_passage(search, entity_a, entity_b) if link.shared and link.weight >= search.options.min_weight else None
    passage = search.passages.get(chunk) if chunk is not None else None
    if passage is None:
        return None
    return Connection(
        source=search.ref(entity_a),
        target=search.ref(entity_b),
        fact=None,
        weight=weigh_mentions(link.shared),
        chunk_id=passage.chunk.id,
        document_id=passage.chunk.document_id,
    )


def _shared_passage(search: _Search, entity_a: str, entity_b: str) -> str | None:
    numbers = search.graph.entity_index[entity_a], search.graph.entity_index[entity_b]
    return shared_chunk(search.graph, *numbers)
