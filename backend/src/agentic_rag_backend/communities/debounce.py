"""Run something for a tenant once it has been quiet for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError

_log = structlog.get_logger(__name__)

_MAX_DELAYS = 10
"""A tenant that never is quiet is served after this many delays."""


class Debouncer:
    """Calls ``action`` for a tenant ``delay_s`` seconds after its last `touch`; one timer a tenant at most."""

    def __init__(self, action: Callable[[TenantId], Awaitable[object]], *, delay_s: float) -> None:
        self._action = action
        self._delay_s = delay_s
        self._timers: dict[TenantId, asyncio.TimerHandle] = {}
        self._first: dict[TenantId, float] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._closed = False

    def touch(self, tenant: TenantId) -> None:
        """Start the tenant's wait, or start it again. Needs a running loop; nothing happens after `close`."""
        if self._closed:
            return
        loop = asyncio.get_running_loop()
        first = self._first.setdefault(tenant, loop.time())
        due = min(loop.time() + self._delay_s, first + _MAX_DELAYS * self._delay_s)
        waiting = self._timers.pop(tenant, None)
        if waiting is not None:
            waiting.cancel()
        self._timers[tenant] = loop.call_at(due, self._start, tenant)

    @property
    def waiting(self) -> int:
        """How many tenants have a timer."""
        return len(self._timers)

    async def close(self) -> None:
        """Forget every timer and stop what is running."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._first.clear()
        for task in tuple(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _start(self, tenant: TenantId) -> None:
        self._timers.pop(tenant, None)
        self._first.pop(tenant, None)
        task = asyncio.get_running_loop().create_task(self._run(tenant))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _run(self, tenant: TenantId) -> None:
        try:
            await self._action(tenant)
        except AgenticRagError as error:
            # The pointer stays stale: the next change, or the next start of the process, tries again.
            _log.warning("community_rebuild_not_requested", tenant=str(tenant), code=error.code, reason=error.message)
