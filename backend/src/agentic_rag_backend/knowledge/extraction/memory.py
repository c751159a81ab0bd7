"""What is known before a passage: earlier passages of its document, and the visible facts of other documents of its tenant."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from agentic_rag_backend.domain.document import stable_id
from agentic_rag_backend.domain.graph import Extraction, GraphEdge, StatedFact, normalise_name
from agentic_rag_backend.knowledge.extraction.base import Origin
from agentic_rag_backend.knowledge.visible.support import states_now
from agentic_rag_backend.language.periods import end_of
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue
from agentic_rag_backend.stores.graph.base import KnowledgeStore
from agentic_rag_backend.stores.graph.episodes import KnownEntity, KnownFact

_NAMESAKES = 5
"""Entities of one name that are offered."""
_FACTS_PER_ENTITY = 10


class DocumentMemory:
    """What is known before an episode of one document.

    Facts of hidden versions, and of other versions of the document itself, are not known: the result of a passage must not
    depend on text that readers cannot see, or that the passage replaces.
    """

    def __init__(self, graph: KnowledgeStore, documents: DocumentCatalogue, origin: Origin) -> None:
        self._graph = graph
        self._documents = documents
        self._origin = origin
        self._in_graph: dict[str, list[KnownEntity]] = {}
        self._in_document: dict[str, KnownEntity] = {}
        self._facts: list[KnownFact] = []

    async def named(self, names: Sequence[str]) -> list[KnownEntity]:
        """Return the entities with one of these names, under the name as it was asked for."""
        keys = {normalise_name(name): name for name in names}
        await self._look_up([key for key in keys if key and key not in self._in_graph])
        return [
            KnownEntity(each.id, name, each.type)
            for key, name in keys.items()
            for each in self._in_graph.get(key) or ([self._in_document[key]] if key in self._in_document else [])
        ]

    async def facts_at(self, entity_ids: Sequence[str]) -> list[KnownFact]:
        """Return facts that begin or end at one of these entities."""
        wanted = set(entity_ids)
        found = [each for each in self._facts if wanted & {each.source_id, each.target_id}]
        stored = sorted({each.id for known in self._in_graph.values() for each in known} & wanted)
        return found + (await self._visible(stored) if stored else [])

    def remember(self, extraction: Extraction) -> None:
        """Add the knowledge of a passage, for the passages after it."""
        for mention in extraction.mentions:
            self._entity(mention.name, mention.type)
        for number, each in enumerate(extraction.relationships):
            self._facts.append(
                KnownFact(
                    id=stable_id("episode-fact", extraction.chunk_id, number),
                    source_id=self._entity(each.source, each.source_type),
                    target_id=self._entity(each.target, each.target_type),
                    relation=each.relation,
                    fact=each.fact,
                    valid_at=None if each.valid_at is None else datetime.fromisoformat(each.valid_at),
                    invalid_at=None if each.invalid_at is None else datetime.fromisoformat(each.invalid_at),
                )
            )

    def _entity(self, name: str, type_: str) -> str:
        key = normalise_name(name)
        if stored := self._in_graph.get(key):
            return stored[0].id
        return self._in_document.setdefault(key, KnownEntity(stable_id("episode-entity", key), name, type_)).id

    async def _look_up(self, keys: Sequence[str]) -> None:
        if keys:
            found = await self._graph.find_entities(self._origin.tenant, keys)
            for key in keys:
                self._in_graph[key] = [KnownEntity(each.id, each.name, each.type) for each in found.get(key, ())[:_NAMESAKES]]

    async def _visible(self, entity_ids: Sequence[str]) -> list[KnownFact]:
        tenant = self._origin.tenant
        at = await self._graph.edges_at(tenant, entity_ids, limit=_FACTS_PER_ENTITY)
        edges = {edge.id: edge for found in at.values() for edge in found}
        if not edges:
            return []
        stated = await self._graph.fact_sentences(tenant, list(edges))
        others = [each for each in stated if each.support.document_id != self._origin.document_id]
        passages = await self._documents.hydrate(tenant, sorted({each.support.chunk_id for each in others}))
        visible: dict[str, list[StatedFact]] = {}
        for each in others:
            if states_now(passages, each.support):
                visible.setdefault(each.relationship_id, []).append(each)
        return [_known(edges[id], found) for id, found in visible.items()]


def _known(edge: GraphEdge, stated: Sequence[StatedFact]) -> KnownFact:
    return KnownFact(
        id=edge.id,
        source_id=edge.source_id,
        target_id=edge.target_id,
        relation=edge.relation,
        fact=stated[0].fact,
        valid_at=min((each.valid_at for each in stated if each.valid_at is not None), default=None),
        invalid_at=end_of([(each.valid_at, each.invalid_at) for each in stated]),
    )
