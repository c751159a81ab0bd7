"""``chunk preview``: the chunks that a strategy makes of a file, without storing it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from agentic_rag_backend.cli.chunking import ChunkSize, Overlap, ParentSize, Strategy, Unit, given
from agentic_rag_backend.cli.command import Session, command
from agentic_rag_backend.cli.commands.documents import id_of
from agentic_rag_backend.cli.output import Output, count_of, table
from agentic_rag_backend.errors import InvalidRequest

_SHOWN_CHARACTERS = 160

Source = Annotated[str, typer.Argument(metavar="FILE", help="A file, or the id or key of a document with --document.")]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(name="chunk", help="Chunking of documents.", no_args_is_help=True)
    command(group, "preview")(preview)
    app.add_typer(group)


async def preview(
    session: Session,
    source: Source,
    strategy: Strategy = None,
    chunk_size: ChunkSize = None,
    overlap: Overlap = None,
    unit: Unit = None,
    parent_size: ParentSize = None,
    document: Annotated[bool, typer.Option("--document", help="FILE is a stored document.")] = False,
    limit: Annotated[int, typer.Option("--limit", help="Maximum chunks to show, 1 to 1,000.")] = 100,
    full: Annotated[bool, typer.Option("--full", help="Show the whole text of each chunk.")] = False,
) -> None:
    """Show the chunks of a file. Nothing is stored."""
    chunking = given(strategy=strategy, chunk_size=chunk_size, overlap=overlap, unit=unit, parent_size=parent_size)
    if document:
        body = {"document_id": await id_of(session.client, source), "chunking": chunking, "limit": limit}
        chunking_preview = await session.client.post("/chunking/preview", body)
    else:
        form = {"chunking": json.dumps(chunking), "limit": str(limit)}
        files = {"file": (Path(source).name, _read_content(Path(source)), "application/octet-stream")}
        chunking_preview = (await session.client.request("POST", "/chunking/preview", data=form, files=files))["data"]
    session.output.present(chunking_preview, partial(_show, full=full))


def _read_content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read: {error.strerror or error}") from None


def _show(output: Output, data: dict[str, Any], *, full: bool) -> None:
    rows = [
        [chunk["ordinal"], chunk["size_tokens"], _place(location), _path(location), _shorten_text(chunk, full=full)]
        for chunk in data["chunks"]
        for location in [chunk["location"]]
    ]
    output.show(table(["#chunk", "#tokens", "place", "headings", "text"], rows, droppable=("headings",)))
    options = data["chunking"]
    applied = f"{options['strategy']}, at most {options['chunk_size']} {options['unit']}, overlap {options['overlap']}"
    output.show(f"{data['count']} chunks, {data['size_tokens']} tokens, {data['characters']} characters ({applied})")
    parents = {chunk["parent_id"] for chunk in data["chunks"]} - {None}
    if parents:
        output.show(f"{count_of(len(parents), 'parent')}, at most {options['parent_size']} {options['unit']}")
    usage = data["usage"]
    if usage["calls"]:
        spent = f"{usage['prompt_tokens']} tokens read, {usage['completion_tokens']} written"
        output.show(f"language model: {usage['calls']} calls, {spent}")
    for failure in data["failures"]:
        output.note(f"warning: {failure['message']}")


def _place(location: dict[str, Any]) -> str:
    if location["sheet"]:
        return f"{location['sheet']} {location['cells'] or ''}".strip()
    if location["page"]:
        return f"page {location['page_label'] or location['page']}"
    return f"lines {location['start_line']}-{location['end_line']}"


def _path(location: dict[str, Any]) -> str:
    return " > ".join(location["path"])


def _shorten_text(chunk: dict[str, Any], *, full: bool) -> str:
    """Return the text, or the statements by which search finds the chunk."""
    return _text("\n".join(chunk["statements"]) or chunk["content"], full=full)


def _text(content: str, *, full: bool) -> str:
    if full:
        return content
    line = " ".join(content.split())
    return line if len(line) <= _SHOWN_CHARACTERS else f"{line[: _SHOWN_CHARACTERS - 1]}…"
