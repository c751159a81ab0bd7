"""``documents list|show|delete``."""

from __future__ import annotations

from typing import Annotated

import typer

from agentic_rag_backend.cli.command import EVERYTHING, Session, command
from agentic_rag_backend.cli.following import follow, succeeded, why
from agentic_rag_backend.cli.output import fields, table, when

DocumentId = Annotated[str, typer.Argument(metavar="DOCUMENT_ID", help="Id, as 'documents list' shows it.")]
Most = Annotated[int, typer.Option("--limit", help="Items listed, at most.")]
Watch = Annotated[bool, typer.Option("--watch-job/--no-watch-job", help="Wait until the job has ended.")]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(name="documents", help="Look at documents and delete them.", no_args_is_help=True)
    command(group, "list")(list_documents)
    command(group, "show")(show)
    command(group, "delete", work=True)(delete)
    app.add_typer(group)


async def list_documents(
    session: Session,
    limit: Most = 50,
    state: Annotated[str | None, typer.Option("--state", help="Only those in this state.")] = None,
    key: Annotated[str | None, typer.Option("--key", help="Only the one of this key.")] = None,
) -> None:
    """List documents, newest first."""
    found = await session.client.every("/documents", limit=limit, state=state, key=key)
    if session.output.as_json:
        session.output.result(found)
        return
    rows = [
        [each["id"], each["key"], each["title"], each["state"], each["chunk_count"], when(each["updated_at"])] for each in found
    ]
    session.output.show(table(["id", "key", "title", "state", "#chunks", "updated"], rows))


async def show(
    session: Session,
    document_id: DocumentId,
    chunks: Annotated[bool, typer.Option("--chunks", help="Also its chunks, in reading order.")] = False,
) -> None:
    """Show a document."""
    document = await session.client.get(f"/documents/{document_id}")
    held = await session.client.every(f"/documents/{document_id}/chunks", limit=EVERYTHING) if chunks else None
    if session.output.as_json:
        session.output.result(document if held is None else {**document, "chunks": held})
        return
    session.output.show(fields(document))
    for chunk in held or ():
        place = chunk["location"]
        session.output.show(
            f"\n{chunk['ordinal']}. lines {place['start_line']}-{place['end_line']} · {chunk['id']}", style="bold"
        )
        session.output.show(chunk["content"])


async def delete(session: Session, document_id: DocumentId, watch_job: Watch = True) -> None:
    """Delete a document and all that was made from it; the receipt counts what went."""
    accepted = await session.client.delete(f"/documents/{document_id}")
    if not watch_job:
        _accepted(session, accepted)
        return
    job = await follow(session.client, accepted["job_id"], title="delete")
    if session.output.as_json:
        session.output.result(job)
    elif succeeded(job):
        session.output.show(fields(job["result"] or {}, title=f"deleted {document_id}"))
    else:
        session.output.note(f"error: {why(job)}")
    if not succeeded(job):
        raise typer.Exit(1)


def _accepted(session: Session, accepted: dict[str, object]) -> None:
    if session.output.as_json:
        session.output.result(accepted)
    else:
        session.output.show(f"job {accepted['job_id']} is {accepted['state']}")
