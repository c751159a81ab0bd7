"""``features show|set``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from agentic_rag_backend.cli.command import Session, command
from agentic_rag_backend.cli.resources import Resource
from agentic_rag_backend.errors import InvalidRequest

VALUES: Mapping[str, bool | None] = {"true": True, "on": True, "false": False, "off": False, "default": None}

FLAGS = Resource(
    path="/features",
    columns={name: name for name in ("name", "value", "default", "source", "description")},
)


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(name="features", help="Feature flags of a tenant.", no_args_is_help=True)
    command(group, "show")(show)
    command(group, "set")(set_feature)
    app.add_typer(group)


async def show(session: Session) -> None:
    """Show each flag's value, default and source."""
    session.output.present(await session.client.get("/features"), FLAGS.show_items)


async def set_feature(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Flag, such as DUAL_LEVEL_RETRIEVAL_ENABLED.")],
    value: Annotated[str, typer.Argument(metavar="VALUE", help="true, false, a number, or default.")],
) -> None:
    """Set a feature flag of the tenant. It applies from the next request on."""
    session.output.present(await session.client.patch("/features", {name: _read(value)}), FLAGS.show_items)


def _read(value: str) -> bool | float | None:
    if value.lower() in VALUES:
        return VALUES[value.lower()]
    try:
        return float(value)
    except ValueError:
        raise InvalidRequest(f"VALUE must be a number or one of {', '.join(VALUES)}; got {value[:80]!r}") from None
