"""Usage of tenants: writes what the ledger of this process collects, and reports on it."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime

from agentic_rag_backend.domain.prices import PriceTable
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.usage_report import Period, TenantUsage, UsageCount, UsageGroup, UsageReport
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.stores.catalogue.base import Page, UsageCatalogue
from agentic_rag_backend.telemetry.logs import get_logger
from agentic_rag_backend.telemetry.usage_ledger import UsageLedger

WRITTEN_EVERY_S = 2.0
"""Seconds between two writes. A process that is killed loses at most the usage of that time."""

_log = get_logger(__name__)


class UsageService:
    """Writes and reads usage.

    Args:
        prices: prices of models, which apply to calls from now on.
    """

    def __init__(self, catalogue: UsageCatalogue, prices: PriceTable) -> None:
        self.ledger = UsageLedger(prices)
        self._catalogue = catalogue
        self._writing = asyncio.Lock()

    async def run(self) -> None:
        """Write the ledger at intervals, until the task is cancelled."""
        while True:
            await asyncio.sleep(WRITTEN_EVERY_S)
            await self.write_ledger()

    async def write_ledger(self) -> bool:
        """Write what the ledger has collected, also what another task is writing. If that fails, the ledger keeps it.

        Return whether everything was written.
        """
        # If the caller is cancelled, the counts would otherwise be lost between the ledger and the catalogue.
        return await asyncio.shield(self._write_counts())

    async def _write_counts(self) -> bool:
        async with self._writing:
            counts = self.ledger.take()
            try:
                if counts:
                    await self._catalogue.add(counts)
            except AgenticRagError as error:
                self.ledger.restore(counts)
                _log.warning("usage_not_written", code=error.code, reason=error.message, rows=len(counts))
                return False
            return True

    async def read_report(
        self, tenant: TenantId, by: UsageGroup, start: date | None = None, end: date | None = None
    ) -> UsageReport:
        """Return the usage of a tenant. Other processes write theirs within `WRITTEN_EVERY_S`.

        Args:
            start: first day, in UTC. None: see `Period.of_request`.
            end: last day. None: today.

        Raises:
            InvalidRequest: the period is empty or too long.
        """
        period = Period.of_request(start, end, datetime.now(UTC).date())
        await self.write_ledger()
        groups = await self._catalogue.groups(tenant, period, by)
        return UsageReport(
            period=period,
            by=by,
            currency=self.ledger.prices.currency,
            total=sum(groups.values(), UsageCount()),
            groups=groups,
            volume=await self._catalogue.volume(tenant),
        )

    async def list_tenants(
        self, start: date | None = None, end: date | None = None, *, limit: int, cursor: str | None = None
    ) -> tuple[Period, Page[TenantUsage]]:
        """Return the usage of each tenant. See `read_report`."""
        period = Period.of_request(start, end, datetime.now(UTC).date())
        await self.write_ledger()
        return period, await self._catalogue.tenants(period, limit=limit, cursor=cursor)
