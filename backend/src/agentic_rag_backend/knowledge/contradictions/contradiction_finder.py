"""Finds contradictions within one tenant: of all entities, of one entity, or with a passage that a result or an answer uses.

What visible passages state is read entity by entity. The cost of a request is bounded: at most `MAX_CHUNKS` chunks and
`MAX_FACTS` relationships of an entity, and `CHUNKS_PER_PAGE` chunks of a page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from agentic_rag_backend.domain.contradictions import Contradiction, Kind, Side
from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import GraphEdge
from agentic_rag_backend.domain.query import EntityRef
from agentic_rag_backend.domain.tenant import Tenant
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.knowledge.contradictions.of_facts import contradictions_of_facts
from agentic_rag_backend.knowledge.contradictions.passages import PassageReadings, contradictions_in_text, statements_in
from agentic_rag_backend.knowledge.ontologies import Ontologies
from agentic_rag_backend.knowledge.relation_types import NEGATION, ExclusiveRelations
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph, first_chunks, shared_count
from agentic_rag_backend.knowledge.visible.entity_reader import named_entities, no_entity
from agentic_rag_backend.knowledge.visible.fact_reader import FactReader
from agentic_rag_backend.language.times import document_date
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue, Page
from agentic_rag_backend.stores.catalogue.pages import MAX_KEY, check_limit, decode_cursor, encode_cursor
from agentic_rag_backend.stores.graph.base import KnowledgeStore

MAX_CHUNKS = 24
"""Chunks that are read of an entity, those about it first."""
MAX_FACTS = 60
"""Relationships that are read of an entity, the heaviest ones; of exclusive types, as many again."""
CHUNKS_PER_PAGE = 600
"""Mentions of chunks that a page reads before it ends. The next page continues."""
MAX_OF_ENTITY = 50
LIKELY = 0.5
"""Confidence from which contradictions are listed."""
MAX_TOUCHED = 12
"""Entities of a passage whose other passages are compared with it, the rarest ones."""
_BATCH = 20
_LIST = "contradictions"


@dataclass(frozen=True, slots=True)
class ContradictionFilter:
    """Which contradictions are wanted: about an entity (an id or a name), of one kind, of a least confidence."""

    entity: str | None = None
    kind: Kind | None = None
    min_confidence: float = LIKELY

    def passes(self, contradiction: Contradiction) -> bool:
        """Return whether a contradiction is of the kind and the confidence."""
        return contradiction.confidence >= self.min_confidence and self.kind in (None, contradiction.kind)


@dataclass(slots=True)
class _Request:
    """One request, and the chunks that it has read. ``passes`` None: all visible chunks count."""

    tenant: Tenant
    graph: TenantGraph
    exclusive: ExclusiveRelations
    passes: Callable[[VisibleChunk], bool] | None = None
    passages: dict[str, VisibleChunk] = field(default_factory=dict)
    readings: PassageReadings = field(default_factory=PassageReadings)
    read: int = 0


class ContradictionFinder:
    """Finds contradictions within one tenant.

    Args:
        graphs: the tenants' graphs in memory.
        graph: the record of relationships.
        ontologies: say which relations are exclusive.
    """

    def __init__(
        self,
        graphs: TenantGraphs,
        graph: KnowledgeStore,
        documents: DocumentCatalogue,
        facts: FactReader,
        ontologies: Ontologies,
    ) -> None:
        self._graphs = graphs
        self._graph = graph
        self._documents = documents
        self._facts = facts
        self._ontologies = ontologies

    async def page(
        self, tenant: Tenant, criteria: ContradictionFilter | None = None, *, limit: int = 50, cursor: str | None = None
    ) -> Page[Contradiction]:
        """List contradictions entity by entity. A page may be short, or empty, and still have a next one.

        Raises:
            NotFound: no visible chunk mentions the entity.
            InvalidRequest: the limit is outside its range, or the cursor is none of this list's.
            StoreUnavailable: the graph store or the catalogue did not answer.
        """
        check_limit(limit)
        criteria = criteria or ContradictionFilter()
        begin, skipped = (0, 0) if cursor is None else _read_cursor(cursor)
        request = await self._open_request(tenant)
        numbers, entity_ids = await self._select_entities(request, criteria)
        keys = {number: int(request.graph.entity_keys[number]) for number in numbers}
        order = [number for number in numbers if keys[number] >= begin]
        items: list[Contradiction] = []
        for offset in range(0, len(order), _BATCH):
            batch = order[offset : offset + _BATCH]
            by_entity = await self._of_entities(request, batch)
            for number in batch:
                contradictions = [
                    contradiction
                    for contradiction in by_entity[number]
                    if criteria.passes(contradiction) and _is_about(contradiction, entity_ids)
                ]
                start = skipped if keys[number] == begin else 0
                for position, contradiction in enumerate(contradictions[start:], start=start):
                    if len(items) == limit:
                        return Page(tuple(items), encode_cursor(_LIST, (keys[number], position)))
                    items.append(contradiction)
            following = order[offset + _BATCH : offset + _BATCH + 1]
            if request.read >= CHUNKS_PER_PAGE and following:
                return Page(tuple(items), encode_cursor(_LIST, (keys[following[0]], 0)))
        return Page(tuple(items))

    async def touching(
        self,
        tenant: Tenant,
        chunk_ids: Collection[str],
        *,
        passes: Callable[[VisibleChunk], bool] | None = None,
        min_confidence: float = LIKELY,
    ) -> list[Contradiction]:
        """Return the contradictions of which one side is in one of the chunks, the likeliest first.

        Args:
            passes: a passage that does not pass counts as hidden.
        """
        request = await self._open_request(tenant, passes)
        graph = request.graph
        numbers: dict[int, None] = {}
        for id in chunk_ids:
            chunk = graph.chunk_index.get(id)
            if chunk is not None:
                entities = graph.entities_of(chunk)
                several = entities[graph.document_frequency[entities] > 1]
                order = np.lexsort((graph.entity_keys[several], graph.document_frequency[several]))
                numbers |= dict.fromkeys(several[order][:MAX_TOUCHED].tolist())
        by_entity = await self._of_entities(request, list(numbers), preferred_chunks=chunk_ids)
        by_id = {contradiction.id: contradiction for contradictions in by_entity.values() for contradiction in contradictions}
        sides = set(chunk_ids)
        likely = [
            contradiction
            for contradiction in by_id.values()
            if contradiction.confidence >= min_confidence and sides & {contradiction.a.chunk_id, contradiction.b.chunk_id}
        ]
        return sorted(likely, key=lambda contradiction: (-contradiction.confidence, contradiction.id))

    async def _open_request(self, tenant: Tenant, passes: Callable[[VisibleChunk], bool] | None = None) -> _Request:
        graph = await self._graphs.graph(tenant)
        ontology = (await self._ontologies.of(tenant.id)).ontology
        return _Request(tenant, graph, ExclusiveRelations.of(ontology), passes)

    async def _select_entities(self, request: _Request, criteria: ContradictionFilter) -> tuple[list[int], frozenset[str] | None]:
        """Return the entities that contradictions may be about, in the order of the list, and the ids that were asked for."""
        graph = request.graph
        if criteria.entity is None:
            several = np.flatnonzero(graph.document_frequency > 1)
            return several[np.argsort(graph.entity_keys[several], kind="stable")].tolist(), None
        start_entities = named_entities(graph, criteria.entity)
        if not start_entities:
            raise no_entity(criteria.entity)
        ids = [graph.entity(number).id for number in start_entities]
        edges = await self._graph.edges_at(request.tenant.id, ids, limit=MAX_FACTS)
        around = {
            id
            for entity_edges in edges.values()
            for edge in entity_edges
            if edge.relation.startswith(NEGATION) or request.exclusive.ends(edge.relation)
            for id in (edge.source_id, edge.target_id)
        }
        numbers = {*start_entities, *(number for id in around if (number := graph.find_mentioned_number(id)) is not None)}
        return sorted(numbers, key=lambda number: int(graph.entity_keys[number])), frozenset(ids)

    async def _of_entities(
        self, request: _Request, numbers: Sequence[int], *, preferred_chunks: Collection[str] = ()
    ) -> Mapping[int, list[Contradiction]]:
        """Return the contradictions about each entity, the likeliest first."""
        if not numbers:
            return {}
        graph = request.graph
        refs = {number: graph.entity(number) for number in numbers}
        chunks = {number: _select_chunks(graph, number, preferred_chunks) for number in numbers}
        if preferred_chunks:
            await self._read_passages(request, list(preferred_chunks))
            chunks = await asyncio.to_thread(_with_values, request, chunks, preferred_chunks)
        request.read += sum(map(len, chunks.values()))
        await self._read_passages(request, [id for contradictions in chunks.values() for id in contradictions])
        of_facts = await self._of_facts(request, refs)
        of_values = await asyncio.to_thread(_of_values, request, refs, chunks)
        by_entity: dict[int, list[Contradiction]] = {}
        for number, ref in refs.items():
            facts = of_facts.get(ref.id, [])
            stated_pairs = {
                contradiction.kind: {frozenset((contradiction.a.place, contradiction.b.place))} for contradiction in facts
            }
            values = [
                contradiction
                for contradiction in of_values[number]
                if frozenset((contradiction.a.place, contradiction.b.place)) not in stated_pairs.get(contradiction.kind, ())
            ]
            contradictions = sorted((*facts, *values), key=lambda contradiction: (-contradiction.confidence, contradiction.id))
            by_entity[number] = contradictions[:MAX_OF_ENTITY]
        return by_entity

    async def _of_facts(self, request: _Request, refs: Mapping[int, EntityRef]) -> Mapping[str, list[Contradiction]]:
        """Return the contradictions between relationships by the id of the entity that they are about."""
        edges = await self._read_edges(request, [ref.id for ref in refs.values()])
        facts = await self._facts.read(
            request.tenant.id, request.graph, edges, moment=None, known=request.passages, passes=request.passes
        )

        def near(entity: EntityRef, another: EntityRef) -> bool:
            numbers = request.graph.find_mentioned_number(entity.id), request.graph.find_mentioned_number(another.id)
            return None not in numbers and shared_count(request.graph, *numbers) > 0  # type: ignore[arg-type]

        contradictions = list(contradictions_of_facts(facts.values(), request.exclusive, near))
        await self._read_passages(
            request, [side.chunk_id for contradiction in contradictions for side in (contradiction.a, contradiction.b)]
        )
        by_entity: dict[str, list[Contradiction]] = {}
        for contradiction in contradictions:
            a, b = _with_document(request, contradiction.a), _with_document(request, contradiction.b)
            by_entity.setdefault(contradiction.about.id if contradiction.about else "", []).append(
                replace(contradiction, a=a, b=b)
            )
        return by_entity

    async def _read_edges(self, request: _Request, ids: Sequence[str]) -> list[GraphEdge]:
        """Return the relationships of entities that may contradict each other: exclusive ones, denials, and what they deny."""
        tenant, exclusive = request.tenant.id, request.exclusive
        edge_maps = [
            await self._graph.edges_at(tenant, ids, limit=MAX_FACTS, direction="out"),
            await self._graph.edges_at(tenant, ids, limit=MAX_FACTS, direction="out", relations=exclusive.names("source")),
            await self._graph.edges_at(tenant, ids, limit=MAX_FACTS, direction="in", relations=exclusive.names("target")),
        ]
        edges = {edge.id: edge for edges_of in edge_maps for entity_edges in edges_of.values() for edge in entity_edges}
        denied = {_denied_fact(edge) for edge in edges.values() if edge.relation.startswith(NEGATION)}
        return [edge for edge in edges.values() if exclusive.ends(edge.relation) or _denied_fact(edge) in denied]

    async def _read_passages(self, request: _Request, ids: Sequence[str]) -> None:
        unread = sorted(set(ids) - request.passages.keys())
        if unread:
            chunks = await self._documents.hydrate(request.tenant.id, unread)
            request.passages |= {
                id: passage for id, passage in chunks.items() if request.passes is None or request.passes(passage)
            }


def _denied_fact(edge: GraphEdge) -> tuple[str, str, str]:
    return edge.source_id, edge.relation.removeprefix(NEGATION), edge.target_id


def _select_chunks(graph: TenantGraph, number: int, preferred_ids: Collection[str]) -> Sequence[str]:
    """Return the chunks of an entity that are read: those among ``first`` that mention it, then those about it."""
    mentioning = {int(chunk) for chunk in graph.links.of(number).tolist()} if preferred_ids else set()
    preferred = [id for id in preferred_ids if graph.chunk_index.get(id) in mentioning]
    return list(dict.fromkeys((*preferred, *first_chunks(graph, number, limit=MAX_CHUNKS))))[:MAX_CHUNKS]


def _with_values(
    request: _Request, chunks: Mapping[int, Sequence[str]], preferred_ids: Collection[str]
) -> dict[int, Sequence[str]]:
    """Return the chunks of the entities of which ``first`` give a date or a number. Others are not read."""
    chosen: dict[int, Sequence[str]] = {}
    for number, chunk_ids in chunks.items():
        passages = [request.passages[id] for id in chunk_ids if id in preferred_ids and id in request.passages]
        value_statements = statements_in(request.graph.names_of(number), passages, request.readings)
        chosen[number] = chunk_ids if value_statements else ()
    return chosen


def _of_values(
    request: _Request, refs: Mapping[int, EntityRef], chunks: Mapping[int, Sequence[str]]
) -> Mapping[int, list[Contradiction]]:
    by_entity = {}
    for number, ref in refs.items():
        passages = [request.passages[id] for id in chunks[number] if id in request.passages]
        names = request.graph.names_of(number)
        by_entity[number] = contradictions_in_text(ref, names, passages, request.readings)
    return by_entity


def _with_document(request: _Request, side: Side) -> Side:
    passage = request.passages.get(side.chunk_id)
    if passage is None:
        return side
    date = document_date(passage.document_title, passage.metadata)
    return replace(side, title=passage.document_title, date=date)


def _is_about(contradiction: Contradiction, entity_ids: frozenset[str] | None) -> bool:
    return entity_ids is None or bool(entity_ids & contradiction.entity_ids())


def _read_cursor(cursor: str) -> tuple[int, int]:
    key, skipped = decode_cursor(_LIST, cursor, int, int, largest=MAX_KEY)
    if not 0 <= key < 2**64 or not 0 <= skipped <= MAX_OF_ENTITY:
        raise InvalidRequest("the cursor does not come from this list")
    return key, skipped
