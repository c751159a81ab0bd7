"""Wait for documents in processing, so that a rebuild requested right after an upload includes them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.jobs.coordination.slots import aside
from agentic_rag_backend.stores.catalogue.base import JobCatalogue

LONGEST_S = 600.0
"""Maximum seconds that a rebuild waits."""
STALLED_S = 60.0
"""Seconds without the end of any document after which the rebuild stops waiting for the rest."""
_POLL_INTERVAL_S = 0.25

Say = Callable[[int, int], Awaitable[None]]
"""Called with the number of finished documents and of all documents; an exception from it ends the wait."""


async def wait_for_documents(jobs: JobCatalogue, tenant: TenantId, say: Say) -> int:
    """Wait until all documents that are now queued or in processing have ended. Return how many are left out.

    Later uploads are not waited for.
    """
    loop = asyncio.get_running_loop()
    asked, began = datetime.now(UTC), loop.time()
    total = left = await jobs.pending_documents(tenant, queued_before=asked)
    if not total:
        return 0
    moved = began
    async with aside():
        while left and loop.time() - began < LONGEST_S and loop.time() - moved < STALLED_S:
            await say(total - left, total)
            await asyncio.sleep(_POLL_INTERVAL_S)
            before, left = left, await jobs.pending_documents(tenant, queued_before=asked)
            if left < before:
                moved = loop.time()
    return left
