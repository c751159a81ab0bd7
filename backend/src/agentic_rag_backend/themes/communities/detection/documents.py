"""Read what the coarsest level groups communities by: the entities of each document, and which documents are similar."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.vector.base import Collection, Vector, VectorStore
from agentic_rag_backend.themes.communities.detection.knowledge import VisibleKnowledge
from agentic_rag_backend.themes.communities.detection.top_level import DocumentMentions

MAX_COMPARED = 10_000
"""Documents above which none are compared: relationships connect the communities of so many documents."""
_PASSAGES = 4
"""Passages whose mean vector stands for a document: the first ones that mention an entity."""
_NEIGHBOURS = 3
_PAGE = 500
_DIGITS = 3
"""Decimals of a similarity, so that the division does not depend on the machine."""


async def read_documents(tenant: TenantId, knowledge: VisibleKnowledge, vectors: VectorStore) -> DocumentMentions:
    """Return the mentions of each document, and the similarities of up to `MAX_COMPARED` documents."""
    mentions: defaultdict[str, Counter[str]] = defaultdict(Counter)
    passages: defaultdict[str, dict[str, tuple[int, str, str]]] = defaultdict(dict)
    for entity, supports in knowledge.mentions.items():
        for support in supports:
            mentions[support.document_id][entity] += 1
            passages[support.document_id][support.chunk_id] = knowledge.sort_key(support)
    first = {document: sorted(keys, key=keys.__getitem__)[:_PASSAGES] for document, keys in passages.items()}
    order = sorted(first, key=lambda document: passages[document][first[document][0]])
    counts = [mentions[document] for document in order]
    if not 1 < len(order) <= MAX_COMPARED:
        return DocumentMentions(counts)
    ids = [chunk for document in order for chunk in first[document]]
    known: dict[str, Vector] = {}
    for start in range(0, len(ids), _PAGE):
        known |= await vectors.vectors(tenant, Collection.CHUNKS, ids[start : start + _PAGE])
    return DocumentMentions(counts, await asyncio.to_thread(_compare_documents, [first[document] for document in order], known))


def _compare_documents(passages: Sequence[Sequence[str]], vectors: Mapping[str, Vector]) -> list[tuple[int, int, float]]:
    """Return each document's nearest ones with their cosine, by position. Documents without a vector have none.

    The mean of all vectors is subtracted first: what all documents have in common makes none similar.
    """
    means = {
        number: np.mean([vectors[id] for id in ids if id in vectors], axis=0)
        for number, ids in enumerate(passages)
        if any(id in vectors for id in ids)
    }
    if len(means) < 2:  # noqa: PLR2004 - a pair
        return []
    numbers = list(means)
    matrix: NDArray[np.float32] = np.stack([means[number] for number in numbers]).astype(np.float32)
    matrix -= matrix.mean(axis=0)
    matrix /= np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-9)
    pairs: dict[tuple[int, int], float] = {}
    for start in range(0, len(numbers), _PAGE):
        cosines = np.round(matrix[start : start + _PAGE] @ matrix.T, _DIGITS)
        for row, of in enumerate(cosines):
            of[start + row] = -1.0
            for column in np.argsort(-of, kind="stable")[:_NEIGHBOURS]:
                if of[column] > 0:
                    pairs[min(start + row, int(column)), max(start + row, int(column))] = float(of[column])
    return [(numbers[a], numbers[b], weight) for (a, b), weight in sorted(pairs.items())]
