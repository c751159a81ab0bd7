"""Usage and cost: of the caller's tenant, and of all tenants for the operator."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from agentic_rag_backend.api.dependencies import Operator, Process, Reader, Services
from agentic_rag_backend.api.requests.bodies import JsonRoute
from agentic_rag_backend.api.responses.envelopes import Cursor, Envelope, Limit, ListEnvelope, wrap_data
from agentic_rag_backend.api.schemas.usage import EndDay, StartDay, TenantUsageView, UsageReportView
from agentic_rag_backend.domain.usage_report import UsageGroup

router = APIRouter(tags=["usage"], route_class=JsonRoute)


@router.get("/usage", response_model=Envelope[UsageReportView], summary="Usage and cost of this tenant")
async def get_usage(
    request: Request,
    services: Services,
    caller: Reader,
    start: StartDay = None,
    end: EndDay = None,
    by: UsageGroup = UsageGroup.DAY,
) -> dict[str, Any]:
    """Return model calls, tokens, cost and requests by day, stage, model or key, and the size of the tenant's documents.

    `quota` has the use of each limit now. Calls of jobs count for the key whose request began the job. What other
    processes of the server did in the last two seconds may be missing.
    """
    report = await services.admin.read_usage(caller, by, start, end)
    return wrap_data(request, UsageReportView.of(report, await services.admin.list_quota_uses(caller)))


@router.get(
    "/tenants/usage",
    response_model=ListEnvelope[TenantUsageView],
    dependencies=[Operator],
    summary="Usage and cost of each tenant",
)
async def list_usage(
    request: Request,
    services: Process,
    start: StartDay = None,
    end: EndDay = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """Return the usage of each tenant in a period, in order of the tenants' ids. Removed tenants have none.

    `meta` has the period and the currency.
    """
    period, page = await services.usage.list_tenants(start, end, limit=limit, cursor=cursor)
    about = {"from": period.start, "to": period.end, "currency": services.usage.ledger.prices.currency}
    return wrap_data(request, [TenantUsageView.of(item) for item in page.items], nextCursor=page.next_cursor, **about)
