"""Temporal extraction: each chunk is an episode, compared with what is known before it.

The engine names entities, facts, their times, and known facts that the chunk ends. As with every model, the chunk must contain
all of it (ADR 32, ADR 36). The rules read every chunk as well, as they do for `by_model`.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from weakref import WeakValueDictionary

from agentic_rag_backend.domain.document import Chunk, stable_id
from agentic_rag_backend.domain.graph import Extraction, GraphEdge, StatedFact, name_words, normalise_name
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidScope, ModelInputRefused, ModelUnavailable, PromptTooLong
from agentic_rag_backend.knowledge.extraction.base import Extractor, Origin
from agentic_rag_backend.knowledge.extraction.model.by_model import by_rules_instead
from agentic_rag_backend.knowledge.extraction.model.inquiries import ModelExtractionOptions
from agentic_rag_backend.knowledge.extraction.model.replies import read_reply
from agentic_rag_backend.knowledge.model_calls import INVALID, DocumentModel, ResultRecord, VersionModel
from agentic_rag_backend.knowledge.visible.facts import states_now
from agentic_rag_backend.language.times import document_date, end_of, period_of
from agentic_rag_backend.stores.catalogue.documents.document_catalogue import DocumentCatalogue
from agentic_rag_backend.stores.graph.base import KnowledgeStore
from agentic_rag_backend.stores.graph.episodes import (
    Episode,
    EpisodeEngine,
    EpisodeFact,
    EpisodeKnowledge,
    EpisodeScope,
    KnownEntity,
    KnownFact,
)

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


GRAPHITI = "graphiti"
_FACT_TOKENS = 2
"""Its reply writes out each fact, and is about twice as long as a reply to our own prompt."""
_IN_A_ROW = 4
"""Chunks with an unusable reply after which no other chunk is asked about."""
_OF_ENDS = 0.5
"""Confidence of the end of a fact. The passage that states the fact is shown before the passage that ends it."""
_OF_ONE_REQUEST = (INVALID, ModelInputRefused.code, PromptTooLong.code)


@dataclass(frozen=True, slots=True)
class TemporalEngine:
    """The engine and the stores that it compares with. A tenant's episodes go one at a time in a process."""

    episodes: EpisodeEngine
    graph: KnowledgeStore
    documents: DocumentCatalogue
    _turns: WeakValueDictionary[TenantId, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    def turn(self, tenant: TenantId) -> asyncio.Lock:
        """Return the lock of a tenant's episodes."""
        return self._turns.setdefault(tenant, asyncio.Lock())

    def memory(self, origin: Origin) -> DocumentMemory:
        """Return an empty memory for a document."""
        return DocumentMemory(self.graph, self.documents, origin)


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporalExtractor:
    """`Extractor` that makes an episode of each chunk.

    Args:
        rules: reads every chunk, too.
        record: replies on record, and the budget.
        origin: None: only the version can be asked for.
    """

    rules: Extractor
    model: DocumentModel
    engine: TemporalEngine
    record: ResultRecord
    options: ModelExtractionOptions
    origin: Origin | None = None

    @property
    def version(self) -> str:
        """Name of the engine, model, limits, the document's date and the rules."""
        chosen = repr((self.options, self.origin.date if self.origin is not None else ""))
        digest = hashlib.sha256(chosen.encode()).hexdigest()[:12]
        model = self.model.name or self.model.model.name
        return f"{self.engine.episodes.version}-{model}-{digest}+{self.rules.version}"

    async def extract(self, title: str, chunks: Sequence[Chunk]) -> list[Extraction]:
        """Extract from the chunks of one document, in order. A chunk for which the model fails has the rules' knowledge.

        Raises:
            InvalidScope: the origin of the chunks is not given.
            StoreUnavailable: graph or catalogue does not answer.
        """
        if self.origin is None:
            raise InvalidScope("temporal extraction compares with the graph of one tenant, and none is given")
        extractions = await self.rules.extract(title, chunks)
        reading = _Reading(self, self.origin, title)
        for number, chunk in enumerate(chunks):
            async with self.engine.turn(self.origin.tenant):
                extractions[number] = await reading.read(chunk, extractions[number])
        return extractions


class _Reading:
    """Reads the chunks of one document one after the other."""

    def __init__(self, extractor: TemporalExtractor, origin: Origin, title: str) -> None:
        self._extractor = extractor
        self._title = title
        self._date = origin.date or document_date(title, {})
        self._memory = extractor.engine.memory(origin)
        self._model = VersionModel(extractor.model, extractor.record)
        self._scope = EpisodeScope(
            tenant=origin.tenant,
            model=self._model,
            known_entities=self._memory.find_entities,
            known_facts=self._memory.facts_at,
            ontology=extractor.options.ontology,
            reply_tokens=_FACT_TOKENS * extractor.options.reply_tokens,
        )
        self._failed_in_a_row = 0
        self._gave_up = ""

    async def read(self, chunk: Chunk, by_rules: Extraction) -> Extraction:
        if self._gave_up:
            return by_rules_instead(by_rules, self._gave_up)
        self._model.failure = ""
        try:
            knowledge = await self._extractor.engine.episodes.extract(self._scope, self._build_episode(chunk))
        except ModelUnavailable as error:
            self._model.failure = self._model.failure or error.code
        if failure := self._model.failure:  # the engine may have continued without a reply
            self._failed_in_a_row += 1
            if failure not in _OF_ONE_REQUEST or self._failed_in_a_row >= _IN_A_ROW:
                self._gave_up = failure
            return by_rules_instead(by_rules, failure)
        self._failed_in_a_row = 0
        extraction = self._ground_knowledge(knowledge, chunk, by_rules)
        self._memory.remember(extraction)
        return extraction

    def _build_episode(self, chunk: Chunk) -> Episode:
        about = (self._title.strip(), *chunk.location.headings, chunk.location.header or "")
        period = period_of(self._date)
        return Episode(
            chunk_id=chunk.id,
            title=self._title,
            about=" – ".join(dict.fromkeys(text for text in about if text)),
            text=chunk.text,
            moment=None if period is None else period[0],
        )

    def _ground_knowledge(self, knowledge: EpisodeKnowledge, chunk: Chunk, by_rules: Extraction) -> Extraction:
        """Return the part of the knowledge that the chunk contains. The document's date counts as part of its title."""
        stated_keys = {_fact_key(fact.source, fact.relation, fact.target) for fact in knowledge.facts if not fact.ended}
        ended_keys = {_fact_key(fact.source, fact.relation, fact.target) for fact in knowledge.facts if fact.ended} - stated_keys
        facts = [
            fact for fact in knowledge.facts if not fact.ended or _fact_key(fact.source, fact.relation, fact.target) in ended_keys
        ]
        reply = {
            "entities": [{"name": entity.name, "type": entity.type} for entity in knowledge.entities],
            "relationships": [_reply_item(fact) for fact in facts],
        }
        options = self._extractor.options
        extraction = read_reply(reply, chunk, f"{self._title} {self._date}".strip(), by_rules, options)
        grounded = []
        for relationship in extraction.relationships:
            if _fact_key(relationship.source, relationship.relation, relationship.target) not in ended_keys:
                grounded.append(relationship)
            elif relationship.invalid_at is not None:  # an end without a time would state that the relationship still holds
                grounded.append(replace(relationship, confidence=min(relationship.confidence, _OF_ENDS)))
        rejected = extraction.rejected + len(extraction.relationships) - len(grounded)
        return replace(extraction, relationships=tuple(grounded), rejected=rejected)


def _fact_key(source: str, relation: str, target: str) -> tuple[str, str, str]:
    return normalise_name(source), "_".join(name_words(relation)), normalise_name(target)


def _reply_item(fact: EpisodeFact) -> Mapping[str, Any]:
    return {
        "source": fact.source,
        "relation": fact.relation,
        "target": fact.target,
        "valid_at": _to_text(fact.valid_at),
        "invalid_at": _to_text(fact.invalid_at),
    }


def _to_text(moment: datetime | None) -> str:
    return "" if moment is None else moment.isoformat()
