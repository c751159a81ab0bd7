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

from agentic_rag_backend.domain.document import Chunk
from agentic_rag_backend.domain.graph import Extraction, name_words, normalise_name
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidScope, ModelInputRefused, ModelUnavailable, PromptTooLong
from agentic_rag_backend.knowledge.extraction.base import Extractor, Origin
from agentic_rag_backend.knowledge.extraction.model.by_model import by_rules_instead
from agentic_rag_backend.knowledge.extraction.model.inquiries import ModelExtractionOptions
from agentic_rag_backend.knowledge.extraction.model.memory import DocumentMemory
from agentic_rag_backend.knowledge.extraction.model.replies import read_reply
from agentic_rag_backend.knowledge.model_calls import INVALID, DocumentModel, ResultRecord, VersionModel
from agentic_rag_backend.language.times.periods import document_date, period_of
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue
from agentic_rag_backend.stores.graph.base import KnowledgeStore
from agentic_rag_backend.stores.graph.episodes import Episode, EpisodeEngine, EpisodeFact, EpisodeKnowledge, EpisodeScope

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
