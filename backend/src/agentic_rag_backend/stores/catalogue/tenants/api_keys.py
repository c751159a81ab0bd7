"""Keys of tenants. Only the SHA-256 (hex) of a secret and its beginning are stored."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, func, insert, or_, select, update
from sqlalchemy.engine import Connection, RowMapping
from sqlalchemy.exc import IntegrityError

from agentic_rag_backend.domain.quota import read_values, store_values
from agentic_rag_backend.domain.tenant import ApiKey, Credential, KeyRequest, Principal, Scope, TenantId, TenantState
from agentic_rag_backend.errors import Conflict, NotFound
from agentic_rag_backend.stores.catalogue.columns import plain, utc_now
from agentic_rag_backend.stores.catalogue.operations import batches, lock_tenant
from agentic_rag_backend.stores.catalogue.tables import api_keys, tenants
from agentic_rag_backend.stores.catalogue.tenants.tenant_rows import tenant_from

USED_AGAIN_AFTER = timedelta(minutes=1)
"""Time for which a recorded use of a key stands for all its uses."""

_OF_JOBS = {"content_version", "content_changed_at", "stale_since", "tree_stale_since", "rebuild_asked_at", "ontology"}
"""Columns of a tenant that requests do not need."""
_AUTHENTICATE = (
    select(
        api_keys.c.id.label("key_id"),
        api_keys.c.scopes,
        api_keys.c.expires_at,
        api_keys.c.last_used_at,
        api_keys.c.revoked_at,
        api_keys.c.filter,
        api_keys.c.quota.label("key_quota"),
        *(column for column in tenants.c if column.name not in _OF_JOBS),
    )
    .join(tenants, tenants.c.tenant_id == api_keys.c.tenant_id)
    .where(api_keys.c.secret_sha256 == bindparam("secret"), tenants.c.state != TenantState.DELETING.value)
)
_USE_AT = bindparam("used_at", type_=api_keys.c.last_used_at.type)
_NOTE_USE = (
    update(api_keys)
    .where(
        api_keys.c.tenant_id == bindparam("tenant"),
        api_keys.c.id == bindparam("key"),
        or_(
            api_keys.c.last_used_at.is_(None),
            api_keys.c.last_used_at <= bindparam("recorded_before", type_=api_keys.c.last_used_at.type),
        ),
    )
    .values(last_used_at=_USE_AT)
)


def add(
    connection: Connection,
    tenant: TenantId,
    request: KeyRequest,
    *,
    secret_sha256: str,
    prefix: str | None = None,
    key_id: str | None = None,
) -> ApiKey:
    """Record a key.

    Args:
        prefix: the beginning of the secret.
        key_id: its id, which only one of several processes can assign.

    Raises:
        NotFound: the tenant does not exist.
        Conflict: a key of the tenant that works has the name, or the id or the secret is in use, revoked keys included.
    """
    lock_tenant(connection, tenant)
    _require_free_name(connection, tenant, request.name)
    key = ApiKey(
        key_id or str(uuid.uuid4()),
        tenant,
        request.name,
        frozenset(request.scopes),
        utc_now(),
        prefix=prefix,
        expires_at=request.expires_at,
        filter=request.filter,
    )
    _insert(connection, key, secret_sha256)
    return key


def _require_free_name(connection: Connection, tenant: TenantId, name: str) -> None:
    """Raise `Conflict` if a key of the tenant has the name and is neither revoked, nor expired, nor replaced."""
    statement = select(api_keys.c.id).where(
        api_keys.c.tenant_id == tenant.value,
        api_keys.c.name == name,
        api_keys.c.revoked_at.is_(None),
        api_keys.c.replaced_by.is_(None),
        or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > utc_now()),
    )
    namesake = connection.execute(statement.limit(1)).scalar_one_or_none()
    if namesake is not None:
        raise Conflict(f"key {namesake} of the tenant has the name {name!r}: choose another name, or rotate or revoke that key")


def _insert(connection: Connection, key: ApiKey, secret_sha256: str) -> None:
    row: dict[str, Any] = {
        "tenant_id": key.tenant_id.value,
        "id": key.id,
        "name": key.name,
        "secret_sha256": secret_sha256,
        "scopes": sorted(scope.value for scope in key.scopes),
        "created_at": key.created_at,
        "prefix": key.prefix,
        "expires_at": key.expires_at,
        "filter": plain(key.filter) if key.filter is not None else None,
        "quota": store_values(key.quota),
    }
    try:
        connection.execute(insert(api_keys), row)
    except IntegrityError as error:
        raise Conflict("that secret or that key's id is already in use") from error


def list_all(connection: Connection, tenant: TenantId) -> Sequence[ApiKey]:
    """List a tenant's keys, newest first, including revoked ones."""
    statement = select(api_keys).where(api_keys.c.tenant_id == tenant.value)
    statement = statement.order_by(api_keys.c.created_at.desc(), api_keys.c.id.desc())
    return [_key_from(row) for row in connection.execute(statement).mappings()]


