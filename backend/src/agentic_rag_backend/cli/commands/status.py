"""``status``: version, stores, models, features and counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from agentic_rag_backend.cli.command import Session, command
from agentic_rag_backend.cli.output import fields, table


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "status")(status)


async def status(session: Session) -> None:
    """Show the status of the server and of the tenant."""
    report = await session.client.get("/status")
    strategies = await session.client.get("/strategies")
    if session.output.as_json:
        session.output.result(report)
        return
    apart = ("strategies", "vector_indexes", "extraction_methods")
    whole = {"served by": session.client.where, **{name: value for name, value in report.items() if name not in apart}}
    session.output.show(fields(whole))
    if report["vector_indexes"] is not None:
        columns = ["collection", "vectors", "in the index", "state", "last built"]
        session.output.show("", table(columns, [_index(vector_index) for vector_index in report["vector_indexes"]]))
    methods = [
        [extraction_method["name"], "available" if extraction_method["available"] else f"it {extraction_method['why_not']}"]
        for extraction_method in report["extraction_methods"]
    ]
    session.output.show("", table(["extraction", "state"], methods))
    rows = [
        [
            strategy["name"],
            strategy["why_not"] or "available",
            ", ".join(strategy["languages"] or ["any"]),
            strategy["description"],
        ]
        for strategy in strategies
    ]
    session.output.show("", table(["strategy", "state", "languages", "description"], rows))


def _index(index: Mapping[str, Any]) -> list[str]:
    last = index["last"]
    build = "not since the start"
    if last is not None:
        what = f"{last['reason']}: {last['seconds']:.1f} s, requests blocked for {last['gap_s']:.2f} s"
        build = f"{last['finished_at']} {'failed: ' + last['failure'] if last['failure'] else what}"
    return [index["collection"], f"{index['points']:,}", f"{index['indexed_share']:.0%}", index["state"], build]
