"""Embeds each question once, even if several legs need the vector at the same time."""

from __future__ import annotations

import asyncio

from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.stores.vector.base import Vector


class QueryEncoder:
    """Single flight for `Embedder.embed_query`: overlapping calls for the same tenant and text share one embedding."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._running: dict[tuple[TenantId, str], asyncio.Task[Vector]] = {}

    async def of(self, query: Query) -> Vector:
        """Return the vector to search for a query: the query's own one if it has one, otherwise the vector of its text."""
        return query.embedding if query.embedding is not None else await self.encode(query.tenant_id, query.text)

    async def encode(self, tenant: TenantId, text: str) -> Vector:
        """Return the unit vector of ``text``, float32, shape (dimensions,)."""
        key = (tenant, text)
        task = self._running.get(key)
        if task is None:
            task = asyncio.create_task(self._embedder.embed_query(text))
            self._running[key] = task
            task.add_done_callback(lambda done: self._ended(key, done))
        # Shielded: cancelling one leg must not cancel the embedding that the other leg waits for.
        return await asyncio.shield(task)

    def _ended(self, key: tuple[TenantId, str], task: asyncio.Task[Vector]) -> None:
        self._running.pop(key, None)
        if not task.cancelled():
            task.exception()  # Retrieve the error, or asyncio logs it as never retrieved if all callers were cancelled.