def _key_from(row: RowMapping) -> ApiKey:
    return ApiKey(
        row["id"],
        TenantId(row["tenant_id"]),
        row["name"],
        frozenset(Scope(scope) for scope in row["scopes"]),
        row["created_at"],
        prefix=row["prefix"],
        expires_at=row["expires_at"],
        last_used_at=row["last_used_at"],
        replaced_by=row["replaced_by"],
        revoked_at=row["revoked_at"],
        filter=row["filter"],
        quota=read_values(row["quota"]),
    )


def rotate(
    connection: Connection, tenant: TenantId, key_id: str, *, secret_sha256: str, prefix: str, overlap: timedelta
) -> ApiKey:
    """Record a key with the name, scopes, filter, quota and length of life of another, which works for ``overlap`` longer.

    The other key ends earlier if it expires earlier.

    Raises:
        NotFound: the tenant has no such key.
        Conflict: the key was revoked or replaced, or has expired.
    """
    lock_tenant(connection, tenant)
    key = _read_key(connection, tenant, key_id)
    now = utc_now()
    _require_rotatable(key, now)
    lifetime = None if key.expires_at is None else key.expires_at - key.created_at
    successor = ApiKey(
        str(uuid.uuid4()),
        tenant,
        key.name,
        key.scopes,
        now,
        prefix=prefix,
        expires_at=None if lifetime is None else now + lifetime,
        filter=key.filter,
        quota=key.quota,
    )
    _insert(connection, successor, secret_sha256)
    ends_at = now + overlap if key.expires_at is None else min(key.expires_at, now + overlap)
    of_key = (api_keys.c.tenant_id == tenant.value, api_keys.c.id == key_id)
    connection.execute(update(api_keys).where(*of_key).values(replaced_by=successor.id, expires_at=ends_at))
    return successor


def _read_key(connection: Connection, tenant: TenantId, key_id: str) -> ApiKey:
    statement = select(api_keys).where(api_keys.c.tenant_id == tenant.value, api_keys.c.id == key_id)
    row = connection.execute(statement).mappings().first()
    if row is None:
        raise NotFound(f"there is no key {key_id!r}")
    return _key_from(row)


def _require_rotatable(key: ApiKey, now: datetime) -> None:
    if key.revoked_at is not None:
        raise Conflict(f"key {key.id} was revoked at {key.revoked_at:%Y-%m-%dT%H:%M:%SZ}: issue another key")
    if key.replaced_by is not None:
        raise Conflict(f"key {key.id} was replaced by key {key.replaced_by}: rotate that key")
    if key.expires_at is not None and key.expires_at <= now:
        raise Conflict(f"key {key.id} expired at {key.expires_at:%Y-%m-%dT%H:%M:%SZ}: issue another key")


def revoke(connection: Connection, tenant: TenantId, key_id: str) -> None:
    """Revoke a key, from the next request on. `NotFound` if there is no such key. Repeating it keeps the first time."""
    statement = (
        update(api_keys)
        .where(api_keys.c.tenant_id == tenant.value, api_keys.c.id == key_id)
        .values(revoked_at=func.coalesce(api_keys.c.revoked_at, bindparam("now", utc_now(), type_=api_keys.c.revoked_at.type)))
    )
    if connection.execute(statement).rowcount == 0:
        raise NotFound(f"there is no key {key_id!r}")


def note_uses(connection: Connection, used_at: Mapping[tuple[TenantId, str], datetime]) -> None:
    """Record when keys, by tenant and id, were used. A use within `USED_AGAIN_AFTER` of the recorded one changes nothing.

    So several processes that record uses of one key neither write it more often than one process does, nor set it back.
    """
    uses = [
        {"tenant": tenant.value, "key": key_id, "used_at": at, "recorded_before": at - USED_AGAIN_AFTER}
        for (tenant, key_id), at in sorted(used_at.items())  # processes that lock several rows lock them in one order
    ]
    for batch in batches(uses):
        connection.execute(_NOTE_USE, list(batch))


def authenticate(connection: Connection, secret_sha256: str) -> Credential | None:
    """Return the key with its tenant, flags and state_version, in one statement. None for an unknown key."""
    row = connection.execute(_AUTHENTICATE, {"secret": secret_sha256}).mappings().first()
    if row is None:
        return None
    scopes = frozenset(Scope(scope) for scope in row["scopes"])
    key_quota = read_values(row["key_quota"])
    principal = Principal(tenant_from(row), scopes, row["key_id"], flags=row["flags"], key_quota=key_quota)
    return Credential(principal, row["expires_at"], row["last_used_at"], row["revoked_at"], row["filter"])
