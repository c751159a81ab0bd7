"""``features show|set``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from agentic_rag_backend.cli.command import Session, command
from agentic_rag_backend.cli.output import table
from agentic_rag_backend.errors import InvalidRequest

VALUES: Mapping[str, bool | None] = {"true": True, "on": True, "false": False, "off": False, "default": None}


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(name="features", help="Feature flags of a tenant.", no_args_is_help=True)
    command(group, "show")(show)
    command(group, "set")(set_feature)
    app.add_typer(group)


async def show(session: Session) -> None:
    """Show each flag's value, default and source."""
    _show(session, await session.client.get("/features"))


async def set_feature(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Flag, such as DUAL_LEVEL_RETRIEVAL_ENABLED.")],
    value: Annotated[str, typer.Argument(metavar="VALUE", help="true, false, a number, or default.")],
) -> None:
    """Set a feature flag of the tenant. It applies from the next request on."""
    _show(session, await session.client.patch("/features", {name: _read(value)}))


def _read(value: str) -> bool | float | None:
    if value.lower() in VALUES:
        return VALUES[value.lower()]
    try:
        return float(value)
    except ValueError:
        raise InvalidRequest(f"VALUE must be a number or one of {', '.join(VALUES)}; got {value[:80]!r}") from None


def _show(session: Session, flags: list[dict[str, Any]]) -> None:
    if session.output.as_json:
        session.output.result(flags)
        return
    rows = [[flag["name"], flag["value"], flag["default"], flag["source"], flag["description"]] for flag in flags]
    session.output.show(table(["name", "value", "default", "source", "description"], rows))
