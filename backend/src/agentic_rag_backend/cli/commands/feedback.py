"""``feedback list`` and ``feedback export``."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

import typer

from agentic_rag_backend.cli.command import EVERYTHING, Session
from agentic_rag_backend.cli.commands.tenants import write_file
from agentic_rag_backend.cli.output import format_time
from agentic_rag_backend.cli.resources import Resource
from agentic_rag_backend.errors import Conflict

RatingOption = Annotated[str | None, typer.Option("--rating", help="good or bad.")]
StrategyOption = Annotated[str | None, typer.Option("--strategy", help="Strategy of the answer.")]
FEEDBACK = Resource(
    path="/feedback",
    columns={
        "answer": "answer_id",
        "rating": "rating",
        "strategy": "strategy",
        "#confidence": lambda item: f"{item['confidence']:.2f}",
        "reason": lambda item: item["reason"] or "",
        "given": lambda item: format_time(item["updated_at"]),
    },
    droppable=("strategy", "#confidence"),
    empty="no feedback",
)


async def export_feedback(
    session: Session,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to write, with one JSON object per line.")],
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
) -> None:
    """Write all feedback of the tenant to a file, newest first."""
    if file.exists() and not force:
        raise Conflict(f"{file} exists; --force replaces it")
    items = await session.client.every(FEEDBACK.path, limit=EVERYTHING)
    size = await write_file(_make_lines(items), file)
    session.output.present({"file": str(file), "size_bytes": size, "items": len(items)})


async def _make_lines(items: list[dict[str, Any]]) -> AsyncIterator[bytes]:
    for item in items:
        yield json.dumps(item, ensure_ascii=False).encode() + b"\n"
