"""``tenants create|list|delete|keys``, for the operator."""

from __future__ import annotations

from typing import Annotated

import typer

from agentic_rag_backend.cli.command import Session, command
from agentic_rag_backend.cli.output import fields, when
from agentic_rag_backend.cli.resources import Resource, list_command

TenantName = Annotated[str, typer.Argument(metavar="TENANT", help="Name or id of the tenant.")]

TENANTS = Resource(
    path="/tenants",
    columns={"id": "id", "name": "name", "state": "state", "created": lambda tenant: when(tenant["created_at"])},
    droppable=("created",),
)
KEYS = Resource(
    path="/tenants/{tenant_id}/keys",
    columns={
        "id": "id",
        "name": "name",
        "scopes": "scopes",
        "created": lambda key: when(key["created_at"]),
        "revoked": lambda key: when(key["revoked_at"]),
    },
    droppable=("created", "scopes"),
)


def register(app: typer.Typer) -> None:
    """Add the group and, in it, the group of keys."""
    group = typer.Typer(name="tenants", help="Tenants and their keys; requires the operator's key.", no_args_is_help=True)
    command(group, "create", operator=True)(create)
    command(group, "list", operator=True)(list_command(TENANTS, "List tenants, newest first."))
    command(group, "delete", operator=True)(delete)
    keys = typer.Typer(name="keys", help="Keys of a tenant.", no_args_is_help=True)
    command(keys, "list", operator=True)(list_keys)
    command(keys, "create", operator=True)(create_key)
    command(keys, "revoke", operator=True)(revoke_key)
    group.add_typer(keys)
    app.add_typer(group)


async def create(session: Session, name: Annotated[str, typer.Argument(metavar="NAME", help="1 to 128 characters.")]) -> None:
    """Create a tenant without keys."""
    session.output.present(await session.client.post("/tenants", {"name": name}))


async def delete(
    session: Session,
    tenant_name: TenantName,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete a tenant and all its data permanently."""
    tenant_id = await session.client.tenant_id(tenant_name)
    if not yes:
        typer.confirm(f"Delete tenant {tenant_id} and all its data?", abort=True, err=True)
    receipt = await session.client.delete(f"/tenants/{tenant_id}")
    title = f"{receipt['state']} {tenant_id}"
    session.output.present(receipt, lambda output, deleted: output.show(fields(deleted["removed"], title=title)))


async def list_keys(session: Session, tenant_name: TenantName) -> None:
    """List a tenant's keys, newest first, including revoked keys."""
    tenant_id = await session.client.tenant_id(tenant_name)
    session.output.present(await session.client.get(f"/tenants/{tenant_id}/keys"), KEYS.show_items)


async def create_key(
    session: Session,
    tenant_name: TenantName,
    name: Annotated[str, typer.Option("--name", help="Purpose of the key.")] = "default",
    scope: Annotated[list[str] | None, typer.Option("--scope", help="read, write or admin; default: admin.")] = None,
) -> None:
    """Issue a key. Its secret is shown only now."""
    tenant_id = await session.client.tenant_id(tenant_name)
    session.output.present(await session.client.post(f"/tenants/{tenant_id}/keys", {"name": name, "scopes": scope or None}))


async def revoke_key(session: Session, tenant_name: TenantName, key_id: Annotated[str, typer.Argument(metavar="KEY_ID")]) -> None:
    """Revoke a key. The next request with it is refused."""
    tenant_id = await session.client.tenant_id(tenant_name)
    await session.client.delete(f"/tenants/{tenant_id}/keys/{key_id}")
    session.output.present({"id": key_id, "revoked": True})
