"""``usage``, and ``tenants usage`` for the operator."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import typer

from agentic_rag_backend.cli.command import Session
from agentic_rag_backend.cli.commands.quota_commands import render_uses
from agentic_rag_backend.cli.output import Output, fields, table
from agentic_rag_backend.cli.resources import Limit, Resource
from agentic_rag_backend.domain.usage_report import UsageGroup

_DAY = ["%Y-%m-%d"]
StartDay = Annotated[datetime | None, typer.Option("--from", formats=_DAY, help="First day, in UTC; default: 30 days ago.")]
EndDay = Annotated[datetime | None, typer.Option("--to", formats=_DAY, help="Last day; default: today.")]
_COLUMNS: Mapping[str, str] = {
    "#requests": "requests",
    "#calls": "calls",
    "#failed": "failed_calls",
    "#read tokens": "prompt_tokens",
    "#written tokens": "completion_tokens",
}


async def show_usage(
    session: Session,
    start: StartDay = None,
    end: EndDay = None,
    by: Annotated[UsageGroup, typer.Option("--by", help="Groups of the report.")] = UsageGroup.DAY,
) -> None:
    """Show model calls, tokens, cost and requests of the tenant."""
    usage = await session.client.get("/usage", **{"from": _format_day(start), "to": _format_day(end), "by": by.value})
    session.output.present(usage, _render_usage)


def _format_day(day: datetime | None) -> str | None:
    return None if day is None else day.date().isoformat()


def _render_usage(output: Output, usage: Mapping[str, Any]) -> None:
    names = ("from", "to", "requests", "calls", "failed_calls", "prompt_tokens", "completion_tokens")
    volume = {name: usage[name] for name in ("documents", "chunks", "bytes")}
    output.show(fields({**{name: usage[name] for name in names}, "cost": format_cost(usage, usage["currency"]), **volume}))
    rows = [
        [group["group"] or "–", *(group[name] for name in _COLUMNS.values()), format_cost(group)] for group in usage["groups"]
    ]
    output.show("", table([usage["by"], *_COLUMNS, "#cost"], rows))
    if usage["quota"]:
        output.show("")
        render_uses(output, usage["quota"])


def format_cost(usage: Mapping[str, Any], currency: str = "") -> str:
    """Return the cost for people. If the price of a call is unknown, return the known part and the number of such calls."""
    amount = f"{usage['known_cost']:.6f} {currency}".rstrip()
    if usage["cost"] is not None:
        return amount
    known = f"{amount} + " if usage["known_cost"] else ""
    return f"{known}{usage['unpriced_calls']} calls without a price"


TENANTS_USAGE = Resource(
    path="/tenants/usage",
    columns={"id": "tenant_id", "name": "name", **_COLUMNS, "#cost": format_cost},
    droppable=("#failed", "id"),
)


async def list_tenants_usage(session: Session, limit: Limit = 50, start: StartDay = None, end: EndDay = None) -> None:
    """Show usage and cost of each tenant."""
    await TENANTS_USAGE.list_items(session, limit, **{"from": _format_day(start), "to": _format_day(end)})
