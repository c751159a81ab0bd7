"""Embeds each question once: several legs need its vector at the same time, and equal questions come again."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence

import numpy as np

from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import ModelInputRefused, ModelUnavailable
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.retrieval.caching.cache_entries import TenantCache
from agentic_rag_backend.retrieval.caching.single_flight import SingleFlight
from agentic_rag_backend.stores.vector.base import Vector
from agentic_rag_backend.telemetry.metrics import EMBEDDINGS_CACHE, count_cache_use


class QueryEncoder:
    """Cache and single flight of `Embedder.embed_query`.

    The tenant is a part of the key: the time of a search must not show whether another tenant asked the same question.

    Args:
        embedder: makes the vectors. Its fingerprint is a part of the key.
        max_bytes: bound of the kept vectors. 0: none are kept, and only overlapping calls share one embedding.
    """

    def __init__(self, embedder: Embedder, *, max_bytes: int = 0) -> None:
        self._embedder = embedder
        self.entries = TenantCache[Vector](EMBEDDINGS_CACHE, max_bytes)
        self._flights = SingleFlight[Vector]()

    async def of(self, query: Query) -> Vector:
        """Return the vector to search for a query: the query's own one if it has one, otherwise the vector of its text."""
        return query.embedding if query.embedding is not None else await self.encode(query.tenant_id, query.text)

    async def encode(self, tenant: TenantId, text: str) -> Vector:
        """Return the unit vector of ``text``, float32, shape (dimensions,). It is read-only if vectors are kept."""
        if not self.entries.enabled:
            return (await self._flights.run((tenant, text), lambda: self._embedder.embed_query(text)))[0]
        key = hashlib.sha256(f"{self._embedder.fingerprint}\n{text}".encode("utf-8", "surrogatepass")).digest()
        cached = self.entries.get(tenant, key)
        if cached is not None:
            count_cache_use(EMBEDDINGS_CACHE, "hit")
            return cached
        vector, joined = await self._flights.run((tenant, text), lambda: self._embed(tenant, key, text))
        count_cache_use(EMBEDDINGS_CACHE, "shared" if joined else "miss")
        return vector

    async def mean_of(self, query: Query, passages: Sequence[str]) -> tuple[Vector | None, str | None]:
        """Return the mean of the vectors of the query and hypothetical passages, of length 1 (HyDE, Gao et al., ACL 2023).

        None with the reason if there is none.
        """
        if not passages:
            return None, None
        question = await self.of(query)
        try:
            # As questions: `Embedder.embed` would wait behind the passages of ingestion.
            vectors = await asyncio.gather(*(self.encode(query.tenant_id, text) for text in passages))
        except (ModelUnavailable, ModelInputRefused) as error:
            return None, f"hypothetical passages could not be embedded: {error.code}"
        total = np.mean([question, *vectors], axis=0)
        length = float(np.linalg.norm(total))
        return (None, "hypothetical passages cancel the question out") if length == 0 else (np.float32(1 / length) * total, None)

    def tokens(self, query: Query) -> int:
        """Return the tokens that the vector of a query is expected to cost, if it is not kept."""
        return self._embedder.query_tokens(query.text) if query.embedding is None else 0

    async def _embed(self, tenant: TenantId, key: bytes, text: str) -> Vector:
        vector = await self._embedder.embed_query(text)
        vector.setflags(write=False)  # several searches read it
        self.entries.put(tenant, key, vector, vector.nbytes)
        return vector
