"""``documents list|show|update|chunk|delete``, and ``chunk preview``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentic_rag_backend.cli.command import EVERYTHING, Session
from agentic_rag_backend.cli.following import Job, finish_job, is_successful
from agentic_rag_backend.cli.options import ChunkingStrategy, ChunkSizes, QuestionOptions, WatchJob, drop_unset, parse_assignment
from agentic_rag_backend.cli.output import Output, count_of, fields, format_time, table
from agentic_rag_backend.cli.resources import Limit, Resource
from agentic_rag_backend.errors import InvalidRequest, NotFound

if TYPE_CHECKING:
    from agentic_rag_backend.cli.session.client import Client

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_EXCERPT_CHARACTERS = 160

DocumentName = Annotated[str, typer.Argument(metavar="DOCUMENT", help="Id or key, as 'documents list' shows them.")]
DOCUMENTS = Resource(
    path="/documents",
    columns={
        "id": "id",
        "key": "key",
        "title": "title",
        "state": "state",
        "#chunks": "chunk_count",
        "updated": lambda document: format_time(document["updated_at"]),
    },
    droppable=("updated", "title"),
)


async def list_documents(
    session: Session,
    limit: Limit = 50,
    state: Annotated[str | None, typer.Option("--state", help="Only documents in this state.")] = None,
    key: Annotated[str | None, typer.Option("--key", help="Only the document with this key.")] = None,
    parent: Annotated[
        str | None, typer.Option("--parent", metavar="DOCUMENT", help="Only the attachments of this message, by id or key.")
    ] = None,
) -> None:
    """List documents, newest first."""
    parent_id = None if parent is None else await find_document_id(session.client, parent)
    await DOCUMENTS.list_items(session, limit, state=state, key=key, parent_id=parent_id)


async def show_document(
    session: Session,
    document: DocumentName,
    chunks: Annotated[bool, typer.Option("--chunks", help="Show its chunks as well, in reading order.")] = False,
) -> None:
    """Show a document."""
    path = f"/documents/{await find_document_id(session.client, document)}"
    shown_fields = await session.client.get(path)
    chunk_list = await session.client.every(f"{path}/chunks", limit=EVERYTHING) if chunks else None
    if session.output.as_json:
        session.output.result(shown_fields if chunk_list is None else {**shown_fields, "chunks": chunk_list})
        return
    session.output.show(fields(shown_fields))
    for chunk in chunk_list or ():
        lines = f"lines {chunk['location']['start_line']}-{chunk['location']['end_line']}"
        session.output.show(f"\n{chunk['ordinal']}. {lines} · {chunk['id']}", style="bold")
        session.output.show(chunk["content"])


async def update_document(
    session: Session,
    document: DocumentName,
    title: Annotated[str | None, typer.Option("--title", help="New title.")] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option("--metadata", metavar="KEY=VALUE", help="Set a key. A value that is JSON (7, true, [1, 2]) is parsed."),
    ] = None,
    remove: Annotated[list[str] | None, typer.Option("--remove", metavar="KEY", help="Remove a key.")] = None,
    watch_job: WatchJob = True,
) -> None:
    """Change a document's title and metadata. Its content, chunks and vectors stay."""
    assigned = dict(parse_assignment("--metadata", "takes KEY=VALUE", text, limit=200) for text in metadata or ())
    change = drop_unset(title=title, metadata={**assigned, **dict.fromkeys(remove or ())} or None)
    if not change:
        raise InvalidRequest("give at least one change: --title, --metadata KEY=VALUE or --remove KEY")
    document_id = await find_document_id(session.client, document)
    changed = await session.client.patch(f"/documents/{document_id}", change)
    # If the change needs no job, the response names the job of the last version, which has ended.
    job = await session.client.get(f"/jobs/{changed['job_id']}") if changed["job_id"] else None
    watched = watch_job and job is not None and job["state"] in ("queued", "running")
    await _finish_change(session, document_id, changed, watch_job=watched)


async def chunk_document(
    session: Session,
    document: DocumentName,
    *,
    sizes: ChunkSizes,
    strategy: ChunkingStrategy = None,
    questions: QuestionOptions,
    watch_job: WatchJob = True,
) -> None:
    """Chunk a document again. Absent options have their defaults. The old chunks stay until the new ones are ready."""
    body = {**sizes.as_body(strategy), **drop_unset(questions=questions.as_body())}
    document_id = await find_document_id(session.client, document)
    accepted = await session.client.post(f"/documents/{document_id}/chunks", body)
    await _finish_change(session, document_id, accepted, watch_job=watch_job)


