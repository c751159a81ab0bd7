"""Reads the passages of a tree, in an order that depends on their texts only."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.language.words import content_forms, inverse_frequency
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue
from agentic_rag_backend.stores.vector.base import Collection, Vector, VectorStore
from agentic_rag_backend.themes.raptor.structure.clustering import Leaves

_PAGE = 500
_SAMPLED = 1_000
"""Number of passages from which word frequencies are estimated."""


@dataclass(frozen=True, slots=True)
class PassageReader:
    """Reads visible passages and their vectors. Passages without a vector, which the embedder refused, are left out."""

    documents: DocumentCatalogue
    vectors: VectorStore
    dimensions: int

    async def read_leaves(self, tenant: TenantId, versions: Iterable[str]) -> Leaves:
        """Return the visible passages of the given documents."""
        ids = [
            id for document_chunk_ids in (await self.chunk_ids(tenant, sorted(versions))).values() for id in document_chunk_ids
        ]
        return await self.select_leaves(tenant, ids)

    async def chunk_ids(self, tenant: TenantId, document_ids: Sequence[str]) -> dict[str, list[str]]:
        """Return the ids of the visible passages of each given document that has any."""
        ids_by_document: dict[str, list[str]] = {}
        for start in range(0, len(document_ids), _PAGE):
            ids_by_document |= await self.documents.visible_chunk_ids(tenant, document_ids[start : start + _PAGE])
        return ids_by_document

    async def select_leaves(self, tenant: TenantId, ids: Sequence[str]) -> Leaves:
        """Return the passages among ``ids`` that are visible and have a vector."""
        rows: list[tuple[str, str, str, str]] = []
        for start in range(0, len(ids), _PAGE):
            visible = await self.documents.hydrate(tenant, ids[start : start + _PAGE])
            rows += [
                (visible_chunk.chunk.content_hash, visible_chunk.document_title, id, visible_chunk.chunk.document_id)
                for id, visible_chunk in visible.items()
            ]
        rows.sort()
        vectors = await self.read_vectors(tenant, [id for _, _, id, _ in rows])
        leaves_with_vectors = [(id, document) for _, _, id, document in rows if id in vectors]
        matrix = (
            np.stack([vectors[id] for id, _ in leaves_with_vectors])
            if leaves_with_vectors
            else np.zeros((0, self.dimensions), np.float32)
        )
        return Leaves(tuple(id for id, _ in leaves_with_vectors), tuple(document for _, document in leaves_with_vectors), matrix)

    async def read_vectors(self, tenant: TenantId, ids: Sequence[str]) -> dict[str, Vector]:
        """Return the vectors of passages."""
        vectors: dict[str, Vector] = {}
        for start in range(0, len(ids), _PAGE):
            vectors |= await self.vectors.vectors(tenant, Collection.CHUNKS, ids[start : start + _PAGE])
        return vectors

    async def read_texts(self, tenant: TenantId, ids: Sequence[str]) -> dict[str, VisibleChunk]:
        """Return the current visible passages."""
        texts: dict[str, VisibleChunk] = {}
        for start in range(0, len(ids), _PAGE):
            texts |= await self.documents.hydrate(tenant, ids[start : start + _PAGE])
        return texts

    async def term_weights(self, tenant: TenantId, ids: Sequence[str]) -> dict[str, float]:
        """Return the rarity of each word among a bounded number of the passages."""
        sampled = await self.read_texts(tenant, ids[:_SAMPLED])
        texts = [sampled[id].chunk.text for id in sorted(sampled)]
        return await asyncio.to_thread(lambda: inverse_frequency(map(content_forms, texts)))
