"""Reconciliation of tenants: data of tenants that no longer exist, and interrupted deletions of tenants."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass

from agentic_rag_backend.domain.tenant import TenantId, TenantState
from agentic_rag_backend.errors import NotFound
from agentic_rag_backend.ingestion.reconciliation.report import EXAMPLES, Kind, Report
from agentic_rag_backend.ingestion.reconciliation.rounds import ReconciledStores
from agentic_rag_backend.telemetry.logs import get_logger

Removal = Callable[[TenantId], Awaitable[Mapping[str, int]]]
_PAGE = 200
_log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantsRound:
    """Compares the tenants in stores with the tenant directory.

    A tenant's row is written before any of its data, and its id is never reused. Data of a tenant whose removal is recorded is
    therefore orphaned, such as late writes of a job whose tenant was removed meanwhile. A tenant that is neither present nor
    recorded as removed was more likely lost by the catalogue: its data is removed only if a person confirms.

    Args:
        erase: removes a tenant's data from every store but the catalogue.
        delete: deletes a tenant completely; idempotent.
    """

    stores: ReconciledStores
    erase: Removal
    delete: Removal

    async def run(self, *, repair: bool, confirmed: bool = False) -> Report:
        """Compare, and repair if requested. With ``confirmed``, remove all data of tenants that the catalogue does not have."""
        report = Report(repair, confirmed)
        tenant_ids: set[TenantId] = set()
        for store in (self.stores.vectors, self.stores.graph, self.stores.blobs):
            tenant_ids.update(await store.tenants())
        await self._check_orphans(tenant_ids, report)
        await self._check_deletions(report)
        return report

    async def _check_orphans(self, tenants: Iterable[TenantId], report: Report) -> None:
        directory = self.stores.catalogue.tenants
        tenant_ids = sorted(tenants)
        # Removed tenants are read first: a removal that ends in between is then recorded, or its tenant is still known.
        removed = await directory.removed(tenant_ids)
        orphans = sorted(set(tenant_ids) - await directory.known(tenant_ids))
        report.count_differences(Kind.TENANT_ORPHANED, [tenant.value for tenant in orphans])
        if not report.repair:
            return
        going = [tenant for tenant in orphans if report.confirmed or tenant in removed]
        for tenant in going:
            counts = await self.erase(tenant)
            report.count_repairs(Kind.TENANT_ORPHANED, 1)
            _log.info("data_of_removed_tenant_removed", tenant=tenant.value, **counts)
        if count_kept := len(orphans) - len(going):
            report.count_deferrals(Kind.TENANT_ORPHANED, count_kept)
            examples = [tenant.value for tenant in orphans if tenant not in removed][:EXAMPLES]
            way_out = "'agentic-rag doctor --repair --confirm' removes their data"
            _log.warning("data_of_unknown_tenants_kept", tenants=count_kept, examples=examples, confirm=way_out)

    async def _check_deletions(self, report: Report) -> None:
        cursor: str | None = None
        while True:
            page = await self.stores.catalogue.tenants.tenants(limit=_PAGE, cursor=cursor)
            for tenant in page.items:
                if tenant.state is TenantState.DELETING:
                    await self._finish_deletion(tenant.id, report)
            cursor = page.next_cursor
            if cursor is None:
                return

    async def _finish_deletion(self, tenant: TenantId, report: Report) -> None:
        report.count_differences(Kind.TENANT_DELETING, [tenant.value])
        if not report.repair:
            return
        with contextlib.suppress(NotFound):  # then the request that started it has finished it
            await self.delete(tenant)
        report.count_repairs(Kind.TENANT_DELETING, 1)
