"""Shared parts of the commands of communities and of the tree: following a rebuild, and showing themes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import typer

from agentic_rag_backend.cli.command import Session
from agentic_rag_backend.cli.following import failure_reason, follow, succeeded
from agentic_rag_backend.cli.output import fields, table


def show_themes(session: Session, found: Sequence[Mapping[str, Any]], *, size: str, heading: str) -> None:
    """Print themes, one per line. ``size`` names the field with the size of a theme."""
    if session.output.as_json:
        session.output.result(found)
        return
    rows = [[each["id"], each["level"], each[size], each["name"], each["keywords"][:5]] for each in found]
    session.output.show(table(["id", "#level", heading, "name", "keywords"], rows, droppable=("keywords",)))


def show_theme(session: Session, found: Mapping[str, Any], listed: Sequence[str]) -> None:
    """Print a theme: its name, the fields ``listed``, summary and findings."""
    if session.output.as_json:
        session.output.result(found)
        return
    session.output.show(found["name"], style="bold")
    session.output.show(fields({name: found[name] for name in listed}))
    session.output.show(f"\n{found['summary'] or 'The summary is withheld: passages that it rests on were removed.'}")
    for finding in found["findings"]:
        session.output.show(f"- {finding['statement']}")


async def rebuild_index(session: Session, index: str, body: Mapping[str, Any], *, title: str, watch_job: bool) -> None:
    """Request a rebuild of ``index``, its name in the path. With ``watch_job``, follow the job to its end."""
    accepted = await session.client.post(f"/admin/{index}/rebuild", body)
    if not watch_job:
        session.output.result(accepted) if session.output.as_json else session.output.show(fields(accepted))
        return
    job = await follow(session.client, accepted["job_id"], title=title)
    if session.output.as_json:
        session.output.result(job)
    elif succeeded(job):
        session.output.show(fields(job["result"] or {}))
    else:
        session.output.note(f"error: {failure_reason(job)}")
    if not succeeded(job):
        raise typer.Exit(1)