async def delete_document(session: Session, document: DocumentName, watch_job: WatchJob = True) -> None:
    """Delete a document, its attachments and all data derived from them. The receipt counts the removed data."""
    document_id = await find_document_id(session.client, document)
    accepted = await session.client.delete(f"/documents/{document_id}")
    if watch_job:
        await finish_job(session, accepted["job_id"], title="delete", render=_render_result(f"deleted {document_id}"))
    else:
        session.output.present(accepted, lambda output, job: output.show(f"job {job['job_id']} is {job['state']}"))


async def find_document_id(client: Client, document: str) -> str:
    """Return the id of the document with this id or, if there is none, with this key.

    Raises:
        NotFound: the document does not exist.
    """
    if _ID.fullmatch(document):
        try:
            return str((await client.get(f"/documents/{document}"))["id"])
        except NotFound:
            pass  # a key may look like an id
    documents = await client.every("/documents", limit=1, key=document)
    if not documents:
        raise NotFound(f"no document has the id or key {document[:200]!r}; 'agentic-rag documents list' lists the documents")
    return str(documents[0]["id"])


async def _finish_change(session: Session, document_id: str, reply: Mapping[str, Any], *, watch_job: bool) -> None:
    """Print the result of a change. If the change needs a job, wait for its end."""
    if reply.get("job_id") and watch_job:
        await finish_job(session, reply["job_id"], title="process", render=_render_result(f"changed {document_id}"))
    else:
        session.output.present(reply)


def _render_result(title: str) -> Callable[[Output, Job], None]:
    """Return what prints the result of a job that succeeded, under a title."""
    return lambda output, job: output.show(fields(job["result"] or {}, title=title)) if is_successful(job) else None


async def preview_chunks(
    session: Session,
    source: Annotated[str, typer.Argument(metavar="FILE", help="A file, or the id or key of a document with --document.")],
    *,
    strategy: ChunkingStrategy = None,
    sizes: ChunkSizes,
    document: Annotated[bool, typer.Option("--document", help="FILE is a stored document.")] = False,
    limit: Annotated[int, typer.Option("--limit", help="Maximum chunks to show, 1 to 1,000.")] = 100,
    full: Annotated[bool, typer.Option("--full", help="Show the whole text of each chunk.")] = False,
) -> None:
    """Show the chunks of a file. Nothing is stored."""
    chunking = sizes.as_body(strategy)
    if document:
        body = {"document_id": await find_document_id(session.client, source), "chunking": chunking, "limit": limit}
        preview = await session.client.post("/chunking/preview", body)
    else:
        form = {"chunking": json.dumps(chunking), "limit": str(limit)}
        files = {"file": (Path(source).name, _read_content(Path(source)), "application/octet-stream")}
        preview = (await session.client.request("POST", "/chunking/preview", data=form, files=files))["data"]
    session.output.present(preview, partial(_show_preview, full=full))


def _read_content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read: {error.strerror or error}") from None


def _show_preview(output: Output, preview: Mapping[str, Any], *, full: bool) -> None:
    rows = [_make_row(chunk, full=full) for chunk in preview["chunks"]]
    output.show(table(["#chunk", "#tokens", "place", "headings", "text"], rows, droppable=("headings",)))
    options = preview["chunking"]
    applied = f"{options['strategy']}, at most {options['chunk_size']} {options['unit']}, overlap {options['overlap']}"
    output.show(f"{preview['count']} chunks, {preview['size_tokens']} tokens, {preview['characters']} characters ({applied})")
    parents = {chunk["parent_id"] for chunk in preview["chunks"]} - {None}
    if parents:
        output.show(f"{count_of(len(parents), 'parent')}, at most {options['parent_size']} {options['unit']}")
    usage = preview["usage"]
    if usage["calls"]:
        spent = f"{usage['prompt_tokens']} tokens read, {usage['completion_tokens']} written"
        output.show(f"language model: {usage['calls']} calls, {spent}")
    for failure in preview["failures"]:
        output.note(f"warning: {failure['message']}")


def _make_row(chunk: Mapping[str, Any], *, full: bool) -> list[object]:
    """Return the cells of a chunk. If search finds it by statements, they replace its text."""
    location = chunk["location"]
    if location["sheet"]:
        position = f"{location['sheet']} {location['cells'] or ''}".strip()
    elif location["page"]:
        position = f"page {location['page_label'] or location['page']}"
    else:
        position = f"lines {location['start_line']}-{location['end_line']}"
    content = "\n".join(chunk["statements"]) or chunk["content"]
    if not full:
        line = " ".join(content.split())
        content = line if len(line) <= _EXCERPT_CHARACTERS else f"{line[: _EXCERPT_CHARACTERS - 1]}…"
    return [chunk["ordinal"], chunk["size_tokens"], position, " > ".join(location["path"]), content]
