"""Embeds a question once, however many legs ask for it at the same time."""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.stores.vector.base import Vector

AT_ONCE = 2
"""Questions of one tenant that are embedded at once where the embedder has one thread for questions."""


class QueryEncoder:
    """Single flight over `Embedder.embed_query`: equal questions of one tenant that overlap in time share one call.

    Args:
        at_once: questions of one tenant that are handed to the embedder at once, so that the many of one tenant are not all
            before the one of another.
    """

    def __init__(self, embedder: Embedder, *, at_once: int = AT_ONCE) -> None:
        self._embedder = embedder
        self._at_once = at_once
        self._tenants: WeakValueDictionary[TenantId, asyncio.Semaphore] = WeakValueDictionary()
        self._running: dict[tuple[TenantId, str], asyncio.Task[Vector]] = {}

    async def encode(self, tenant: TenantId, text: str) -> Vector:
        """Return the unit vector of ``text``, float32, shape (dimensions,)."""
        key = (tenant, text)
        task = self._running.get(key)
        if task is None:
            task = asyncio.create_task(self._in_turn(tenant, text))
            self._running[key] = task
            task.add_done_callback(lambda done: self._ended(key, done))
        # Shielded: one leg being cancelled must not take the vector from the other.
        return await asyncio.shield(task)

    async def _in_turn(self, tenant: TenantId, text: str) -> Vector:
        async with self._tenants.setdefault(tenant, asyncio.Semaphore(self._at_once)):
            return await self._embedder.embed_query(text)

    def _ended(self, key: tuple[TenantId, str], task: asyncio.Task[Vector]) -> None:
        self._running.pop(key, None)
        if not task.cancelled():
            task.exception()  # Looked at, so that a failure whose askers have all gone is not reported as forgotten.
