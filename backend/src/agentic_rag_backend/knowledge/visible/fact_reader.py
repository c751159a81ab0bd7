"""Reads relationships as visible passages state them, without weight, validity and sentences of hidden versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.filters import VALID_FROM
from agentic_rag_backend.domain.graph import Direction, GraphEdge, StatedFact, Support
from agentic_rag_backend.domain.query import EntityRef
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.ontologies import Ontologies
from agentic_rag_backend.knowledge.relation_types import End, ExclusiveRelations
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.knowledge.visible.facts import VisibleFact, in_succession, shared_end, states_now, weigh_fact
from agentic_rag_backend.language.times import document_date, period_of
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue
from agentic_rag_backend.stores.graph.base import KnowledgeStore

MAX_PASSAGES = 20
"""Passages of a relationship that are read: the heaviest of each document first."""
MAX_RIVALS = 20
"""Relationships of exclusive types that are read of each entity: the heaviest ones."""
_DIRECTIONS: Mapping[End, Direction] = {"source": "out", "target": "in"}


class FactReader:
    """Reads the facts that a tenant's visible passages state.

    Args:
        ontologies: say which relations are exclusive.
    """

    def __init__(self, graph: KnowledgeStore, documents: DocumentCatalogue, ontologies: Ontologies) -> None:
        self._graph = graph
        self._documents = documents
        self._ontologies = ontologies

    async def read(
        self,
        tenant: TenantId,
        graph: TenantGraph,
        edges: Sequence[GraphEdge],
        *,
        moment: datetime | None,
        known: Mapping[str, VisibleChunk] | None = None,
        passes: Callable[[VisibleChunk], bool] | None = None,
    ) -> dict[str, VisibleFact]:
        """Return the facts among ``edges`` that visible passages state and that hold at ``moment``, in the order of ``edges``.

        Args:
            shown: the tenant's visible graph. A fact without both ends in it is absent.
            moment: time of the facts and of their weights. None returns facts of all times.
            known: chunks that were read before.
            passes: a passage that does not pass counts as hidden. All passages are then read, because the heaviest may not pass.

        Raises:
            StoreUnavailable: the graph store or the catalogue did not answer.
        """
        reading = _Reading(tenant, graph, moment, dict(known or {}), passes)
        facts = await self._read_statements(reading, edges)
        if facts:
            facts = await self._apply_succession(reading, facts)
        return {id: fact for id, fact in facts.items() if moment is None or fact.holds(moment)}

    async def _apply_succession(self, reading: _Reading, facts: Mapping[str, VisibleFact]) -> dict[str, VisibleFact]:
        """Return the facts with the ends that other visible facts give them."""
        exclusive = ExclusiveRelations.of((await self._ontologies.of(reading.tenant)).ontology)
        edges: dict[str, GraphEdge] = {}
        for end, direction in _DIRECTIONS.items():
            names = {fact.relation for fact in facts.values() if end in exclusive.ends(fact.relation)}
            at = {shared_end(fact, end).id for fact in facts.values() if fact.relation in names}
            if at:
                edges_of = await self._graph.edges_at(
                    reading.tenant, sorted(at), limit=MAX_RIVALS, direction=direction, relations=sorted(names)
                )
                edges |= {edge.id: edge for entity_edges in edges_of.values() for edge in entity_edges if edge.id not in facts}
        rivals = await self._read_statements(reading, list(edges.values()))
        return in_succession(facts, rivals.values(), exclusive)

    async def _read_statements(self, reading: _Reading, edges: Sequence[GraphEdge]) -> dict[str, VisibleFact]:
        """Return the facts that visible passages state."""
        ends = {edge.id: pair for edge in edges if (pair := _ends_of(reading.shown, edge)) is not None}
        if not ends:
            return {}
        by_fact: dict[str, list[StatedFact]] = {}
        for sentence in await self._graph.fact_sentences(reading.tenant, list(ends)):
            by_fact.setdefault(sentence.relationship_id, []).append(sentence)
        chosen = {id: _select_heaviest(reading.shown, sentences, reading.most) for id, sentences in by_fact.items()}
        passages = reading.passages
        if chunks := sorted(
            {sentence.support.chunk_id for sentences in chosen.values() for sentence in sentences} - passages.keys()
        ):
            hydrated = await self._documents.hydrate(reading.tenant, chunks)
            passages |= {id: chunk for id, chunk in hydrated.items() if reading.passes is None or reading.passes(chunk)}
        facts = {}
        for edge in edges:
            visible = _one_each(sentence for sentence in chosen.get(edge.id, ()) if states_now(passages, sentence.support))
            if visible:
                facts[edge.id] = reading.fact(edge, ends[edge.id], visible)
        return facts


@dataclass(frozen=True, slots=True)
class _Reading:
    """One call of `FactReader.read`; ``passages`` are the chunks read so far."""

    tenant: TenantId
    shown: TenantGraph
    moment: datetime | None
    passages: dict[str, VisibleChunk]
    passes: Callable[[VisibleChunk], bool] | None

    @property
    def most(self) -> int | None:
        """The passages of a fact that are read; None: all."""
        return MAX_PASSAGES if self.passes is None else None

    def fact(self, edge: GraphEdge, ends: tuple[EntityRef, EntityRef], sentences: tuple[StatedFact, ...]) -> VisibleFact:
        """Return the fact that these visible sentences state."""
        passages = [self.passages[sentence.support.chunk_id] for sentence in sentences]
        dates = tuple(map(_period_of, passages))
        times = [date[1] if date is not None else sentence.published_at for date, sentence in zip(dates, passages, strict=True)]
        statements = (
            (sentence.support.document_id, sentence.weight, time) for sentence, time in zip(sentences, times, strict=True)
        )
        return VisibleFact(
            id=edge.id,
            source=ends[0],
            target=ends[1],
            relation=edge.relation,
            weight=weigh_fact(statements, self.moment),
            passages=sentences,
            dates=dates,
            created_at=min((sentence.published_at for sentence in passages if sentence.published_at is not None), default=None),
        )


def _period_of(passage: VisibleChunk) -> tuple[datetime, datetime] | None:
    """Return the time for which a document speaks: the beginning of its validity, otherwise its date."""
    valid_from = period_of(passage.metadata.get(VALID_FROM))
    return valid_from or period_of(document_date(passage.document_title, passage.metadata))


def _ends_of(graph: TenantGraph, edge: GraphEdge) -> tuple[EntityRef, EntityRef] | None:
    source, target = graph.find_mentioned_number(edge.source_id), graph.find_mentioned_number(edge.target_id)
    return None if source is None or target is None else (graph.entity(source), graph.entity(target))


def _select_heaviest(graph: TenantGraph, all_sentences: Iterable[StatedFact], max_chunks: int | None) -> list[StatedFact]:
    """Return the sentences of ``most`` chunks (None: all), by descending weight, without hidden chunks.

    The heaviest chunk of each document comes before a second one of any, because the weight counts documents. All versions of a
    chunk are included: the catalogue decides which one is visible.
    """
    sentences = [sentence for sentence in all_sentences if sentence.support.chunk_id in graph.chunk_index]
    sentences.sort(
        key=lambda sentence: (-sentence.weight, sentence.support.document_id, sentence.support.chunk_id, sentence.start_char)
    )
    chunks = list(dict.fromkeys((sentence.support.document_id, sentence.support.chunk_id) for sentence in sentences))
    if max_chunks is None or len(chunks) <= max_chunks:
        return sentences
    turns: Counter[str] = Counter()
    ranked = []
    for rank, (document, chunk) in enumerate(chunks):
        ranked.append((turns[document], rank, chunk))
        turns[document] += 1
    chosen = {chunk for *_, chunk in sorted(ranked)[:max_chunks]}
    return [sentence for sentence in sentences if sentence.support.chunk_id in chosen]


def _one_each(passages: Iterable[StatedFact]) -> tuple[StatedFact, ...]:
    """Return the first sentence of each passage."""
    first_sentences: dict[Support, StatedFact] = {}
    for sentence in passages:
        first_sentences.setdefault(sentence.support, sentence)
    return tuple(first_sentences.values())
