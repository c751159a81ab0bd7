"""Comparison of the stores by tenant, in this process or by a server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentic_rag_backend.cli.command import EVERYTHING
from agentic_rag_backend.cli.following import explain_failure, follow_job, is_successful
from agentic_rag_backend.cli.output import Output, table
from agentic_rag_backend.errors import AgenticRagError, Forbidden

if TYPE_CHECKING:
    from agentic_rag_backend.container import Container
    from agentic_rag_backend.domain.tenant import Tenant

NO_TENANT = "(no tenant)"
_PAGE = 200


@dataclass(frozen=True, slots=True)
class TenantComparison:
    """Report about one tenant, in the form of a job's result."""

    tenant: str
    report: Mapping[str, Any]

    @property
    def remaining(self) -> int:
        """Number of remaining differences."""
        return int(self.report["found"]) - int(self.report["mended"])


async def compare_here(container: Container, *, repair: bool, confirmed: bool = False) -> list[TenantComparison]:
    """Compare every tenant's stores, and wait for the jobs of a repair."""
    from agentic_rag_backend.jobs.service import JobEndings

    comparisons: list[TenantComparison] = []
    unowned = await container.reconciler.run_tenants(repair=repair, confirmed=confirmed)
    if unowned.differences:
        comparisons.append(TenantComparison(NO_TENANT, unowned.as_result()))
    async for tenant in _list_tenants(container):
        report = await container.reconciler.run(tenant.id, repair=repair, confirmed=confirmed)
        endings = JobEndings(container.catalogue.jobs, tenant.id)
        for job_id in report.jobs:
            await endings.wait_for_end(job_id)
        comparisons.append(TenantComparison(tenant.name, report.as_result()))
    return comparisons


async def _list_tenants(container: Container) -> AsyncIterator[Tenant]:
    cursor: str | None = None
    while True:
        page = await container.tenants.list(limit=_PAGE, cursor=cursor)
        for tenant in page.items:
            yield tenant
        cursor = page.next_cursor
        if cursor is None:
            return


async def compare_on_server(url: str, key: str | None, *, repair: bool, confirmed: bool = False) -> list[TenantComparison]:
    """Let the server compare the stores: of every tenant if ``key`` is the operator's, otherwise of the key's tenant."""
    from agentic_rag_backend.cli.session.remote import open_remote

    body = {"repair": repair, "confirm": confirmed}
    async with open_remote(url, key, None) as client:
        try:
            tenants = await client.every("/tenants", limit=EVERYTHING)
        except Forbidden:
            tenant = await client.get("/tenants/me")
            return [TenantComparison(tenant["name"], await _request_report(client, body))]
    comparisons = []
    for tenant in tenants:
        async with open_remote(url, key, tenant["id"]) as client:
            comparisons.append(TenantComparison(tenant["name"], await _request_report(client, body)))
    return comparisons


async def _request_report(client: Any, body: Mapping[str, bool]) -> Mapping[str, Any]:
    accepted = await client.post("/admin/reconcile", body)
    job = await follow_job(client, accepted["job_id"], title="comparing the stores")
    if not is_successful(job):
        raise AgenticRagError(f"the comparison did not finish: {explain_failure(job)}")
    report: Mapping[str, Any] = job["result"]
    return report


def show_comparisons(output: Output, comparisons: Sequence[TenantComparison], *, repair: bool) -> None:
    """Print the differences, one line per tenant and kind, or that there are none."""
    rows = [
        [
            comparison.tenant,
            kind,
            tally["found"],
            tally["mended"],
            tally["skipped"],
            tally["unmendable"],
            tally["withheld"],
            tally["examples"],
        ]
        for comparison in comparisons
        for kind, tally in comparison.report["kinds"].items()
    ]
    if rows:
        columns = ["tenant", "difference", "#found", "#repaired", "#in flight", "#not repairable", "#withheld", "examples"]
        output.show("", table(columns, rows))
    if not comparisons:
        return
    documents, in_flight = (
        sum(int(comparison.report[name]) for comparison in comparisons) for name in ("documents", "in_flight")
    )
    unmended = sum(comparison.remaining for comparison in comparisons)
    advice = "" if repair else "; 'agentic-rag doctor --repair' repairs them"
    verdict = f"{unmended} differences{advice}" if unmended else "the stores agree"
    if withheld := sum(int(comparison.report["withheld"]) for comparison in comparisons):
        output.show(
            f"\n{withheld} differences were not repaired: they are unusually many, or belong to tenants that the catalogue does "
            "not know. If this is the right catalogue for these stores, 'agentic-rag doctor --repair --confirm' removes this data"
        )
    output.show(f"\n{documents} documents compared, {in_flight} of them in flight and skipped: {verdict}")
