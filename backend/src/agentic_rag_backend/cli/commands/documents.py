"""``documents list|show|update|chunk|delete``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentic_rag_backend.cli.chunking import (
    ChunkSize,
    Overlap,
    ParentSize,
    QuestionsOption,
    QuestionsPerChunk,
    Strategy,
    Unit,
    given,
    questions_given,
)
from agentic_rag_backend.cli.command import EVERYTHING, Session, command
from agentic_rag_backend.cli.following import Job, finish_job, succeeded
from agentic_rag_backend.cli.output import Output, fields, when
from agentic_rag_backend.cli.resources import Most, Resource
from agentic_rag_backend.errors import InvalidRequest, NotFound

if TYPE_CHECKING:
    from agentic_rag_backend.cli.session.client import Client

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

DocumentName = Annotated[str, typer.Argument(metavar="DOCUMENT", help="Id or key, as 'documents list' shows them.")]
DOCUMENTS = Resource(
    path="/documents",
    columns={
        "id": "id",
        "key": "key",
        "title": "title",
        "state": "state",
        "#chunks": "chunk_count",
        "updated": lambda document: when(document["updated_at"]),
    },
    droppable=("updated", "title"),
)
Watch = Annotated[bool, typer.Option("--watch-job/--no-watch-job", help="Wait until the job has ended.")]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(name="documents", help="Show, change and delete documents.", no_args_is_help=True)
    command(group, "list")(list_documents)
    command(group, "show")(show)
    command(group, "update", work=True)(update)
    command(group, "chunk", work=True)(chunk)
    command(group, "delete", work=True)(delete)
    app.add_typer(group)


async def list_documents(
    session: Session,
    limit: Most = 50,
    state: Annotated[str | None, typer.Option("--state", help="Only documents in this state.")] = None,
    key: Annotated[str | None, typer.Option("--key", help="Only the document with this key.")] = None,
    parent: Annotated[
        str | None, typer.Option("--parent", metavar="DOCUMENT", help="Only the attachments of this message, by id or key.")
    ] = None,
) -> None:
    """List documents, newest first."""
    parent_id = None if parent is None else await id_of(session.client, parent)
    await DOCUMENTS.list_items(session, limit, state=state, key=key, parent_id=parent_id)


async def show(
    session: Session,
    document: DocumentName,
    chunks: Annotated[bool, typer.Option("--chunks", help="Show its chunks as well, in reading order.")] = False,
) -> None:
    """Show a document."""
    document_id = await id_of(session.client, document)
    detail = await session.client.get(f"/documents/{document_id}")
    chunk_list = await session.client.every(f"/documents/{document_id}/chunks", limit=EVERYTHING) if chunks else None
    if session.output.as_json:
        session.output.result(detail if chunk_list is None else {**detail, "chunks": chunk_list})
        return
    session.output.show(fields(detail))
    for chunk in chunk_list or ():
        location = chunk["location"]
        session.output.show(
            f"\n{chunk['ordinal']}. lines {location['start_line']}-{location['end_line']} · {chunk['id']}", style="bold"
        )
        session.output.show(chunk["content"])


async def update(
    session: Session,
    document: DocumentName,
    title: Annotated[str | None, typer.Option("--title", help="New title.")] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option("--metadata", metavar="KEY=VALUE", help="Set a key. A value that is JSON (7, true, [1, 2]) is parsed."),
    ] = None,
    remove: Annotated[list[str] | None, typer.Option("--remove", metavar="KEY", help="Remove a key.")] = None,
    watch_job: Watch = True,
) -> None:
    """Change a document's title and metadata. Its content, chunks and vectors stay."""
    fields_given = {**dict(map(_field, metadata or ())), **dict.fromkeys(remove or ())}
    body = {"title": title, "metadata": fields_given or None}
    change = {name: value for name, value in body.items() if value is not None}
    if not change:
        raise InvalidRequest("give at least one change: --title, --metadata KEY=VALUE or --remove KEY")
    changed = await session.client.patch(f"/documents/{await id_of(session.client, document)}", change)
    # If the change needs no job, the response names the job of the last version, which has ended.
    job = await session.client.get(f"/jobs/{changed['job_id']}") if changed["job_id"] else None
    await _show_change(session, changed, watch_job=watch_job and job is not None and job["state"] in ("queued", "running"))


async def chunk(
    session: Session,
    document: DocumentName,
    chunk_size: ChunkSize = None,
    overlap: Overlap = None,
    unit: Unit = None,
    strategy: Strategy = None,
    parent_size: ParentSize = None,
    questions: QuestionsOption = None,
    questions_per_chunk: QuestionsPerChunk = None,
    watch_job: Watch = True,
) -> None:
    """Chunk a document again. Absent options have their defaults. The old chunks stay until the new ones are ready."""
    question_options = questions_given(questions, questions_per_chunk)
    sizes = given(chunk_size=chunk_size, overlap=overlap, unit=unit, parent_size=parent_size)
    body = {**sizes, **given(strategy=strategy, questions=question_options)}
    document_id = await id_of(session.client, document)
    await _show_change(session, await session.client.post(f"/documents/{document_id}/chunks", body), watch_job=watch_job)


async def delete(session: Session, document: DocumentName, watch_job: Watch = True) -> None:
    """Delete a document, its attachments and all data derived from them. The receipt counts the removed data."""
    document_id = await id_of(session.client, document)
    accepted = await session.client.delete(f"/documents/{document_id}")
    if watch_job:
        await finish_job(session, accepted["job_id"], title="delete", render=_show_ending(f"deleted {document_id}"))
    else:
        session.output.present(accepted, lambda output, job: output.show(f"job {job['job_id']} is {job['state']}"))


async def id_of(client: Client, document: str) -> str:
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


def _field(text: str) -> tuple[str, object]:
    """Return key and value of ``KEY=VALUE``."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise InvalidRequest(f"--metadata takes KEY=VALUE; got {text[:200]!r}")
    try:
        return key.strip(), json.loads(value)
    except ValueError:
        return key.strip(), value


async def _show_change(session: Session, answer: dict[str, Any], *, watch_job: bool) -> None:
    """Print the result of a change. If the change needs a job, wait for its end."""
    if not answer.get("job_id") or not watch_job:
        session.output.present(answer)
        return
    render = _show_ending(f"changed {answer['id'] if 'id' in answer else answer['document_id']}")
    await finish_job(session, answer["job_id"], title="process", render=render)


def _show_ending(title: str) -> Callable[[Output, Job], None]:
    """Return what prints the result of a job that succeeded, under a title."""
    return lambda output, job: output.show(fields(job["result"] or {}, title=title)) if succeeded(job) else None
