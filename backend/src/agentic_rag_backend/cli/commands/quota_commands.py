"""``tenants quota show`` and ``tenants quota set``, for the operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from agentic_rag_backend.cli.command import Session, join_path
from agentic_rag_backend.cli.commands.tenants import KEYS, TENANTS, TenantName
from agentic_rag_backend.cli.output import Output, format_time, table
from agentic_rag_backend.domain.quota import QuotaName, show_number
from agentic_rag_backend.errors import InvalidRequest

_NO_LIMIT = "none"


async def show_quota(session: Session, tenant_name: TenantName) -> None:
    """Show the use of each limit of a tenant."""
    path = join_path(TENANTS.path, await session.client.find_tenant_id(tenant_name))
    session.output.present(await session.client.get(f"{path}/quota"), _render_quota)


async def set_quota(
    session: Session,
    tenant_name: TenantName,
    limits: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME=LIMIT…", help="Such as requests_per_minute=600 or chunks=none; others get their defaults."),
    ] = None,
    key: Annotated[str | None, typer.Option("--key", metavar="KEY_ID", help="Set the limits of this key only.")] = None,
) -> None:
    """Replace the limits of a tenant, or of one of its keys. Without limits, those of QUOTA_… apply again."""
    tenant_id, body = await session.client.find_tenant_id(tenant_name), read_limits(limits or [])
    if key is None:
        session.output.present(await session.client.put(f"{join_path(TENANTS.path, tenant_id)}/quota", body), _render_quota)
    else:
        path = join_path(KEYS.path.format(tenant_id=tenant_id), key)
        session.output.present(await session.client.put(f"{path}/quota", body))


def read_limits(pairs: Sequence[str]) -> dict[str, float | None]:
    """Return the limits of ``NAME=LIMIT`` pairs. ``none``: no limit.

    Raises:
        InvalidRequest: a pair has no known name, or its limit is no number.
    """
    limits: dict[str, float | None] = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or name not in set(map(str, QuotaName)):
            raise InvalidRequest(f"a limit must be NAME=LIMIT with one of the names {', '.join(QuotaName)}; got {pair[:80]!r}")
        try:
            limits[name] = None if value == _NO_LIMIT else int(value) if value.isdecimal() else float(value)
        except ValueError:
            raise InvalidRequest(f"{name} must be a number, or 'none' for no limit; got {value[:80]!r}") from None
    return limits


def _render_quota(output: Output, quota: Mapping[str, Any]) -> None:
    render_uses(output, quota["limits"])


def render_uses(output: Output, uses: Sequence[Mapping[str, Any]]) -> None:
    """Show a table of limits."""
    rows = [
        [use["name"], use["scope"], show_number(use["used"]), show_number(use["limit"]), format_time(use["resets_at"])]
        for use in uses
    ]
    output.show(table(["name", "of", "#used", "#limit", "resets at"], rows) if rows else "no limits")
