"""Why a chunk was found: the path from an entity of the question over relationships and mentions to the chunk.

The last step of a path is the mention in the chunk. The steps before it are, of these, the first that exists:

1. the chunk mentions an entity that the question names: none, or the relationship of that entity which the chunk states and which
   search found for the question;
2. up to `RELATIONSHIPS` visible relationships from an entity that the question names to an entity of the chunk;
3. the passage over which the second hop found the chunk: it mentions an entity of the question and an entity of the chunk, or
   only the latter. If it belongs to the same document, the path is its mention of the entity of the question.

A chunk without a path was found by its text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.query import EntityRef, FactHit, GraphStep, Query
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.knowledge.paths.base import Connection, EntityPath, PathOptions
from agentic_rag_backend.knowledge.paths.links import Trail
from agentic_rag_backend.knowledge.paths.outward import Breadth, Outward, Shown
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.retrieval.base import Stores
from agentic_rag_backend.retrieval.hops import Hop, strength
from agentic_rag_backend.retrieval.passages.hydration import passes
from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)

RELATIONSHIPS = 2
"""Relationships of a path, at most."""
MAX_STARTS = 6
"""Entities of the question that paths begin at: those whose names are rarest."""
RELATED = 10
"""Results, the best first, whose paths may lead over relationships. The paths of others consist of mentions.

A constant of at most `facts.NEAR`: the paths of these do not depend on the request's limit.
"""
HALF_RARE = 6.0
"""Inverse document frequency at which the mention of an entity has half of the maximum weight."""
_TRAILS = 2
"""Ways to one chunk that are checked with the catalogue."""
_BREADTH = Breadth(at_start=40, further=12, beam=16)
_DATE = "date"
MENTIONED_IN, MENTIONS, MENTIONED_WITH = "mentioned_in", "mentions", "mentioned_with"


@dataclass(frozen=True, slots=True)
class ResultChunks:
    """The chunks of a result, best first, and how each was found.

    Args:
        linked: numbers of the entities that the question names, with weights in (0, 1].
        hops: the second hop that led to a chunk, by chunk id.
        visible: the visible chunks that were read, by id.
        facts: the relationships that search found for the question.
    """

    ids: Sequence[str]
    linked: Mapping[int, float]
    hops: Mapping[str, Hop]
    visible: Mapping[str, VisibleChunk]
    facts: Sequence[FactHit] = ()


@dataclass(frozen=True, slots=True)
class PathsOfPassages:
    """Paths by chunk id. ``failure`` is the reason why none leads over relationships."""

    steps: Mapping[str, tuple[GraphStep, ...]] = field(default_factory=dict)
    failure: str | None = None


class PassagePaths:
    """Finds the path to each chunk of a result."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    async def of(self, query: Query, graph: TenantGraph, evidence: ResultChunks) -> PathsOfPassages:
        """Return the path to each chunk that has one. A store that does not answer costs the relationships only."""
        tracing = _Tracing(graph, evidence)
        try:
            related, failure = await self._find_relations(query, graph, evidence, tracing), None
        except StoreUnavailable as error:
            _log.warning("paths_left_out", tenant_id=query.tenant_id.value, code=error.code, reason=error.message)
            related, failure = {}, f"relationships are left out of graph_path: {error.code}"
        steps = {id: tracing.steps(id, related.get(id)) for id in evidence.ids}
        return PathsOfPassages({id: path for id, path in steps.items() if path}, failure)

    async def _find_relations(
        self, query: Query, graph: TenantGraph, evidence: ResultChunks, tracing: _Tracing
    ) -> dict[str, EntityPath]:
        """Return the best visible path over relationships to each of the first chunks that names no entity of the question."""
        open_ = {
            id: chunk_ends
            for id in evidence.ids[:RELATED]
            if (chunk_ends := tracing.ends(id)) and not tracing.list_named_entities(id)
        }
        if not open_ or not tracing.starts:
            return {}
        outward = Outward(query.tenant_id, self._stores.graph, graph, tracing.starts, PathOptions(), _BREADTH)
        visibility = Shown(moment=query.moment, known=evidence.visible, passes=partial(passes, query))
        ways: dict[str, list[Trail]] = {}
        while outward.length < RELATIONSHIPS and not all(ways.get(id) for id in open_):
            await outward.extend()
            ways = {id: outward.best(_TRAILS, to=chunk_ends) for id, chunk_ends in open_.items()}
        facts = await outward.read(self._stores.facts, [trail for way in ways.values() for trail in way], visibility)
        visible = {id: [facts[trail.nodes] for trail in trails if trail.nodes in facts] for id, trails in ways.items()}
        return {id: max(paths, key=lambda path: path.score) for id, paths in visible.items() if paths}


