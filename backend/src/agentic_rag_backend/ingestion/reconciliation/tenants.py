"""What stores hold of tenants that are no more, and tenants whose deletion was interrupted."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass

from agentic_rag_backend.domain.tenant import TenantId, TenantState
from agentic_rag_backend.errors import NotFound
from agentic_rag_backend.ingestion.reconciliation.report import Kind, Report
from agentic_rag_backend.ingestion.reconciliation.rounds import Stores

Removal = Callable[[TenantId], Awaitable[Mapping[str, int]]]
_PAGE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantsRound:
    """Holds the tenants that stores know against the directory.

    A tenant's row is there before anything of it is stored, and its id is never used again: what has none is nobody's,
    such as the late writes of a job whose tenant was removed while it ran.

    Args:
        erase: removes what every store but the catalogue holds of a tenant.
        delete: deletes a tenant altogether; repeatable.
    """

    stores: Stores
    erase: Removal
    delete: Removal

    async def run(self, *, repair: bool) -> Report:
        """Compare, and mend where that is asked for."""
        report = Report(repair)
        known: set[TenantId] = set()
        for store in (self.stores.vectors, self.stores.graph, self.stores.blobs):
            known.update(await store.tenants())
        await self._orphaned(known, report)
        await self._deleting(report)
        return report

    async def _orphaned(self, known: Iterable[TenantId], report: Report) -> None:
        for tenant in sorted(known):
            try:
                await self.stores.catalogue.tenants.tenant(tenant)
            except NotFound:
                report.found(Kind.TENANT_ORPHANED, [tenant.value])
                if report.repair:
                    await self.erase(tenant)
                    report.mended(Kind.TENANT_ORPHANED, 1)

    async def _deleting(self, report: Report) -> None:
        cursor: str | None = None
        while True:
            page = await self.stores.catalogue.tenants.tenants(limit=_PAGE, cursor=cursor)
            for tenant in page.items:
                if tenant.state is TenantState.DELETING:
                    await self._finish(tenant.id, report)
            cursor = page.next_cursor
            if cursor is None:
                return

    async def _finish(self, tenant: TenantId, report: Report) -> None:
        report.found(Kind.TENANT_DELETING, [tenant.value])
        if not report.repair:
            return
        with contextlib.suppress(NotFound):  # then the request that had begun it has finished it
            await self.delete(tenant)
        report.mended(Kind.TENANT_DELETING, 1)
