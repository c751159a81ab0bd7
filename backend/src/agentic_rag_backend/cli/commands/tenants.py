"""``tenants create|delete|keys``, ``export`` and ``import``, for the operator."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from agentic_rag_backend.cli.command import DEFAULT_TENANT, Session, join_path
from agentic_rag_backend.cli.following import follow_job, require_success
from agentic_rag_backend.cli.options import parse_filter
from agentic_rag_backend.cli.output import fields, format_time
from agentic_rag_backend.cli.progress import ProgressDisplay
from agentic_rag_backend.cli.resources import Item, Limit, Resource
from agentic_rag_backend.errors import Conflict, InvalidRequest

_BLOCK_BYTES = 1024 * 1024
_MEDIA_TYPE = "application/gzip"


async def export_tenant(
    session: Session,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Archive to write, such as acme.tar.gz.")],
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
) -> None:
    """Write a tenant's data at one moment to an archive, without keys and secrets."""
    if file.exists() and not force:
        raise Conflict(f"{file} exists; --force replaces it")
    tenant_id = await session.client.find_tenant_id(session.tenant or DEFAULT_TENANT)
    size = await write_file(session.client.download(f"/tenants/{tenant_id}/export"), file)
    session.output.present({"tenant_id": tenant_id, "file": str(file), "size_bytes": size})


async def write_file(blocks: AsyncIterator[bytes], path: Path) -> int:
    """Write a file as a whole and return its size in bytes. An interrupted download leaves no part of it.

    Raises:
        InvalidRequest: the file cannot be written.
    """
    unfinished = path.with_name(f"{path.name}.part")
    size = 0
    try:
        with unfinished.open("wb") as output:
            async for block in blocks:
                size += output.write(block)
        unfinished.replace(path)
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return size


async def import_tenant(
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
            blocks = _read_blocks(content, file.stat().st_size)
            accepted = await session.client.upload("/tenants/import", blocks, _MEDIA_TYPE, **parameters)
    except OSError as error:
        raise InvalidRequest(f"{file} cannot be read: {error.strerror or error}") from error
    session.client.act_for(accepted["tenant_id"])
    if not watch_job:
        session.output.present(accepted)
        return
    job = await follow_job(session.client, accepted["job_id"], title="import")
    session.output.present({"tenant_id": accepted["tenant_id"], **job})
    require_success(session.output, job)


async def _read_blocks(content: IO[bytes], size: int) -> AsyncIterator[bytes]:
    """Yield blocks, and show the share of the file that was transferred."""
    with ProgressDisplay("upload", total=size, counted=False) as display:
        for block in iter(lambda: content.read(_BLOCK_BYTES), b""):
            yield block
            display.update("upload", completed=content.tell())


TenantName = Annotated[str, typer.Argument(metavar="TENANT", help="Name or id of the tenant.")]


def _list_labels(tenant: Item) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(tenant["labels"].items()))


TENANTS = Resource(
    path="/tenants",
    columns={
        "id": "id",
        "name": "name",
        "state": "state",
        "labels": _list_labels,
        "created": lambda tenant: format_time(tenant["created_at"]),
    },
    droppable=("created", "labels"),
    operator=True,
)
KEYS = Resource(
    path="/tenants/{tenant_id}/keys",
    columns={
        "id": "id",
        "name": "name",
        "prefix": "prefix",
        "scopes": "scopes",
        "created": lambda key: format_time(key["created_at"]),
        "used": lambda key: format_time(key["last_used_at"]),
        "expires": lambda key: format_time(key["expires_at"]),
        "revoked": lambda key: format_time(key["revoked_at"]),
    },
    droppable=("created", "scopes", "prefix", "used"),
)


async def create_tenant(
    session: Session, name: Annotated[str, typer.Argument(metavar="NAME", help="1 to 128 characters.")]
) -> None:
    """Create a tenant without keys."""
    session.output.present(await session.client.post("/tenants", {"name": name}))


LabelOption = Annotated[
    list[str] | None, typer.Option("--label", metavar="NAME=VALUE", help="Label; may be given several times.")
]


async def list_tenants(session: Session, limit: Limit = 50, label: LabelOption = None) -> None:
    """List tenants, newest first. With --label, those that have all of these labels."""
    await TENANTS.list_items(session, limit, **{f"labels.{name}": value for name, value in read_labels(label or []).items()})


