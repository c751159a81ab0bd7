"""What is known before a passage: earlier passages of its document, and the visible facts of other documents of its tenant."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from agentic_rag_backend.domain.document import stable_id
from agentic_rag_backend.domain.graph import Extraction, GraphEdge, StatedFact, normalise_name
from agentic_rag_backend.knowledge.extraction.base import Origin
from agentic_rag_backend.knowledge.visible.support import states_now
from agentic_rag_backend.language.times.periods import end_of
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

    async def find_entities(self, names: Sequence[str]) -> list[KnownEntity]:
        """Return the entities with one of these names, under the name as it was asked for."""
        keys = {normalise_name(name): name for name in names}
        await self._look_up([key for key in keys if key and key not in self._in_graph])
        return [
            KnownEntity(entity.id, name, entity.type)
            for key, name in keys.items()
            for entity in self._in_graph.get(key) or ([self._in_document[key]] if key in self._in_document else [])
        ]

    async def facts_at(self, entity_ids: Sequence[str]) -> list[KnownFact]:
        """Return facts that begin or end at one of these entities."""
        ids = set(entity_ids)
        facts = [fact for fact in self._facts if ids & {fact.source_id, fact.target_id}]
        stored = sorted({fact.id for entities in self._in_graph.values() for fact in entities} & ids)
        return facts + (await self._read_visible(stored) if stored else [])

    def remember(self, extraction: Extraction) -> None:
        """Add the knowledge of a passage, for the passages after it."""
        for mention in extraction.mentions:
            self._entity_id(mention.name, mention.type)
        for number, relationship in enumerate(extraction.relationships):
            self._facts.append(
                KnownFact(
                    id=stable_id("episode-fact", extraction.chunk_id, number),
                    source_id=self._entity_id(relationship.source, relationship.source_type),
                    target_id=self._entity_id(relationship.target, relationship.target_type),
                    relation=relationship.relation,
                    fact=relationship.fact,
                    valid_at=None if relationship.valid_at is None else datetime.fromisoformat(relationship.valid_at),
                    invalid_at=None if relationship.invalid_at is None else datetime.fromisoformat(relationship.invalid_at),
                )
            )

    def _entity_id(self, name: str, type_: str) -> str:
        key = normalise_name(name)
        if stored := self._in_graph.get(key):
            return stored[0].id
        return self._in_document.setdefault(key, KnownEntity(stable_id("episode-entity", key), name, type_)).id

    async def _look_up(self, keys: Sequence[str]) -> None:
        if keys:
            matches = await self._graph.find_entities(self._origin.tenant, keys)
            for key in keys:
                self._in_graph[key] = [
                    KnownEntity(entity.id, entity.name, entity.type) for entity in matches.get(key, ())[:_NAMESAKES]
                ]

    async def _read_visible(self, entity_ids: Sequence[str]) -> list[KnownFact]:
        tenant = self._origin.tenant
        at = await self._graph.edges_at(tenant, entity_ids, limit=_FACTS_PER_ENTITY)
        edges = {edge.id: edge for sentences in at.values() for edge in sentences}
        if not edges:
            return []
        all_sentences = await self._graph.fact_sentences(tenant, list(edges))
        foreign_facts = [sentence for sentence in all_sentences if sentence.support.document_id != self._origin.document_id]
        passages = await self._documents.hydrate(tenant, sorted({sentence.support.chunk_id for sentence in foreign_facts}))
        visible: dict[str, list[StatedFact]] = {}
        for sentence in foreign_facts:
            if states_now(passages, sentence.support):
                visible.setdefault(sentence.relationship_id, []).append(sentence)
        return [_known_fact(edges[id], sentences) for id, sentences in visible.items()]


def _known_fact(edge: GraphEdge, sentences: Sequence[StatedFact]) -> KnownFact:
    return KnownFact(
        id=edge.id,
        source_id=edge.source_id,
        target_id=edge.target_id,
        relation=edge.relation,
        fact=sentences[0].fact,
        valid_at=min((sentence.valid_at for sentence in sentences if sentence.valid_at is not None), default=None),
        invalid_at=end_of([(sentence.valid_at, sentence.invalid_at) for sentence in sentences]),
    )
