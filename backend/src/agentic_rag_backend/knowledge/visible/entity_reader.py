"""Entities as a tenant may see them now: lists, one entity with its passages and facts, and its neighbourhood.

Names and mentions come from the tenant's graph in memory, which holds visible knowledge only. Relationships come from the graph
store, the heaviest first, and are checked with the catalogue when they are read. The cost does not grow with the number of an
entity's relationships or chunks.

The bearers of a name that several entities have, with what visible documents say about each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from operator import or_

import numpy as np

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import EntityRef, GraphEdge, NameUse, normalise_name, type_key
from agentic_rag_backend.domain.tenant import Tenant, TenantId
from agentic_rag_backend.errors import InvalidRequest, NotFound
from agentic_rag_backend.knowledge.relation_types import stored_names
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph, first_chunks
from agentic_rag_backend.knowledge.tenant_graph.linking import NameMatch, find_named_entities, search_names
from agentic_rag_backend.knowledge.visible.fact_reader import FactReader
from agentic_rag_backend.knowledge.visible.facts import VisibleFact, edge_of
from agentic_rag_backend.language.descriptions import Description
from agentic_rag_backend.stores.catalogue.documents.document_catalogue import DocumentCatalogue
from agentic_rag_backend.stores.catalogue.pages import MAX_KEY, Page, check_limit, decode_cursor, encode_cursor
from agentic_rag_backend.stores.graph.base import KnowledgeStore

MAX_BEARERS = 10
"""Entities of one name that are read: those with most mentions."""
MAX_USES = 200
"""Documents that are read of each spelling of a bearer's name."""
_PASSAGES = 20
"""Passages of a bearer whose documents describe it."""


@dataclass(frozen=True, slots=True)
class NameBearer:
    """An entity that shares its name.

    ``documents`` are ids of documents that mean it by the name, in any version.
    """

    number: int
    entity: EntityRef
    description: Description
    documents: frozenset[str]

    @property
    def known(self) -> bool:
        """Whether documents say who it is. One entity of the name stands for documents that may mean any bearer."""
        return self.description.tells_kind


def namesakes(graph: TenantGraph, name: str) -> tuple[int, ...]:
    """Return the entities that share a normalised name, not only as an alias, those with most mentions first; () if only one."""
    entities = find_named_entities(graph, name)
    if len(entities) < 2:  # most names
        return ()
    numbers = [number for number in entities if normalise_name(graph.entity(number).name) == name]
    return tuple(sorted(numbers, key=lambda number: (-graph.document_frequency[number], graph.entity(number).id)))


def described_by(uses: Iterable[NameUse], entity_id: str, versions: Set[tuple[str, int]]) -> Description:
    """Return the description that the document ``versions`` (id and version) give an entity."""
    relevant = (use for use in uses if use.entity_id == entity_id and (use.document_id, use.version) in versions)
    return reduce(or_, (Description.parse(use.description) for use in relevant), Description())


class BearerReader:
    """Reads the bearers of names within one tenant."""

    def __init__(self, graph: KnowledgeStore, documents: DocumentCatalogue) -> None:
        self._graph = graph
        self._documents = documents

    async def read(
        self, tenant: TenantId, graph: TenantGraph, names: Mapping[str, Sequence[int]]
    ) -> dict[str, tuple[NameBearer, ...]]:
        """Return the bearers of normalised names, given the entities of each name.

        Raises:
            StoreUnavailable: the graph store or the catalogue did not answer.
        """
        if not names:
            return {}
        uses = await self._graph.name_uses(tenant, sorted(names), "main", limit=MAX_USES)
        chosen = {name: numbers[:MAX_BEARERS] for name, numbers in names.items()}
        chunks = {number: first_chunks(graph, number, limit=_PASSAGES) for numbers in chosen.values() for number in numbers}
        ids = sorted({id for numbers in chunks.values() for id in numbers})
        passages = await self._documents.hydrate(tenant, ids)
        versions = {(numbers.chunk.document_id, numbers.chunk.version) for numbers in passages.values()}

        def bearer(name: str, number: int) -> NameBearer:
            entity, name_uses = graph.entity(number), uses.get(name, ())
            documents = frozenset(use.document_id for use in name_uses if use.entity_id == entity.id)
            return NameBearer(number, entity, described_by(name_uses, entity.id, versions), documents)

        return {name: tuple(bearer(name, number) for number in numbers) for name, numbers in chosen.items()}


MAX_SHOWN = 100
"""Chunks, and relationships, of one entity."""
_LIST = "entities"
_OVERFETCH = 2
"""Relationships that are read for each one that is shown. Hidden versions state some of them."""


