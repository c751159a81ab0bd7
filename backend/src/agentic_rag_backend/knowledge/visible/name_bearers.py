"""The bearers of a name that several entities have, with what visible documents say about each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import reduce
from operator import or_

from agentic_rag_backend.domain.graph import NameUse, normalise_name
from agentic_rag_backend.domain.query import EntityRef
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.knowledge.tenant_graph.name_search import find_named_entities
from agentic_rag_backend.knowledge.tenant_graph.neighbours import first_chunks
from agentic_rag_backend.language.descriptions import Description
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue
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

    ``documents`` are ids of documents that mean it by the name, in any version. ``passages`` are the texts of some chunks that
    mention it.
    """

    number: int
    entity: EntityRef
    description: Description
    documents: frozenset[str]
    passages: tuple[str, ...] = ()

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
            texts = tuple(passages[id].chunk.text for id in chunks[number] if id in passages)
            return NameBearer(number, entity, described_by(name_uses, entity.id, versions), documents, texts)

        return {name: tuple(bearer(name, number) for number in numbers) for name, numbers in chosen.items()}
