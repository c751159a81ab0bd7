"""The tenant directory on SQL."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Column, bindparam, delete, func, insert, select, update
from sqlalchemy.engine import Connection, RowMapping
from sqlalchemy.exc import IntegrityError

from agentic_rag_backend.domain.tenant import ApiKey, Principal, Scope, Tenant, TenantId, TenantState, require_tenant
from agentic_rag_backend.errors import Conflict, NotFound
from agentic_rag_backend.stores.catalogue import communities
from agentic_rag_backend.stores.catalogue.base import Page
from agentic_rag_backend.stores.catalogue.columns import plain, utc_now
from agentic_rag_backend.stores.catalogue.database import Database
from agentic_rag_backend.stores.catalogue.outbox import Topic
from agentic_rag_backend.stores.catalogue.outbox_rows import record
from agentic_rag_backend.stores.catalogue.pages import beyond, check_limit, time_cursor
from agentic_rag_backend.stores.catalogue.rows import batches, lock_tenant, raise_state_version, upsert
from agentic_rag_backend.stores.catalogue.tables import api_keys, metadata, removed_tenants, tenants

_SCOPE = "tenants"
_OF_COMMUNITIES = {"content_version", "content_changed_at", "stale_since", "rebuild_asked_at"}
_AUTHENTICATE = (
    select(
        api_keys.c.id.label("key_id"),
        api_keys.c.scopes,
        *(column for column in tenants.c if column.name not in _OF_COMMUNITIES),
    )
    .join(tenants, tenants.c.tenant_id == api_keys.c.tenant_id)
    .where(
        api_keys.c.secret_sha256 == bindparam("secret"),
        api_keys.c.revoked_at.is_(None),
        tenants.c.state != TenantState.DELETING.value,
    )
)


class SqlTenants:
    """Implements `TenantDirectory`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, name: str, *, tenant_id: TenantId | None = None) -> Tenant:
        """Create a tenant."""
        new = TenantId.new() if tenant_id is None else require_tenant(tenant_id)
        try:
            return await self._database.write(_create, new, name)
        except IntegrityError as error:
            raise Conflict(f"there is a tenant {name!r} or {new} already") from error

    async def tenant(self, tenant: TenantId) -> Tenant:
        """Return the tenant."""
        return await self._database.read(_tenant, require_tenant(tenant))

    async def tenant_by_name(self, name: str) -> Tenant | None:
        """Return the tenant of that name."""

        def find(connection: Connection) -> Tenant | None:
            row = connection.execute(select(tenants).where(tenants.c.name == name)).mappings().first()
            return None if row is None else _tenant_from(row)

        return await self._database.read(find)

    async def tenants(self, *, limit: int, cursor: str | None = None) -> Page[Tenant]:
        """List tenants by creation."""
        check_limit(limit)
        statement = select(tenants)
        if cursor is not None:
            statement = statement.where(beyond(tenants, _SCOPE, cursor, newest_first=False))
        statement = statement.order_by(tenants.c.created_at, tenants.c.tenant_id).limit(limit + 1)

        def page(connection: Connection) -> Page[Tenant]:
            found = [_tenant_from(row) for row in connection.execute(statement).mappings()]
            last = found[limit - 1] if len(found) > limit else None
            return Page(tuple(found[:limit]), time_cursor(_SCOPE, last.created_at, last.id.value) if last else None)

        return await self._database.read(page)

    async def known(self, ids: Iterable[TenantId]) -> frozenset[TenantId]:
        """Return those of ``ids`` that are tenants here."""
        return await self._database.read(_among, tenants.c.tenant_id, list(ids))

    async def removed(self, ids: Iterable[TenantId]) -> frozenset[TenantId]:
        """Return those of ``ids`` whose removal is on record."""
        return await self._database.read(_among, removed_tenants.c.removed_id, list(ids))

    async def rebuilds_due(
        self, quiet_since: datetime, stale_since: datetime, asked_before: datetime, *, limit: int
    ) -> list[TenantId]:
        """Return tenants whose communities are to be rebuilt."""
        return await self._database.read(communities.rebuilds_due, quiet_since, stale_since, asked_before, limit)

    async def mark_deleting(self, tenant: TenantId) -> None:
        """Refuse further requests of the tenant."""
        await self._database.write(_mark_deleting, require_tenant(tenant))

    async def remove(self, tenant: TenantId) -> Mapping[str, int]:
        """Remove every row of the tenant in every table, and record that it is removed."""
        return await self._database.write(_remove, require_tenant(tenant))

    async def add_key(
        self, tenant: TenantId, *, name: str, secret_sha256: str, scopes: Sequence[Scope], key_id: str | None = None
    ) -> ApiKey:
        """Record a key by its secret's SHA-256; `Conflict` if that secret, or the id, is in use."""
        key = ApiKey(key_id or str(uuid.uuid4()), require_tenant(tenant), name, frozenset(scopes), utc_now())
        try:
            await self._database.write(_add_key, key, secret_sha256)
        except IntegrityError as error:
            raise Conflict("that secret or that key's id is in use already") from error
        return key

    async def keys(self, tenant: TenantId) -> Sequence[ApiKey]:
        """List a tenant's keys, revoked ones included."""
        statement = (
            select(api_keys)
            .where(api_keys.c.tenant_id == require_tenant(tenant).value)
            .order_by(api_keys.c.created_at, api_keys.c.id)
        )

        def find(connection: Connection) -> Sequence[ApiKey]:
            return [_key_from(row) for row in connection.execute(statement).mappings()]

        return await self._database.read(find)

    async def revoke_key(self, tenant: TenantId, key_id: str) -> None:
        """Make a key useless from the next request on; repeating it keeps the first time."""
        await self._database.write(_revoke_key, require_tenant(tenant), key_id)

    async def authenticate(self, secret_sha256: str) -> Principal | None:
        """Return who holds the key, in one statement."""
        return await self._database.read(_authenticate, secret_sha256)

    async def flags(self, tenant: TenantId) -> Mapping[str, Any]:
        """Return the flags the tenant has set; none for a tenant that does not exist."""
        return await self._database.read(_flags, require_tenant(tenant))

    async def set_flags(self, tenant: TenantId, flags: Mapping[str, Any]) -> Mapping[str, Any]:
        """Set flags and raise ``state_version``."""
        return await self._database.write(_set_flags, require_tenant(tenant), flags)


