"""Fetch the sentences behind communities: a bounded number of relationships each, several communities at a time."""

from __future__ import annotations

import asyncio
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from agentic_rag_backend.domain.graph import CommunitySummary, Support, normalise_name, padded_words
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.visible.facts import supports_now
from agentic_rag_backend.knowledge.visible.summaries import contains_label
from agentic_rag_backend.language.sentences import split_sentences
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue
from agentic_rag_backend.stores.graph.base import KnowledgeStore
from agentic_rag_backend.themes.communities.detection.community_plan import PlannedCommunity
from agentic_rag_backend.themes.communities.detection.knowledge import VisibleKnowledge, list_theme_documents
from agentic_rag_backend.themes.communities.summaries.community_evidence import (
    CentralEntity,
    Fact,
    PassagePhrases,
    SummaryEvidence,
    ThemeDocument,
    central_entities,
    merge_facts,
    telling_facts,
)
from agentic_rag_backend.themes.communities.summaries.keywords import spread
from agentic_rag_backend.themes.communities.summaries.theme_documents import select_opening

_ENTITIES = 12
_CANDIDATES = 24
"""Members examined to find these. Members without a passage that contains their name are left out."""
_MENTIONS = 200
"""Maximum number of an entity's mentions that are examined for passages of different documents."""
_RELATIONSHIPS = 60
_FACTS = 24
_PASSAGES = 3
_TEXTS = 60
"""Passages of a community whose noun phrases are read."""


