"""``export`` and ``import``: move a tenant between deployments as an archive."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import IO, Annotated

import typer

from agentic_rag_backend.cli.command import DEFAULT_TENANT, Session, command
from agentic_rag_backend.cli.following import failure_reason, follow, succeeded
from agentic_rag_backend.cli.output import console
from agentic_rag_backend.errors import Conflict, InvalidRequest

_BLOCK_BYTES = 1024 * 1024
_MEDIA_TYPE = "application/gzip"


def register(app: typer.Typer) -> None:
    """Add both commands."""
    command(app, "export", operator=True)(export)
    command(app, "import", operator=True, work=True)(import_archive)


async def export(
    session: Session,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Archive to write, such as acme.tar.gz.")],
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
) -> None:
    """Write a tenant's data at one moment to an archive, without keys and secrets."""
    if file.exists() and not force:
        raise Conflict(f"{file} exists; --force replaces it")
    tenant_id = await session.client.tenant_id(session.tenant or DEFAULT_TENANT)
    unfinished = file.with_name(f"{file.name}.part")
    size = 0
    try:
        with unfinished.open("wb") as output:
            async for block in session.client.download(f"/tenants/{tenant_id}/export"):
                output.write(block)
                size += len(block)
        unfinished.replace(file)
    except OSError as error:
        raise InvalidRequest(f"{file} cannot be written: {error.strerror or error}") from error
    finally:
        unfinished.unlink(missing_ok=True)
    session.output.present({"tenant_id": tenant_id, "file": str(file), "size_bytes": size})


async def import_archive(
    session: Session,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Archive that 'export' wrote.")],
    name: Annotated[str | None, typer.Option("--name", help="Name of the new tenant; default: its name in the archive.")] = None,
    watch_job: Annotated[bool, typer.Option("--watch-job/--no-watch-job", help="Wait until it has ended.")] = True,
) -> None:
    """Import a tenant from an archive. Its data becomes visible when the import is complete.

    Without --tenant, the tenant keeps its id. With --tenant, the data gets new ids in that empty tenant, which is created if
    it does not exist. --name makes such a copy, too, if this deployment has the tenant of the archive.
    """
    try:
        with file.open("rb") as content:
            parameters = {"tenant": session.tenant, "name": name}
            accepted = await session.client.upload("/tenants/import", _blocks(content, file), _MEDIA_TYPE, **parameters)
    except OSError as error:
        raise InvalidRequest(f"{file} cannot be read: {error.strerror or error}") from error
    session.client.acting_for(accepted["tenant_id"])
    if not watch_job:
        session.output.present(accepted)
        return
    job = await follow(session.client, accepted["job_id"], title="import")
    session.output.present({"tenant_id": accepted["tenant_id"], **job})
    if not succeeded(job):
        if not session.output.as_json:
            session.output.note(f"error: {failure_reason(job)}")
        raise typer.Exit(1)


async def _blocks(content: IO[bytes], file: Path) -> AsyncIterator[bytes]:
    for block in _show_blocks(iter(lambda: content.read(_BLOCK_BYTES), b""), file):
        yield block


def _show_blocks(blocks: Iterable[bytes], file: Path) -> Iterator[bytes]:
    """Yield blocks, and show the transferred bytes on a terminal."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn())
    with Progress(*columns, console=console(sys.stderr), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("upload", total=file.stat().st_size)
        for block in blocks:
            yield block
            progress.advance(task, len(block))