@dataclass(frozen=True, slots=True)
class ListedEntity:
    """An entity of a list, with the number of visible chunks that mention it. ``match`` is None without a search."""

    entity: EntityRef
    mention_count: int
    match: NameMatch | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleEntity:
    """An entity with its names in visible documents, and its first chunks and heaviest relationships.

    ``chunks`` begins with those about the entity. ``more_relationships`` if it has others than ``relationships``. ``description``
    says who or what it is, as far as the documents of ``chunks`` do: "oceanographer; female". ``same_name`` are other entities of
    the same name.
    """

    entity: EntityRef
    names: tuple[str, ...]
    mention_count: int
    chunks: tuple[VisibleChunk, ...]
    relationships: tuple[VisibleFact, ...]
    more_relationships: bool = False
    description: str = ""
    same_name: tuple[EntityRef, ...] = ()


@dataclass(frozen=True, slots=True)
class ChunkKnowledge:
    """The entities that a chunk mentions, rarest first, and the relationships that it states, by decreasing weight."""

    entities: tuple[EntityRef, ...] = ()
    relationships: tuple[VisibleFact, ...] = ()


class EntityReader:
    """Reads entities within one tenant.

    Args:
        graphs: the tenants' graphs in memory.
        graph: the record of relationships.
    """

    def __init__(self, graphs: TenantGraphs, graph: KnowledgeStore, documents: DocumentCatalogue, facts: FactReader) -> None:
        self._graphs = graphs
        self._graph = graph
        self._documents = documents
        self._facts = facts

    async def page(
        self, tenant: Tenant, *, name: str | None = None, type: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page[ListedEntity]:
        """List entities by decreasing number of mentions.

        Args:
            name: only entities with a name or alias that has this text at the beginning of a word. Entities with exactly this
                name come first, then those whose name begins with it.
            type: only entities of this type, in any case and in either English spelling.
            limit: 1–1,000.

        Raises:
            InvalidRequest: the limit is outside its range, or the cursor is none of this list's.
            StoreUnavailable: the graph store or the catalogue did not answer.
        """
        check_limit(limit)
        after = None if cursor is None else _read_cursor(cursor)
        graph = await self._graphs.graph(tenant)
        # In a thread: a search compares every name of the tenant.
        return await asyncio.to_thread(_build_page, graph, name, type, limit, after)

    async def resolve_entities(self, tenant: Tenant, name_or_id: str) -> list[EntityRef]:
        """Return the entity of this id, or the entities of this name or alias, those with most mentions first."""
        graph = await self._graphs.graph(tenant)
        return [graph.entity(number) for number in named_entities(graph, name_or_id)]

    async def entity(
        self, tenant: Tenant, id: str, *, limit: int = 20, relations: Sequence[str] | None = None, as_of: datetime | None = None
    ) -> VisibleEntity:
        """Return an entity with at most ``limit`` (1–100) chunks and as many relationships.

        Args:
            relations: only relationships of these types, in any case.
            as_of: only relationships that held at this time; None: now.

        Raises:
            NotFound: no visible chunk mentions an entity of this id.
            StoreUnavailable: the graph store or the catalogue did not answer.
        """
        graph = await self._graphs.graph(tenant)
        number = graph.find_mentioned_number(id)
        if number is None:
            raise no_entity(id)
        limit = min(limit, MAX_SHOWN)
        chunk_ids = first_chunks(graph, number, limit=limit)
        read_limit = limit * _OVERFETCH
        names = None if relations is None else stored_names(relations)
        passages, edges = await asyncio.gather(
            self._documents.hydrate(tenant.id, chunk_ids),
            self._graph.edges_at(tenant.id, [id], limit=read_limit, relations=names),
        )
        entity_edges = edges.get(id, [])
        facts = await self._facts.read(tenant.id, graph, entity_edges, moment=as_of or datetime.now(UTC))
        ordered = sorted(facts.values(), key=lambda fact: (-fact.weight, fact.id))
        visible_chunks = [passages[chunk] for chunk in chunk_ids if chunk in passages]
        entity = graph.entity(number)
        return VisibleEntity(
            entity=entity,
            names=tuple(graph.names_of(number)),
            mention_count=int(graph.document_frequency[number]),
            chunks=tuple(visible_chunks),
            relationships=tuple(ordered[:limit]),
            more_relationships=len(ordered) > limit or (len(entity_edges) == read_limit and tenant.id.access is None),
            description=await self._read_description(tenant.id, entity, visible_chunks),
            same_name=tuple(graph.entity(namesake) for namesake in find_named_entities(graph, entity.name) if namesake != number),
        )

    async def _read_description(self, tenant: TenantId, entity: EntityRef, chunks: Sequence[VisibleChunk]) -> str:
        """Return what the visible documents of some chunks say about who bears the entity's name."""
        name = normalise_name(entity.name)
        uses = (await self._graph.name_uses(tenant, [name], "described", limit=MAX_SHOWN)).get(name, [])
        versions = {(chunk.chunk.document_id, chunk.chunk.version) for chunk in chunks}
        return described_by(uses, entity.id, versions).written

    async def of_chunk(self, tenant: Tenant, passage: VisibleChunk) -> ChunkKnowledge:
        """Return the entities that a visible chunk mentions, and at most 100 relationships that it states.

        Raises:
            StoreUnavailable: the graph store or the catalogue did not answer.
        """
        graph = await self._graphs.graph(tenant)
        chunk = graph.chunk_index.get(passage.chunk.id)
        if chunk is None:
            return ChunkKnowledge()
        numbers = graph.entities_of(chunk)
        order = np.lexsort((graph.entity_keys[numbers], graph.document_frequency[numbers]))
        entities = [graph.entity(number) for number in numbers[order].tolist()]
        # Both ends of a relationship are entities of the chunk that states it.
        related = await self._graph.relationships_of(tenant.id, [entity.id for entity in entities])
        edges: list[GraphEdge] = [
            edge_of(relationship)
            for relationship in related
            if any(
                support.chunk_id == passage.chunk.id and support.version == passage.chunk.version
                for support in relationship.supports
            )
        ]
        facts = await self._facts.read(tenant.id, graph, edges[:MAX_SHOWN], moment=datetime.now(UTC))
        return ChunkKnowledge(tuple(entities), tuple(sorted(facts.values(), key=lambda fact: (-fact.weight, fact.id))))


def named_entities(graph: TenantGraph, name_or_id: str) -> list[int]:
    """Return the entity of this id, or the entities of this name or alias, those with most mentions first."""
    number = graph.find_mentioned_number(name_or_id)
    if number is not None:
        return [number]
    return sorted(
        find_named_entities(graph, name_or_id), key=lambda entity: (-graph.document_frequency[entity], graph.entity(entity).id)
    )


def no_entity(name_or_id: str) -> NotFound:
    """Return the error for an entity that does not exist or that the tenant may not see."""
    return NotFound(f"there is no entity {name_or_id[:64]!r}")


def _read_cursor(cursor: str) -> tuple[int, int, int]:
    match, mentions, key = decode_cursor(_LIST, cursor, int, int, int, largest=MAX_KEY)
    return match, mentions, key


def _build_page(
    graph: TenantGraph, name: str | None, type: str | None, limit: int, after: tuple[int, int, int] | None
) -> Page[ListedEntity]:
    """Return the entities after a position, which is match, number of mentions, and key."""
    matches = {} if name is None else search_names(graph, name)
    numbers = np.flatnonzero(graph.document_frequency > 0) if name is None else np.fromiter(matches, dtype=np.int64)
    if type is not None:
        texts = graph.entity_texts
        wanted_type = type_key(type)
        matching_types = [number for number, type_name in enumerate(texts.types) if type_key(type_name) == wanted_type]
        numbers = numbers[np.isin(texts.type_of[numbers], matching_types)]
    ranks = (
        np.fromiter((matches[entity] for entity in numbers.tolist()), dtype=np.int64)
        if matches
        else np.zeros(len(numbers), np.int64)
    )
    mentions, keys = graph.document_frequency[numbers], graph.entity_keys[numbers]
    if after is not None:
        rank, count, key = after
        if not 0 <= key < 2**64:
            raise InvalidRequest("the cursor does not come from this list")
        behind = (ranks == rank) & ((mentions < count) | ((mentions == count) & (keys > np.uint64(key))))
        is_after = (ranks > rank) | behind
        numbers, ranks, mentions, keys = numbers[is_after], ranks[is_after], mentions[is_after], keys[is_after]
    order = np.lexsort((keys, -mentions, ranks))
    page = order[:limit]
    items = tuple(
        ListedEntity(graph.entity(number), int(graph.document_frequency[number]), matches.get(number))
        for number in numbers[page].tolist()
    )
    if len(order) <= limit:
        return Page(items)
    last_place = page[-1]
    return Page(items, encode_cursor(_LIST, (int(ranks[last_place]), int(mentions[last_place]), int(keys[last_place]))))
