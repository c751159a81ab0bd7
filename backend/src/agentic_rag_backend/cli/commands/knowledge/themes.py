"""Shared parts of the commands of communities and of the tree: following a rebuild, and showing themes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentic_rag_backend.cli.command import Session
from agentic_rag_backend.cli.following import finish_job
from agentic_rag_backend.cli.output import Output, fields
from agentic_rag_backend.cli.resources import Cell, Resource


def theme_resource(path: str, *, size: str, heading: str) -> Resource:
    """Return themes as a resource. ``size`` names the field with the size of a theme, ``heading`` its column."""
    columns: dict[str, Cell] = {
        "id": "id",
        "#level": "level",
        heading: size,
        "name": "name",
        "keywords": lambda theme: theme["keywords"][:5],
    }
    return Resource(path=path, columns=columns, droppable=("keywords",))


def theme_renderer(names: Sequence[str]) -> Callable[[Output, Any], None]:
    """Return what prints a theme: its name, the fields ``names``, summary and findings."""

    def render(output: Output, theme: Mapping[str, Any]) -> None:
        output.show(theme["name"], style="bold")
        output.show(fields({name: theme[name] for name in names}))
        output.show(f"\n{theme['summary'] or 'The summary is withheld: passages that it rests on were removed.'}")
        for finding in theme["findings"]:
            output.show(f"- {finding['statement']}")

    return render


async def rebuild_index(session: Session, index: str, body: Mapping[str, Any], *, title: str, watch_job: bool) -> None:
    """Request a rebuild of ``index``, its name in the path. With ``watch_job``, follow the job to its end."""
    accepted = await session.client.post(f"/admin/{index}/rebuild", body)
    if watch_job:
        await finish_job(session, accepted["job_id"], title=title)
    else:
        session.output.present(accepted)
