"""Places for requests to a model: questions go before jobs, and the tenants of each kind take turns.

A job's request never takes the last free place if there are several. With one place, a waiting question goes before all waiting
requests of jobs, so it waits for at most one of them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.fairness import Rotation, current_actor, share_of


class ModelSlots:
    """Places for coroutines, granted by kind and tenant of the current `fairness.Actor`. It belongs to one event loop.

    One tenant takes at most `share_of` the places, and its jobs one place less, so that its questions find one.

    Args:
        places: limit of requests at once.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._reserved = min(1, places - 1)
        """Free places that jobs leave to questions."""
        share, running = share_of(places), Counter[TenantId | None]()
        self._questions: Rotation[asyncio.Future[None]] = Rotation(share, running)
        self._jobs: Rotation[asyncio.Future[None]] = Rotation(max(1, share - self._reserved), running)

    @contextlib.asynccontextmanager
    async def hold_slot(self) -> AsyncIterator[None]:
        """Wait for a place, and hold it."""
        tenant, rotation = current_actor().tenant, self._jobs if current_actor().job else self._questions
        grant = asyncio.get_running_loop().create_future()
        rotation.add(tenant, grant)
        self._grant_slots()
        try:
            await grant
            yield
        finally:
            if grant.done() and not grant.cancelled():
                rotation.done(tenant)
                self._free += 1
                self._grant_slots()

    def _grant_slots(self) -> None:
        for rotation, reserved in ((self._questions, 0), (self._jobs, self._reserved)):
            while self._free > reserved and (waiting := rotation.take()) is not None:
                tenant, grant = waiting
                if grant.done():  # cancelled while it waited
                    rotation.done(tenant)
                    continue
                self._free -= 1
                grant.set_result(None)
