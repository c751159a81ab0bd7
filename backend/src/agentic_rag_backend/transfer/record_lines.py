"""Conversion of a document to the lines of its record, and back. Lines name chunks by position, because ids may change."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.domain.document import content_hash
from agentic_rag_backend.domain.graph import Naming, Relationship, StatedFact, Support
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.stores.catalogue.base import ChunkQuestions, DocumentRecord
from agentic_rag_backend.stores.graph.base import KnowledgeStore
from agentic_rag_backend.transfer.records import (
    ChunkLine,
    DocumentLine,
    EntityLine,
    MentionRecord,
    NameRecord,
    QuestionRecord,
    QuestionsRecord,
    Record,
    RelationshipLine,
    SentenceRecord,
)

Vector = NDArray[np.float32]


def pack_vector(vector: Vector) -> str:
    """Return a vector as text."""
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()


def unpack_vector(text: str, *, dimensions: int, where: str = "the archive") -> Vector:
    """Return the vector that `pack_vector` encoded.

    Raises:
        InvalidRequest: the text is not a vector of that length, or not finite.
    """
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidRequest(f"{where}: a vector is not base64") from None
    if len(raw) != 4 * dimensions:
        raise InvalidRequest(f"{where}: a vector has {len(raw)} bytes; {dimensions} dimensions take {4 * dimensions}")
    vector: Vector = np.frombuffer(raw, dtype="<f4").astype(np.float32)
    if not np.isfinite(vector).all():
        raise InvalidRequest(f"{where}: a vector holds NaN or infinity")
    return vector


def record_lines(record: DocumentRecord, stored: Mapping[str, str], *, original: bool) -> Iterator[Record]:
    """Yield the lines of the document and its chunks. ``stored`` has packed vectors of chunks without a computed vector."""
    yield DocumentLine.from_value(record, original=original)
    computed = {item.chunk.id: item for item in record.prepared}
    for chunk in record.chunks:
        item = computed.get(chunk.id)
        vector = None if item is None or item.vector is None else pack_vector(item.vector)
        yield ChunkLine(
            id=chunk.id,
            **chunk.location.as_fields(),
            size_tokens=chunk.size_tokens,
            extraction=None if item is None else item.extraction,
            recipe=None if item is None else item.recipe,
            failure=None if item is None else item.failure,
            vector=vector or stored.get(chunk.id),
            questions=None if item is None or item.questions is None else _record_questions(item.questions),
        )


def _record_questions(questions: ChunkQuestions) -> QuestionsRecord:
    items = tuple(
        QuestionRecord.from_value(item.question, vector=None if item.vector is None else pack_vector(item.vector))
        for item in questions.items
    )
    return QuestionsRecord.from_value(questions, items=items)


async def knowledge_lines(graph: KnowledgeStore, tenant: TenantId, record: DocumentRecord) -> list[Record]:
    """Return the graph's content of the document's version: entities with their names and mentions, then relationships."""
    position = {chunk.id: number for number, chunk in enumerate(record.chunks)}
    version_key = (record.id, record.version)
    names: dict[str, list[str]] = {}
    statements_of: dict[str, list[NameRecord]] = {}
    async for naming in _read_namings(graph, tenant, version_key):
        names.setdefault(naming.entity_id, []).append(naming.name)
        if naming.said is not None:
            statements_of.setdefault(naming.entity_id, []).append(NameRecord.from_value(naming.said))
    mentions: dict[str, list[MentionRecord]] = {}
    async for batch in graph.all_mentions(tenant, [record.id]):
        for entity_mention in batch:
            support = entity_mention.support
            if (support.document_id, support.version) == version_key and support.chunk_id in position:
                mention = MentionRecord(chunk=position[support.chunk_id], count=entity_mention.count, about=entity_mention.about)
                mentions.setdefault(entity_mention.entity_id, []).append(mention)
    lines: list[Record] = [
        EntityLine(id=id, names=tuple(called), said=tuple(statements_of.get(id, ())), mentions=tuple(mentions.get(id, ())))
        for id, called in names.items()
    ]
    async for relationships in graph.all_relationships(tenant, [record.id]):
        sentences: dict[str, list[StatedFact]] = {}
        for sentence in await graph.fact_sentences(tenant, [relationship.id for relationship in relationships]):
            sentences.setdefault(sentence.relationship_id, []).append(sentence)
        for relationship in relationships:
            stated_facts = sentences.get(relationship.id, ())
            records = list(_record_sentences(relationship, stated_facts, version_key, position))
            # The document must name both entities, otherwise the record would be incomplete.
            if records and relationship.source_id in names and relationship.target_id in names:
                lines.append(_record_relationship(relationship, stated_facts, version_key, records))
    return lines


async def _read_namings(graph: KnowledgeStore, tenant: TenantId, version_key: tuple[str, int]) -> AsyncIterator[Naming]:
    """Yield the names that a version of a document uses."""
    async for batch in graph.all_names(tenant, [version_key[0]]):
        for naming in batch:
            if (naming.document_id, naming.version) == version_key:
                yield naming


def _record_relationship(
    relationship: Relationship,
    stated_facts: Sequence[StatedFact],
    version_key: tuple[str, int],
    records: Sequence[SentenceRecord],
) -> RelationshipLine:
    """Return the record of a relationship, with the weight and validity that its version gives it.

    A version without sentences of its own gets its share of the whole weight, and the whole validity.
    """
    own_fact = next(
        (
            stated_fact
            for stated_fact in stated_facts
            if (stated_fact.support.document_id, stated_fact.support.version) == version_key
        ),
        None,
    )
    share = relationship.weight / len({support.document_id for support in relationship.supports})
    return RelationshipLine(
        source=relationship.source_id,
        target=relationship.target_id,
        relation=relationship.relation,
        weight=share if own_fact is None else own_fact.weight,
        valid_at=relationship.valid_at if own_fact is None else own_fact.valid_at,
        invalid_at=relationship.invalid_at if own_fact is None else own_fact.invalid_at,
        sentences=tuple(records),
    )


def _record_sentences(
    relationship: Relationship, sentences: Sequence[StatedFact], version_key: tuple[str, int], position: Mapping[str, int]
) -> Iterator[SentenceRecord]:
    stated_supports: set[Support] = set()
    for sentence in sentences:
        support = sentence.support
        if (support.document_id, support.version) == version_key and support.chunk_id in position:
            stated_supports.add(support)
            yield SentenceRecord.from_value(sentence, chunk=position[support.chunk_id])
    for support in relationship.supports:
        silent = (
            (support.document_id, support.version) == version_key
            and support.chunk_id in position
            and support not in stated_supports
        )
        if silent:
            yield SentenceRecord(chunk=position[support.chunk_id], start_char=0, end_char=0, fact=relationship.fact)


@dataclass(slots=True)
class ArchivedDocument:
    """A document's record from an archive."""

    document: DocumentLine
    chunks: list[ChunkLine] = field(default_factory=list)
    entities: list[EntityLine] = field(default_factory=list)
    relationships: list[RelationshipLine] = field(default_factory=list)
    original: bytes | None = None

    def add_line(self, line: ChunkLine | EntityLine | RelationshipLine) -> None:
        """Add a line."""
        if isinstance(line, ChunkLine):
            self.chunks.append(line)
        elif isinstance(line, EntityLine):
            self.entities.append(line)
        else:
            self.relationships.append(line)

    def text_of(self, chunk: ChunkLine) -> str:
        """Return the text of one of its chunks."""
        return self.document.text[chunk.start_char : chunk.end_char]

    def check_references(self, entity_ids: Set[str]) -> None:
        """Refuse references to missing items.

        Args:
            entity_ids: ids of the archive's entities.

        Raises:
            InvalidRequest: the message names the document and the error.
        """
        where, end = f"document {self.document.id}", len(self.document.text)
        for chunk in self.chunks:
            if not 0 <= chunk.start_char < chunk.end_char <= end:
                raise InvalidRequest(f"{where}: a chunk from {chunk.start_char} to {chunk.end_char} is outside its text")
            parent_start, parent_end = chunk.parent_start, chunk.parent_end
            if (parent_start is None) != (parent_end is None) or not (parent_start or 0) <= chunk.start_char < chunk.end_char <= (
                parent_end or end
            ) <= end:
                raise InvalidRequest(f"{where}: a chunk from {chunk.start_char} to {chunk.end_char} is outside its parent")
        named_ids = {entity.id for entity in self.entities}
        if len(named_ids) < len(self.entities) or not named_ids <= entity_ids:
            raise InvalidRequest(f"{where}: its entities are duplicate, or not in the archive")
        positions = [mention.chunk for entity in self.entities for mention in entity.mentions]
        positions += [sentence.chunk for relationship in self.relationships for sentence in relationship.sentences]
        if any(position >= len(self.chunks) for position in positions):
            raise InvalidRequest(f"{where}: a mention or sentence is in a chunk that it does not have")
        self._check_places(where)
        if not {end for relationship in self.relationships for end in (relationship.source, relationship.target)} <= named_ids:
            raise InvalidRequest(f"{where}: a relationship connects entities that it does not name")
        if self.original is not None and content_hash(self.original) != self.document.content_hash:
            raise InvalidRequest(f"{where}: its original does not match its hash")
        if (self.original is not None) is not self.document.original:
            raise InvalidRequest(f"{where}: its original is missing, or its record does not announce it")

    def _check_places(self, where: str) -> None:
        """Refuse a sentence or mention outside its chunk."""
        sizes = [chunk.end_char - chunk.start_char for chunk in self.chunks]
        places = [
            (sentence.start_char, sentence.end_char, sizes[sentence.chunk])
            for relationship in self.relationships
            for sentence in relationship.sentences
        ]
        for chunk, size in zip(self.chunks, sizes, strict=True):
            extraction = chunk.extraction
            places += [(mention.start_char, mention.end_char, size) for mention in (extraction.mentions if extraction else ())]
            places += [
                (statement.fact_start, statement.fact_end, size) for statement in (extraction.relationships if extraction else ())
            ]
        for start, end, size in places:
            if not start <= end <= size:
                raise InvalidRequest(f"{where}: a mention or sentence is at {start} to {end} in a chunk of {size} characters")
