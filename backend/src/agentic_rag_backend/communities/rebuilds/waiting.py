"""Wait for documents in processing, and for names that are not settled, so that a rebuild right after an upload includes them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.jobs.coordination.slots import lend_places
from agentic_rag_backend.stores.catalogue.base import SETTLING, JobCatalogue, Outbox
from agentic_rag_backend.telemetry.logs import get_logger

LONGEST_S = 600.0
"""Maximum seconds that a rebuild waits."""
STALLED_S = 60.0
"""Seconds without the end of any document after which the rebuild stops waiting for the rest."""
SETTLED_WITHIN_S = 60.0
"""Maximum seconds that a rebuild waits for names. A document whose names cannot be settled must not stop rebuilds for ever."""
_POLL_INTERVAL_S = 0.25

_log = get_logger(__name__)

Deliver = Callable[[TenantId, float], Awaitable[object]]
"""Delivers the outbox entries of a tenant, and waits for at most a number of seconds."""
Say = Callable[[int, int], Awaitable[None]]
"""Called with the number of finished documents and of all documents; an exception from it ends the wait."""


async def wait_for_documents(jobs: JobCatalogue, tenant: TenantId, say: Say) -> int:
    """Wait until all documents that are now queued or in processing have ended. Return how many are left out.

    Later uploads are not waited for.
    """
    loop = asyncio.get_running_loop()
    requested_at, began = datetime.now(UTC), loop.time()
    total = remaining = await jobs.pending_documents(tenant, queued_before=requested_at)
    if not total:
        return 0
    moved = began
    async with lend_places():
        while remaining and loop.time() - began < LONGEST_S and loop.time() - moved < STALLED_S:
            await say(total - remaining, total)
            await asyncio.sleep(_POLL_INTERVAL_S)
            before, remaining = remaining, await jobs.pending_documents(tenant, queued_before=requested_at)
            if remaining < before:
                moved = loop.time()
    return remaining


async def wait_for_names(outbox: Outbox, tenant: TenantId, deliver: Deliver) -> bool:
    """Settle the names that deletions, edits and failed commits recorded. Return whether every name is settled."""
    if not await outbox.holds(tenant, SETTLING):
        return True
    async with lend_places():
        await deliver(tenant, SETTLED_WITHIN_S)
    settled = not await outbox.holds(tenant, SETTLING)
    if not settled:
        _log.warning("rebuild_reads_unsettled_names", tenant=tenant.value)
    return settled