def read_labels(pairs: Sequence[str]) -> dict[str, str]:
    """Return the labels of ``NAME=VALUE`` pairs.

    Raises:
        InvalidRequest: a pair has no ``=``.
    """
    wrong = [pair for pair in pairs if "=" not in pair]
    if wrong:
        raise InvalidRequest(f"--label must be NAME=VALUE; got {wrong[0][:80]!r}")
    return dict(pair.split("=", 1) for pair in pairs)


async def change_tenant(
    session: Session,
    tenant_name: TenantName,
    name: Annotated[str | None, typer.Option("--name", help="New name.")] = None,
    label: LabelOption = None,
    no_labels: Annotated[bool, typer.Option("--no-labels", help="Remove all labels.")] = False,
) -> None:
    """Rename a tenant, or replace its labels."""
    labels = read_labels(label or []) if label or no_labels else None
    await _change_tenant(session, tenant_name, {"name": name, "labels": labels})


async def suspend_tenant(session: Session, tenant_name: TenantName) -> None:
    """Refuse a tenant's keys, and let its jobs wait. Its data stays."""
    await _change_tenant(session, tenant_name, {"suspended": True})


async def resume_tenant(session: Session, tenant_name: TenantName) -> None:
    """Accept a suspended tenant's keys again, and continue its jobs."""
    await _change_tenant(session, tenant_name, {"suspended": False})


async def _change_tenant(session: Session, tenant_name: str, body: dict[str, Any]) -> None:
    path = join_path(TENANTS.path, await session.client.find_tenant_id(tenant_name))
    session.output.present(await session.client.patch(path, body))


async def delete_tenant(
    session: Session,
    tenant_name: TenantName,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete a tenant and all its data permanently."""
    tenant_id = await session.client.find_tenant_id(tenant_name)
    if not yes:
        typer.confirm(f"Delete tenant {tenant_id} and all its data?", abort=True, err=True)
    receipt = await session.client.delete(f"/tenants/{tenant_id}")
    title = f"{receipt['state']} {tenant_id}"
    session.output.present(receipt, lambda output, deleted: output.show(fields(deleted["removed"], title=title)))


async def list_keys(session: Session, tenant_name: TenantName) -> None:
    """List a tenant's keys, newest first, including revoked keys."""
    session.output.present(await session.client.get(await _find_keys_path(session, tenant_name)), KEYS.show_items)


async def create_key(
    session: Session,
    tenant_name: TenantName,
    name: Annotated[str, typer.Option("--name", help="Purpose of the key.")] = "default",
    scope: Annotated[list[str] | None, typer.Option("--scope", help="read, write or admin; default: read.")] = None,
    expires_at: Annotated[
        str | None,
        typer.Option("--expires-at", metavar="TIME", help="Time or day, such as 2027-05-31, after which it is refused."),
    ] = None,
    filter: Annotated[
        str | None,
        typer.Option(
            "--filter", metavar="JSON", help="Filter of the documents that it may read, as a JSON object; default: all."
        ),
    ] = None,
) -> None:
    """Issue a key. Its secret is shown only now."""
    path = await _find_keys_path(session, tenant_name)
    body = {"name": name, "scopes": scope or None, "expires_at": expires_at, "filter": parse_filter(filter)}
    session.output.present(await session.client.post(path, body))


KeyId = Annotated[str, typer.Argument(metavar="KEY_ID")]


async def rotate_key(
    session: Session,
    tenant_name: TenantName,
    key_id: KeyId,
    overlap_s: Annotated[
        int | None, typer.Option("--overlap-s", help="Seconds for which the replaced key still works; default: 3600.")
    ] = None,
) -> None:
    """Issue a key that replaces another. Its secret is shown only now."""
    path = f"{join_path(await _find_keys_path(session, tenant_name), key_id)}/rotate"
    session.output.present(await session.client.post(path, {"overlap_s": overlap_s}))


async def revoke_key(session: Session, tenant_name: TenantName, key_id: KeyId) -> None:
    """Revoke a key. The next request with it is refused."""
    await session.client.delete(join_path(await _find_keys_path(session, tenant_name), key_id))
    session.output.present({"id": key_id, "revoked": True})


async def _find_keys_path(session: Session, tenant_name: str) -> str:
    return KEYS.path.format(tenant_id=await session.client.find_tenant_id(tenant_name))
