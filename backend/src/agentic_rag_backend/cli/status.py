"""``status``: version, stores, models, what is on, and how much there is."""

from __future__ import annotations

import typer

from agentic_rag_backend.cli.command import Session, command
from agentic_rag_backend.cli.output import fields, table


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "status")(status)


async def status(session: Session) -> None:
    """Show how the tenant is served."""
    found = await session.client.get("/status")
    strategies = await session.client.get("/strategies")
    if session.output.as_json:
        session.output.result(found)
        return
    whole = {"served by": session.client.where, **{name: value for name, value in found.items() if name != "strategies"}}
    session.output.show(fields(whole))
    rows = [[each["name"], each["why_not"] or "available", each["description"]] for each in strategies]
    session.output.show("", table(["strategy", "state", "what it does"], rows))