class EvidenceGatherer:
    """Builds `SummaryEvidence` for communities of one reading of the graph."""

    def __init__(
        self,
        tenant: TenantId,
        *,
        graph: KnowledgeStore,
        documents: DocumentCatalogue,
        knowledge: VisibleKnowledge,
        versions: Mapping[str, int],
        weights: Mapping[tuple[str, str], float],
    ) -> None:
        self._tenant = tenant
        self._graph = graph
        self._documents = documents
        self._knowledge = knowledge
        self._versions = versions
        self._weights = weights
        self._phrases: dict[str, PassagePhrases] = {}
        self._openings: dict[str, Fact | None] = {}

    async def gather_evidence(
        self, communities: Sequence[PlannedCommunity], children: Mapping[str, Sequence[CommunitySummary]]
    ) -> list[SummaryEvidence]:
        """Return the evidence of each community; ``children`` are the summaries of its parts, by its id."""
        # In a thread: a community may have as many relationships as the tenant.
        central = await asyncio.to_thread(lambda: [self._select_central(community) for community in communities])
        ranked_relationships = await asyncio.to_thread(lambda: list(map(self._rank_relationships, communities, central)))
        facts = await self._read_facts(communities, ranked_relationships)
        facts |= await self._passage_facts([community for community in communities if not facts[community.id]])
        telling, first_facts = await asyncio.to_thread(_choose_facts, communities, central, facts)
        named_entities = await self._select_named_entities(communities, central, first_facts)
        texts = await self._read_phrases(first_facts)
        documents = await self._read_documents(communities)
        return [
            SummaryEvidence(
                fingerprint=community.fingerprint,
                entity_count=len(community.members),
                entities=named_entities[community.id],
                facts=telling[community.id],
                further=tuple(first_facts[community.id][len(telling[community.id]) :]),
                texts=texts[community.id],
                documents=documents[community.id],
                passages=sum(edge.passages for edge in community.inside),
                children=tuple(children.get(community.id, ())),
            )
            for community in communities
        ]

    async def _select_named_entities(
        self,
        communities: Sequence[PlannedCommunity],
        central: Sequence[Sequence[CentralEntity]],
        facts: Mapping[str, Sequence[Fact]],
    ) -> dict[str, tuple[CentralEntity, ...]]:
        """Return each community's most central members whose names occur in a passage that the fingerprint covers.

        So a reused summary still has that passage. Other passages that mention the members follow, to support the name if that
        passage goes.
        """
        sources_of = await asyncio.to_thread(_sources_by_name, communities, central, facts)
        elsewhere = {
            (community.id, entity.id): self._passages_about(community, entity, facts[community.id])
            for community, entities in zip(communities, central, strict=True)
            for entity in entities[:_CANDIDATES]
            if not sources_of[community.id, entity.id]
        }
        ids = sorted({support.chunk_id for supports in elsewhere.values() for support in supports})
        texts = await self._documents.hydrate(self._tenant, ids) if ids else {}

        def list_passages(community: str, entity: CentralEntity) -> tuple[Support, ...]:
            doubtful = (source for source in elsewhere.get((community, entity.id), ()) if source.chunk_id in texts)
            sources = sources_of[community, entity.id] or tuple(
                source for source in doubtful if contains_label(texts[source.chunk_id], entity.name)
            )
            return spread([*sources, *self._mentions_of(entity)]) if sources else ()

        return {
            community.id: tuple(
                replace(entity, passages=passages_found)
                for entity in entities[:_CANDIDATES]
                if (passages_found := list_passages(community.id, entity))
            )[:_ENTITIES]
            for community, entities in zip(communities, central, strict=True)
        }

    async def _read_documents(self, communities: Sequence[PlannedCommunity]) -> dict[str, tuple[ThemeDocument, ...]]:
        """Return the documents that each community is about, with their opening sentences."""
        documents = self._knowledge.documents
        chosen = {community.id: list_theme_documents(self._knowledge, community.members) for community in communities}
        ids = {document for shares in chosen.values() for document, *_ in shares} - self._openings.keys()
        chunk_ids = sorted(support.chunk_id for id in ids for support in documents[id].opening)
        chunks = await self._documents.hydrate(self._tenant, chunk_ids) if chunk_ids else {}

        def select_openings() -> dict[str, Fact | None]:
            passages = {
                id: [(s, chunks[s.chunk_id].chunk.text) for s in documents[id].opening if s.chunk_id in chunks] for id in ids
            }
            return {id: select_opening(documents[id].title, passages[id]) for id in sorted(ids)}

        openings = await asyncio.to_thread(select_openings)
        self._openings |= openings
        return {
            community: tuple(
                ThemeDocument(documents[id].title, share, documents[id].opening, self._openings[id], is_whole)
                for id, share, is_whole in shares
            )
            for community, shares in chosen.items()
        }

    async def _read_phrases(self, facts: Mapping[str, Sequence[Fact]]) -> dict[str, tuple[PassagePhrases, ...]]:
        """Return the phrases of the passages that state the facts, by community: at most `_TEXTS`, of as many documents as
        possible. Parents and children share passages, so each is read once.
        """
        passages_by_community = {
            id: spread((source for fact in community_facts for source in fact.sources), most=_TEXTS)
            for id, community_facts in facts.items()
        }
        ids = {source.chunk_id: source for sources in passages_by_community.values() for source in sources}
        fresh = sorted(ids.keys() - self._phrases.keys())
        chunks = await self._documents.hydrate(self._tenant, fresh) if fresh else {}
        read_phrases = partial(_read_phrases, [(ids[id], chunks[id].chunk.text) for id in fresh if id in chunks])
        phrases = await asyncio.to_thread(read_phrases)
        self._phrases |= phrases
        return {
            id: tuple(self._phrases[source.chunk_id] for source in sources if source.chunk_id in self._phrases)
            for id, sources in passages_by_community.items()
        }

    def _passages_about(self, community: PlannedCommunity, entity: CentralEntity, facts: Sequence[Fact]) -> tuple[Support, ...]:
        """Return passages that mention the entity under any name."""
        if not community.inside:
            return spread(self._mentions_of(entity))
        return spread(source for fact in facts if entity.id in fact.entity_ids for source in fact.sources)

    def _mentions_of(self, entity: CentralEntity) -> tuple[Support, ...]:
        return self._knowledge.mentions.get(entity.id, ())[:_MENTIONS]

    def _get_edge_weight(self, source: str, target: str) -> float:
        return self._weights.get((source, target) if source < target else (target, source), 0.0)

    def _select_central(self, community: PlannedCommunity) -> tuple[CentralEntity, ...]:
        if not community.inside:
            # These members have no relationships, only shared contexts: the most mentioned ones are the most central.
            mentioned = [(member, member, float(len(self._knowledge.mentions.get(member, ())))) for member in community.members]
            return central_entities(community.members, self._knowledge.entities, mentioned, limit=len(community.members))
        pairs = {(min(e.source_id, e.target_id), max(e.source_id, e.target_id)) for e in community.inside}
        weights = [(low, high, self._weights.get((low, high), 0.0)) for low, high in sorted(pairs)]
        prominence = {member: self._rate_prominence(member) for member in community.members}
        return central_entities(
            community.members, self._knowledge.entities, weights, limit=len(community.members), prominence=prominence
        )

    def _rate_prominence(self, member: str) -> float:
        """Return tf · idf of a member: ln(1 + passages) · ln(1 + all documents ÷ documents that mention it)."""
        mentions = self._knowledge.mentions.get(member, ())
        documents = len({support.document_id for support in mentions}) or 1
        return math.log1p(len(mentions)) * math.log1p(len(self._knowledge.documents) / documents)

    def _rank_relationships(self, community: PlannedCommunity, entities: Sequence[CentralEntity]) -> list[str]:
        """Return the strongest relationships between central members."""
        share = {entity.id: entity.share for entity in entities}
        # Ids are random. Names order equal relationships alike in every tenant.
        names = self._knowledge.entities
        ranked = sorted(
            community.inside,
            key=lambda edge: (
                -self._get_edge_weight(edge.source_id, edge.target_id) * (share[edge.source_id] + share[edge.target_id]),
                names[edge.source_id].name,
                names[edge.target_id].name,
                edge.relation,
                edge.relationship_id,
            ),
        )
        return [edge.relationship_id for edge in ranked[:_RELATIONSHIPS]]

    async def _read_facts(
        self, communities: Sequence[PlannedCommunity], ranked_relationships: Sequence[list[str]]
    ) -> dict[str, list[Fact]]:
        statements: defaultdict[str, list[tuple[str, Support]]] = defaultdict(list)
        ids = sorted({relationship for ranked in ranked_relationships for relationship in ranked})
        if ids:
            for sentence in await self._graph.fact_sentences(self._tenant, ids):
                if supports_now(self._versions, sentence.support):
                    statements[sentence.relationship_id].append((sentence.fact, sentence.support))
        for sentences in statements.values():
            sentences.sort(key=lambda sentence: self._knowledge.sort_key(sentence[1]))
        facts: dict[str, list[Fact]] = {}
        for community, ranked in zip(communities, ranked_relationships, strict=True):
            ends = {edge.relationship_id: frozenset((edge.source_id, edge.target_id)) for edge in community.inside}
            facts[community.id] = [
                Fact(statement, (support,), ends[relationship])
                for relationship in ranked
                for statement, support in statements.get(relationship, ())
            ]
        return facts

    async def _passage_facts(self, communities: Sequence[PlannedCommunity]) -> dict[str, list[Fact]]:
        """Return sentences that name the members, for communities that no relationship holds together."""
        chosen: dict[str, list[Support]] = {}
        for community in communities:
            shared = Counter(support for member in community.members for support in self._knowledge.mentions.get(member, ()))
            ranked = sorted(shared, key=lambda support: (-shared[support], *self._knowledge.sort_key(support)))
            chosen[community.id] = ranked[:_PASSAGES]
        ids = sorted({support.chunk_id for supports in chosen.values() for support in supports})
        texts = (
            {id: visible_chunk.chunk.text for id, visible_chunk in (await self._documents.hydrate(self._tenant, ids)).items()}
            if ids
            else {}
        )
        known_texts = {
            id: [(support, texts[support.chunk_id]) for support in community_supports if support.chunk_id in texts]
            for id, community_supports in chosen.items()
        }
        return await asyncio.to_thread(
            lambda: {
                community.id: self._sentences_about(community.members, known_texts[community.id]) for community in communities
            }
        )

    def _sentences_about(self, members: Sequence[str], passages: Sequence[tuple[Support, str]]) -> list[Fact]:
        """Return the sentence of each passage that names most members, the first of equals."""
        names = {member: normalise_name(self._knowledge.entities[member].name) for member in members}
        facts = []
        for support, text in passages:
            best, members_named = text.strip()[:300], frozenset(members[:1])
            best_count = 0
            for sentence in split_sentences(text):
                wording = f" {normalise_name(text[sentence.start : sentence.end])} "
                there = frozenset(member for member, name in names.items() if f" {name} " in wording)
                if len(there) > best_count:
                    best, members_named, best_count = text[sentence.start : sentence.end], there, len(there)
            facts.append(Fact(best, (support,), members_named))
        return facts