def _tenant_from(row: RowMapping) -> Tenant:
    return Tenant(TenantId(row["tenant_id"]), row["name"], TenantState(row["state"]), row["state_version"], row["created_at"])


def _key_from(row: RowMapping) -> ApiKey:
    scopes = frozenset(Scope(scope) for scope in row["scopes"])
    return ApiKey(row["id"], TenantId(row["tenant_id"]), row["name"], scopes, row["created_at"], row["revoked_at"])


def _create(connection: Connection, tenant: TenantId, name: str) -> Tenant:
    made = Tenant(tenant, name, TenantState.ACTIVE, 0, utc_now())
    row: dict[str, Any] = {
        "tenant_id": tenant.value,
        "name": name,
        "state": made.state.value,
        "state_version": 0,
        "content_version": 0,
        "flags": {},
        "created_at": made.created_at,
    }
    connection.execute(insert(tenants), row)
    return made


def _tenant(connection: Connection, tenant: TenantId) -> Tenant:
    row = connection.execute(select(tenants).where(tenants.c.tenant_id == tenant.value)).mappings().first()
    if row is None:
        raise NotFound(f"there is no tenant {tenant}")
    return _tenant_from(row)


def _among(connection: Connection, column: Column[str], ids: Sequence[TenantId]) -> frozenset[TenantId]:
    found: set[TenantId] = set()
    for some in batches(ids):
        held = connection.execute(select(column).where(column.in_([each.value for each in some]))).scalars()
        found.update(TenantId(value) for value in held)
    return frozenset(found)


def _mark_deleting(connection: Connection, tenant: TenantId) -> None:
    statement = update(tenants).where(tenants.c.tenant_id == tenant.value).values(state=TenantState.DELETING.value)
    if connection.execute(statement).rowcount == 0:
        raise NotFound(f"there is no tenant {tenant}")
    record(connection, tenant, Topic.TENANT, tenant.value)


def _remove(connection: Connection, tenant: TenantId) -> Mapping[str, int]:
    upsert(connection, removed_tenants, [{"removed_id": tenant.value, "removed_at": utc_now()}], keys=("removed_id",))
    # From the schema, children first, so that no table can be forgotten.
    return {
        table.name: connection.execute(delete(table).where(table.c.tenant_id == tenant.value)).rowcount
        for table in reversed(metadata.sorted_tables)
        if "tenant_id" in table.c
    }


def _add_key(connection: Connection, key: ApiKey, secret_sha256: str) -> None:
    lock_tenant(connection, key.tenant_id)
    row = {
        "tenant_id": key.tenant_id.value,
        "id": key.id,
        "name": key.name,
        "secret_sha256": secret_sha256,
        "scopes": sorted(scope.value for scope in key.scopes),
        "created_at": key.created_at,
    }
    connection.execute(insert(api_keys), row)


def _revoke_key(connection: Connection, tenant: TenantId, key_id: str) -> None:
    statement = (
        update(api_keys)
        .where(api_keys.c.tenant_id == tenant.value, api_keys.c.id == key_id)
        .values(revoked_at=func.coalesce(api_keys.c.revoked_at, bindparam("now", utc_now(), type_=api_keys.c.revoked_at.type)))
    )
    if connection.execute(statement).rowcount == 0:
        raise NotFound(f"there is no key {key_id!r}")


def _authenticate(connection: Connection, secret_sha256: str) -> Principal | None:
    row = connection.execute(_AUTHENTICATE, {"secret": secret_sha256}).mappings().first()
    if row is None:
        return None
    scopes = frozenset(Scope(scope) for scope in row["scopes"])
    return Principal(_tenant_from(row), scopes, row["key_id"], flags=row["flags"])


def _flags(connection: Connection, tenant: TenantId) -> Mapping[str, Any]:
    held: Mapping[str, Any] | None = connection.execute(
        select(tenants.c.flags).where(tenants.c.tenant_id == tenant.value)
    ).scalar_one_or_none()
    return held or {}


def _set_flags(connection: Connection, tenant: TenantId, flags: Mapping[str, Any]) -> Mapping[str, Any]:
    lock_tenant(connection, tenant)
    merged = {**_flags(connection, tenant), **plain(flags)}
    held = {name: value for name, value in merged.items() if value is not None}
    # A rebuild that was not wanted may be by now.
    changed = {"flags": held, "rebuild_asked_at": None}
    connection.execute(update(tenants).where(tenants.c.tenant_id == tenant.value).values(changed))
    raise_state_version(connection, tenant)
    return held
