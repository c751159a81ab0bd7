"""``tenants create|delete|keys``, for the operator."""

from __future__ import annotations

from typing import Annotated

import typer

from agentic_rag_backend.cli.command import Session, join_path
from agentic_rag_backend.cli.output import fields, format_time
from agentic_rag_backend.cli.resources import Resource

TenantName = Annotated[str, typer.Argument(metavar="TENANT", help="Name or id of the tenant.")]

TENANTS = Resource(
    path="/tenants",
    columns={"id": "id", "name": "name", "state": "state", "created": lambda tenant: format_time(tenant["created_at"])},
    droppable=("created",),
    operator=True,
)
KEYS = Resource(
    path="/tenants/{tenant_id}/keys",
    columns={
        "id": "id",
        "name": "name",
        "scopes": "scopes",
        "created": lambda key: format_time(key["created_at"]),
        "revoked": lambda key: format_time(key["revoked_at"]),
    },
    droppable=("created", "scopes"),
)


async def create_tenant(
    session: Session, name: Annotated[str, typer.Argument(metavar="NAME", help="1 to 128 characters.")]
) -> None:
    """Create a tenant without keys."""
    session.output.present(await session.client.post("/tenants", {"name": name}))


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
    scope: Annotated[list[str] | None, typer.Option("--scope", help="read, write or admin; default: admin.")] = None,
) -> None:
    """Issue a key. Its secret is shown only now."""
    path = await _find_keys_path(session, tenant_name)
    session.output.present(await session.client.post(path, {"name": name, "scopes": scope or None}))


async def revoke_key(session: Session, tenant_name: TenantName, key_id: Annotated[str, typer.Argument(metavar="KEY_ID")]) -> None:
    """Revoke a key. The next request with it is refused."""
    await session.client.delete(join_path(await _find_keys_path(session, tenant_name), key_id))
    session.output.present({"id": key_id, "revoked": True})


async def _find_keys_path(session: Session, tenant_name: str) -> str:
    return KEYS.path.format(tenant_id=await session.client.find_tenant_id(tenant_name))