def _sources_by_name(
    communities: Sequence[PlannedCommunity], central: Sequence[Sequence[CentralEntity]], facts: Mapping[str, Sequence[Fact]]
) -> dict[tuple[str, str], tuple[Support, ...]]:
    """Return the passages of facts whose wording has a member's name, by community and member."""
    sources = {}
    for community, entities in zip(communities, central, strict=True):
        wordings = [(padded_words(fact.statement), fact) for fact in facts[community.id]]
        for entity in entities[:_CANDIDATES]:
            name = f" {normalise_name(entity.name)} "
            sources[community.id, entity.id] = spread(
                source for wording, fact in wordings if name in wording for source in fact.sources
            )
    return sources


def _choose_facts(
    communities: Sequence[PlannedCommunity],
    central: Sequence[Sequence[CentralEntity]],
    facts: Mapping[str, Sequence[Fact]],
) -> tuple[dict[str, tuple[Fact, ...]], dict[str, list[Fact]]]:
    """Return the telling facts of each community by its id, and the same followed by its other facts."""
    telling, ordered = {}, {}
    for community, entities in zip(communities, central, strict=True):
        merged = merge_facts(facts[community.id])
        chosen = telling[community.id] = telling_facts(merged, entities, limit=_FACTS)
        ordered[community.id] = [*chosen, *sorted(set(merged) - set(chosen), key=_statement_of)]
    return telling, ordered


def _read_phrases(passages: Sequence[tuple[Support, str]]) -> dict[str, PassagePhrases]:
    return {source.chunk_id: PassagePhrases.from_text(source, text) for source, text in passages}


def _statement_of(fact: Fact) -> str:
    return fact.statement
