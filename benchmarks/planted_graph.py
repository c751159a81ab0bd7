"""A synthetic knowledge graph with planted communities and power-law degrees, written to a graph store as documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.domain.document import stable_id
from agentic_rag_backend.domain.graph import DocumentKnowledge, Entity, Mention, Relationship, RelationshipSupport, Support
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.graph.base import KnowledgeStore

SEED = 7
PER_CHUNK = 4
"""Relationships per passage."""
BETWEEN = 0.15
"""Share of relationships that lead out of their group."""
_TAIL, _SMALLEST, _LARGEST = 1.5, 4, 400
_SKEW_INSIDE, _SKEW_OUTSIDE = 1.8, 3.0


@dataclass(frozen=True)
class Planted:
    """Entities by number, their groups, and relationships as pairs of entities. No loops; parallel relationships may occur."""

    groups: np.ndarray
    pairs: np.ndarray

    @classmethod
    def of(cls, entities: int, relationships: int) -> Planted:
        """Draw a graph. The same arguments give the same graph."""
        random = np.random.default_rng(SEED)
        sizes = np.clip((random.pareto(_TAIL, entities) + 1) * _SMALLEST * 2, _SMALLEST, _LARGEST).astype(int)
        count = int(np.searchsorted(np.cumsum(sizes), entities)) + 1
        sizes = sizes[:count]
        sizes[-1] -= sizes.sum() - entities
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        drawn = random.choice(count, 2 * relationships, p=sizes / sizes.sum())

        def member(group: NDArray[np.int64]) -> NDArray[np.int64]:
            return np.asarray(starts[group] + (random.random(len(group)) ** _SKEW_INSIDE * sizes[group]).astype(int), np.int64)

        ends = np.stack([member(drawn), member(drawn)], axis=1)
        out = random.random(len(ends)) < BETWEEN
        ends[out, 1] = (random.random(int(out.sum())) ** _SKEW_OUTSIDE * entities).astype(int)
        ends = ends[ends[:, 0] != ends[:, 1]][:relationships]
        return cls(np.repeat(np.arange(count), sizes), ends)

    def documents(self, per_document: int) -> Iterator[DocumentKnowledge]:
        """Yield the documents that state it."""
        for first in range(0, len(self.pairs), per_document):
            yield _document(f"document-{first:08d}", self.pairs[first : first + per_document].tolist())


async def write(graph: KnowledgeStore, tenant: TenantId, planted: Planted, *, per_document: int) -> dict[str, int]:
    """Write the graph; return the visible version of each document."""
    versions = {}
    for knowledge in planted.documents(per_document):
        await graph.write_document(tenant, knowledge)
        versions[knowledge.document_id] = knowledge.version
    return versions


def _document(id: str, pairs: list[list[int]]) -> DocumentKnowledge:
    relationships: dict[str, Relationship] = {}
    mentions: dict[tuple[str, str], Mention] = {}
    sentences, chunks = [], []
    for number, (source, target) in enumerate(pairs):
        if number % PER_CHUNK == 0:
            chunks.append(f"{id}-{number:06d}")
        support = Support(id, 1, chunks[-1])
        ends = [f"entity-{end:08d}" for end in (source, target)]
        for end in ends:
            mentions.setdefault((support.chunk_id, end), Mention(end, support))
        fact = f"Name {source} works with Name {target}."
        relationship = stable_id("planted", *ends)
        relationships.setdefault(
            relationship,
            Relationship(
                id=relationship, source_id=ends[0], target_id=ends[1], relation="works with", fact=fact, supports=(support,)
            ),
        )
        start = number % PER_CHUNK * 60
        sentences.append(
            RelationshipSupport(
                relationship_id=relationship, support=support, fact=fact, start_char=start, end_char=start + len(fact)
            )
        )
    named = sorted({end for pair in pairs for end in pair})
    return DocumentKnowledge(
        document_id=id,
        version=1,
        title=id,
        chunk_ids=tuple(chunks),
        entities=tuple(Entity(id=f"entity-{number:08d}", name=f"Name {number}", type="thing") for number in named),
        relationships=tuple(relationships.values()),
        mentions=tuple(mentions.values()),
        relationship_supports=tuple(sentences),
    )
