"""Schedule of automatic comparisons: once per interval and tenant, at different times, unaffected by restarts."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from agentic_rag_backend.domain.tenant import Tenant, TenantId, TenantState
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.ingestion.reconciliation.service import Reconciler
from agentic_rag_backend.stores.catalogue.base import TenantDirectory
from agentic_rag_backend.telemetry.logs import get_logger

JITTER = 0.1
"""Maximum share of the interval that is added per tenant, to spread the comparisons."""
_CHECKS_PER_INTERVAL = 24
"""Number of checks for due tenants in one interval."""
_LONGEST_PAUSE_S = 3600.0
_SHORTEST_PAUSE_S = 1.0
_PAGE = 200

_log = get_logger(__name__)


def due_at(tenant: TenantId, last_run: datetime, interval_s: float) -> datetime:
    """Return when the tenant's next comparison is due after one at ``last_run``: the interval plus up to a tenth of it.

    The addition depends on the tenant's id, so that tenants created together are not always compared together.
    """
    share = int(tenant.value[2:10], 16) / 2**32
    return last_run + timedelta(seconds=interval_s * (1 + JITTER * share))


class Schedule:
    """Queues comparisons with repair.

    Args:
        interval_s: seconds between two comparisons of a tenant.
    """

    def __init__(self, reconciler: Reconciler, tenants: TenantDirectory, *, interval_s: float) -> None:
        self._reconciler = reconciler
        self._tenants = tenants
        self._interval_s = interval_s

    async def run(self, leads: Callable[[], Awaitable[bool]]) -> None:
        """Check for due tenants repeatedly, in the process that ``leads``. A failed check is repeated at the next one."""
        pause_s = min(_LONGEST_PAUSE_S, max(_SHORTEST_PAUSE_S, self._interval_s / _CHECKS_PER_INTERVAL))
        while True:
            await asyncio.sleep(pause_s * random.uniform(0.9, 1.1))  # noqa: S311 - not used for secrets
            try:
                if await leads():
                    await self.reconcile_due(datetime.now(UTC))
            except AgenticRagError as error:
                _log.warning("reconciliation_not_requested", code=error.code, reason=error.message)

    async def reconcile_due(self, now: datetime) -> int:
        """Queue a comparison for every due tenant and return their number. Also compare data that belongs to no tenant."""
        await self._reconciler.run_tenants(repair=True)
        queued, cursor = 0, None
        while True:
            page = await self._tenants.tenants(limit=_PAGE, cursor=cursor)
            for tenant in page.items:
                if await self._is_due(tenant, now):
                    await self._reconciler.request_job(tenant.id, repair=True)
                    queued += 1
            cursor = page.next_cursor
            if cursor is None:
                return queued

    async def _is_due(self, tenant: Tenant, now: datetime) -> bool:
        if tenant.state is not TenantState.ACTIVE:
            return False
        last_job = await self._reconciler.find_last(tenant.id)
        if last_job is not None and not last_job.state.ended:
            return False
        return due_at(tenant.id, last_job.created_at if last_job is not None else tenant.created_at, self._interval_s) <= now