class _Tracing:
    """The entities of the chunks and of the question, and the steps of a path."""

    def __init__(self, graph: TenantGraph, evidence: ResultChunks) -> None:
        self._graph = graph
        self._found = evidence
        weights = evidence.linked
        order = sorted(weights, key=lambda number: (-weights[number] * graph.idf[number], graph.entity(number).id))
        self.starts = tuple(graph.entity(number).id for number in order[:MAX_STARTS])
        self._own: dict[str, frozenset[str]] = {}

    def entities(self, id: str) -> frozenset[str]:
        """Return the ids of the entities that a chunk mentions."""
        if id not in self._own:
            number = self._graph.chunk_index.get(id)
            numbers = self._graph.entities_of(number).tolist() if number is not None else ()
            self._own[id] = frozenset(self._graph.entity_texts.ids[number] for number in numbers)
        return self._own[id]

    def ends(self, id: str) -> frozenset[str]:
        """Return the entities of a chunk at which a path over relationships may end. Dates connect everything."""
        texts, index = self._graph.entity_texts, self._graph.entity_index
        return frozenset(entity for entity in self.entities(id) if texts.types[texts.type_of[index[entity]]] != _DATE)

    def list_named_entities(self, id: str) -> list[int]:
        """Return the entities of the question that a chunk mentions, rarest first."""
        graph, chunk_entities = self._graph, self.entities(id)
        numbers = [number for number in self._found.linked if graph.entity_texts.ids[number] in chunk_entities]
        return sorted(numbers, key=lambda number: (-graph.idf[number], graph.entity(number).id))

    def steps(self, id: str, related: EntityPath | None) -> tuple[GraphStep, ...]:
        """Return the path to a chunk; empty if it was found by its text alone."""
        if numbers := self.list_named_entities(id):
            return self._trace_named_entities(id, numbers)
        if related is not None:
            return (*map(step_of, related.steps), self._mention(related.entities[-1], id))
        hop = self._found.hops.get(id)
        return self._hop(id, hop) if hop is not None else ()

    def _trace_named_entities(self, id: str, numbers: Sequence[int]) -> tuple[GraphStep, ...]:
        refs = {self._graph.entity(number).id: number for number in numbers}
        for fact in self._found.facts:
            ends = (fact.source, fact.target)
            start = next((end for end in ends if end.id in refs), None)
            neighbour = fact.target if start is fact.source else fact.source
            if fact.chunk_id == id and start is not None and neighbour.id not in refs and neighbour.id in self.entities(id):
                return (_fact_step(fact, forward=start is fact.source), self._mention(neighbour, id))
        ref, weight = self._graph.entity(numbers[0]), self._found.linked[numbers[0]]
        return (self._mention(ref, id, weight),)

    def _hop(self, id: str, hop: Hop) -> tuple[GraphStep, ...]:
        graph = self._graph
        through = self._found.visible.get(graph.chunk_ids[hop.link.source])
        if through is None:
            return ()
        numbers = self.list_named_entities(through.chunk.id)
        if through.chunk.document_id == self._found.visible[id].chunk.document_id:
            # A path from a document to itself says nothing, but another passage of it may mention an entity of the question.
            return (self._mention(graph.entity(numbers[0]), through.chunk.id),) if numbers else ()
        bridge, weight = graph.entity(hop.link.entity), strength(hop.link)
        start = graph.entity(numbers[0]) if numbers else None
        step = GraphStep(
            source=through.document_title if start is None else start.name,
            source_id=None if start is None else start.id,
            relation=MENTIONS if start is None else MENTIONED_WITH,
            target=bridge.name,
            target_id=bridge.id,
            weight=weight,
            chunk_id=through.chunk.id,
            document_id=through.chunk.document_id,
        )
        return (step, self._mention(bridge, id, weight))

    def _mention(self, entity: EntityRef, id: str, weight: float | None = None) -> GraphStep:
        """Return the last step of a path. Without a weight, rare names weigh more."""
        visible = self._found.visible[id]
        if weight is None:
            rarity = float(self._graph.idf[self._graph.entity_index[entity.id]])
            weight = rarity / (rarity + HALF_RARE)
        return GraphStep(
            source=entity.name,
            source_id=entity.id,
            relation=MENTIONED_IN,
            target=visible.document_title,
            weight=weight,
            chunk_id=id,
            document_id=visible.chunk.document_id,
        )


def step_of(step: Connection) -> GraphStep:
    """Return a step over a relationship."""
    if step.fact is None:
        raise AssertionError("a path over relationships has no shared mention")
    return GraphStep(
        kind="relationship",
        source=step.source.name,
        source_id=step.source.id,
        relation=step.fact.relation,
        target=step.target.name,
        target_id=step.target.id,
        fact=step.fact.fact,
        forward=step.forward,
        weight=step.weight,
        chunk_id=step.chunk_id,
        document_id=step.document_id,
    )


def _fact_step(fact: FactHit, *, forward: bool) -> GraphStep:
    return GraphStep(
        kind="relationship",
        source=fact.source.name,
        source_id=fact.source.id,
        relation=fact.relation,
        target=fact.target.name,
        target_id=fact.target.id,
        fact=fact.fact,
        forward=forward,
        weight=fact.weight,
        chunk_id=fact.chunk_id,
        document_id=fact.document_id,
    )
