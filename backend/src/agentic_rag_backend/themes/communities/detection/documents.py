"""Read what the coarsest level groups communities by: the entities of each document, and which documents are similar."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.domain.document import Chunk
from agentic_rag_backend.domain.graph import Support
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.language.titles import split_words, words_of_name
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue
from agentic_rag_backend.stores.vector.base import Collection, Vector, VectorStore
from agentic_rag_backend.themes.communities.detection.knowledge import KnownDocument, VisibleKnowledge
from agentic_rag_backend.themes.communities.detection.top_level import DocumentMentions

MAX_COMPARED = 10_000
"""Documents above which none are compared: relationships connect the communities of so many documents."""
_PASSAGES = 4
"""Passages whose mean vector stands for a document: the first ones that mention an entity."""
_NEIGHBOURS = 3
_PAGE = 500
_SERIES = 3
"""Documents whose titles differ in a number only, from which on these are no titles."""
_DIGITS = 3
"""Decimals of a similarity, so that the division does not depend on the machine."""


async def add_documents(
    tenant: TenantId, knowledge: VisibleKnowledge, documents: DocumentCatalogue, vectors: VectorStore
) -> tuple[VisibleKnowledge, DocumentMentions]:
    """Return the knowledge with its documents, and what the coarsest level groups communities by."""
    knowledge = await read_documents(tenant, knowledge, documents)
    return knowledge, await _read_mentions(tenant, knowledge, vectors)


async def read_documents(tenant: TenantId, knowledge: VisibleKnowledge, documents: DocumentCatalogue) -> VisibleKnowledge:
    """Return the knowledge with its documents."""
    first_chunks = [document.opening[0].chunk_id for document in describe_documents(knowledge, {}).values()]
    titles: dict[str, str] = {}
    for start in range(0, len(first_chunks), _PAGE):
        visible = await documents.hydrate(tenant, first_chunks[start : start + _PAGE])
        titles |= {id: choose_title(chunk.document_title, chunk.document_key, chunk.chunk) for id, chunk in visible.items()}
    return replace(knowledge, documents=describe_documents(knowledge, titles))


def describe_documents(knowledge: VisibleKnowledge, titles: Mapping[str, str]) -> dict[str, KnownDocument]:
    """Return the documents whose passages mention entities, in the order of these passages.

    Args:
        titles: see `choose_title`, by chunk id.
    """
    counts: Counter[str] = Counter()
    passages: defaultdict[str, set[Support]] = defaultdict(set)
    for supports in knowledge.mentions.values():
        for support in supports:
            counts[support.document_id] += 1
            passages[support.document_id].add(support)
    opening = {id: tuple(sorted(supports, key=knowledge.sort_key)[:_PASSAGES]) for id, supports in passages.items()}
    order = sorted(opening, key=lambda id: knowledge.sort_key(opening[id][0]))
    title_of = _without_series({id: titles.get(opening[id][0].chunk_id, "") for id in order})
    return {id: KnownDocument(title_of[id], opening[id], counts[id]) for id in order}


def _without_series(titles: Mapping[str, str]) -> dict[str, str]:
    """Return titles, empty for each of at least `_SERIES` that differ in a number only: "note 12" names no subject."""
    numbered = {id: title for id, title in titles.items() if any(map(str.isdigit, title))}
    letters = {id: "".join(filter(str.isalpha, title.casefold())) for id, title in numbered.items()}
    series = Counter(letters.values())
    return {id: "" if id in letters and series[letters[id]] >= _SERIES else title for id, title in titles.items()}


def choose_title(title: str, key: str | None, chunk: Chunk) -> str:
    """Return a document's title or, if that is the name of its file, the heading above its ``chunk``."""
    heading = next(iter(chunk.location.headings), "")
    from_file = split_words(title) == words_of_name(key or "")
    return heading if from_file and len(heading.split()) > 1 else title


async def _read_mentions(tenant: TenantId, knowledge: VisibleKnowledge, vectors: VectorStore) -> DocumentMentions:
    """Return the mentions of each of ``knowledge.documents``, and the similarities of up to `MAX_COMPARED` documents."""
    mentions: dict[str, Counter[str]] = {id: Counter() for id in knowledge.documents}
    for entity, supports in knowledge.mentions.items():
        for support in supports:
            mentions[support.document_id][entity] += 1
    counts = list(mentions.values())
    if not 1 < len(counts) <= MAX_COMPARED:
        return DocumentMentions(counts)
    openings = [[support.chunk_id for support in document.opening] for document in knowledge.documents.values()]
    ids = [id for opening in openings for id in opening]
    vectors_by_chunk: dict[str, Vector] = {}
    for start in range(0, len(ids), _PAGE):
        vectors_by_chunk |= await vectors.vectors(tenant, Collection.CHUNKS, ids[start : start + _PAGE])
    return DocumentMentions(counts, await asyncio.to_thread(_compare_documents, openings, vectors_by_chunk))


def _compare_documents(passages: Sequence[Sequence[str]], vectors: Mapping[str, Vector]) -> list[tuple[int, int, float]]:
    """Return each document's nearest ones with their cosine, by position. Documents without a vector have none.

    The mean of all vectors is subtracted first: what all documents have in common makes none similar.
    """
    means = {
        number: np.mean([vectors[id] for id in ids if id in vectors], axis=0)
        for number, ids in enumerate(passages)
        if any(id in vectors for id in ids)
    }
    if len(means) < 2:
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
