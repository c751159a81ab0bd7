"""Embeds a question once, however many legs ask for it at the same time."""

from __future__ import annotations

import asyncio

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.stores.vector.base import Vector


class QueryEncoder:
    """Single flight over `Embedder.embed_query`: equal questions of one tenant that overlap in time share one call."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._running: dict[tuple[TenantId, str], asyncio.Task[Vector]] = {}

    async def encode(self, tenant: TenantId, text: str) -> Vector:
        """Return the unit vector of ``text``, float32, shape (dimensions,)."""
        key = (tenant, text)
        task = self._running.get(key)
        if task is None:
            task = asyncio.create_task(self._embedder.embed_query(text))
            self._running[key] = task
            task.add_done_callback(lambda done: self._ended(key, done))
        # Shielded: one leg being cancelled must not take the vector from the other.
        return await asyncio.shield(task)

    def _ended(self, key: tuple[TenantId, str], task: asyncio.Task[Vector]) -> None:
        self._running.pop(key, None)
        if not task.cancelled():
            task.exception()  # Looked at, so that a failure whose askers have all gone is not reported as forgotten.
