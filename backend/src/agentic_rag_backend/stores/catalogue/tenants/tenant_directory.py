"""Tenants, their keys and their flags."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Column, bindparam, delete, func, insert, select, update
from sqlalchemy.engine import Connection, RowMapping
from sqlalchemy.exc import IntegrityError

from agentic_rag_backend.domain.experiments import ActiveExperiment, ExperimentMetric, StoppingRule
from agentic_rag_backend.domain.ontology import Ontology, ontology_of
from agentic_rag_backend.domain.tenant import ApiKey, Principal, Scope, Tenant, TenantId, TenantState, require_tenant
from agentic_rag_backend.domain.tuning import NOT_TUNED, TunedValues
from agentic_rag_backend.errors import Conflict, NotFound
from agentic_rag_backend.stores.catalogue.columns import plain, utc_now
from agentic_rag_backend.stores.catalogue.jobs.outbox import Topic, record
from agentic_rag_backend.stores.catalogue.operations import (
    CataloguePart,
    batches,
    lock_tenant,
    raise_state_version,
    read,
    upsert,
    write,
)
from agentic_rag_backend.stores.catalogue.pages import Page, beyond, check_limit, time_cursor
from agentic_rag_backend.stores.catalogue.tables import api_keys, metadata, removed_tenants, tenants

_SCOPE, _NEWEST_FIRST = "tenants", "newest tenants"
"""Scopes of cursors. A cursor of one order leads nowhere in the other."""
_OF_JOBS = {"content_version", "content_changed_at", "stale_since", "tree_stale_since", "rebuild_asked_at", "ontology"}
"""Columns that requests do not need."""
_ONTOLOGY = select(tenants.c.ontology).where(tenants.c.tenant_id == bindparam("tenant"))
_AUTHENTICATE = (
    select(
        api_keys.c.id.label("key_id"),
        api_keys.c.scopes,
        *(column for column in tenants.c if column.name not in _OF_JOBS),
    )
    .join(tenants, tenants.c.tenant_id == api_keys.c.tenant_id)
    .where(
        api_keys.c.secret_sha256 == bindparam("secret"),
        api_keys.c.revoked_at.is_(None),
        tenants.c.state != TenantState.DELETING.value,
    )
)


def tenant_from(row: RowMapping) -> Tenant:
    """Return a row of `tenants` as a value."""
    return Tenant(
        TenantId(row["tenant_id"]),
        row["name"],
        TenantState(row["state"]),
        row["state_version"],
        row["created_at"],
        NOT_TUNED if row["tuned"] is None else TunedValues.read(row["tuned"]),
        None if row["experiment"] is None else experiment_from(row["experiment"]),
    )


def experiment_from(value: Mapping[str, Any]) -> ActiveExperiment:
    """Return the running experiment that a column has."""
    rule = value["rule"]
    return ActiveExperiment(
        **{**value, "configurations": tuple(value["configurations"])}
        | {"rule": StoppingRule(**{**rule, "metric": ExperimentMetric(rule["metric"])})}
    )


def _key_from(row: RowMapping) -> ApiKey:
    scopes = frozenset(Scope(scope) for scope in row["scopes"])
    return ApiKey(row["id"], TenantId(row["tenant_id"]), row["name"], scopes, row["created_at"], row["revoked_at"])


def create(connection: Connection, name: str, *, tenant_id: TenantId | None = None) -> Tenant:
    """Create a tenant. `Conflict` if the name is taken; the message has the id of the tenant with this name."""
    new = TenantId.new() if tenant_id is None else require_tenant(tenant_id)
    if (namesake := tenant_by_name(connection, name)) is not None:
        raise Conflict(
            f"the tenant name {name!r} is taken by {namesake.id}, which is {namesake.state.value}: choose another name"
        )
    tenant = Tenant(new, name, TenantState.ACTIVE, 0, utc_now())
    row: dict[str, Any] = {
        "tenant_id": new.value,
        "name": name,
        "state": tenant.state.value,
        "state_version": 0,
        "content_version": 0,
        "flags": {},
        "created_at": tenant.created_at,
    }
    try:
        connection.execute(insert(tenants), row)
    except IntegrityError as error:
        # Another process has just created it, or the caller gave an id that is in use.
        id_clause = "" if tenant_id is None else f", or the id {tenant_id}"
        raise Conflict(f"the tenant name {name!r}{id_clause} is taken: choose another name") from error
    return tenant


def read_tenant(connection: Connection, tenant: TenantId) -> Tenant:
    """Return the tenant or raise `NotFound`."""
    row = connection.execute(select(tenants).where(tenants.c.tenant_id == tenant.value)).mappings().first()
    if row is None:
        raise NotFound(f"there is no tenant {tenant}")
    return tenant_from(row)


def tenant_by_name(connection: Connection, name: str) -> Tenant | None:
    """Return the tenant of that name."""
    row = connection.execute(select(tenants).where(tenants.c.name == name)).mappings().first()
    return None if row is None else tenant_from(row)


def list_tenants(connection: Connection, *, limit: int, cursor: str | None = None, newest_first: bool = False) -> Page[Tenant]:
    """List tenants in order of creation, or the newest first.

    In order of creation, a pass over all pages also reaches tenants that are created meanwhile.
    """
    check_limit(limit)
    scope = _NEWEST_FIRST if newest_first else _SCOPE
    statement = select(tenants)
    if cursor is not None:
        statement = statement.where(beyond(tenants, scope, cursor, newest_first=newest_first))
    order = (tenants.c.created_at, tenants.c.tenant_id)
    statement = statement.order_by(*(column.desc() for column in order) if newest_first else order).limit(limit + 1)
    listed_tenants = [tenant_from(row) for row in connection.execute(statement).mappings()]
    last_tenant = listed_tenants[limit - 1] if len(listed_tenants) > limit else None
    return Page(
        tuple(listed_tenants[:limit]), time_cursor(scope, last_tenant.created_at, last_tenant.id.value) if last_tenant else None
    )


def known(connection: Connection, ids: Iterable[TenantId]) -> frozenset[TenantId]:
    """Return the ids that are tenants of this catalogue."""
    return _select_among(connection, tenants.c.tenant_id, list(ids))


def removed(connection: Connection, ids: Iterable[TenantId]) -> frozenset[TenantId]:
    """Return the ids of tenants that were removed from this catalogue."""
    return _select_among(connection, removed_tenants.c.removed_id, list(ids))


def _select_among(connection: Connection, column: Column[str], ids: Sequence[TenantId]) -> frozenset[TenantId]:
    matches: set[TenantId] = set()
    for batch in batches(ids):
        values = connection.execute(select(column).where(column.in_([tenant_id.value for tenant_id in batch]))).scalars()
        matches.update(TenantId(value) for value in values)
    return frozenset(matches)


def mark_deleting(connection: Connection, tenant: TenantId) -> None:
    """Refuse new requests of the tenant."""
    statement = update(tenants).where(tenants.c.tenant_id == tenant.value).values(state=TenantState.DELETING.value)
    if connection.execute(statement).rowcount == 0:
        raise NotFound(f"there is no tenant {tenant}")
    record(connection, tenant, Topic.TENANT, tenant.value)


def remove(connection: Connection, tenant: TenantId) -> Mapping[str, int]:
    """Remove all rows of the tenant and record the removal. Return the counts by table."""
    upsert(connection, removed_tenants, [{"removed_id": tenant.value, "removed_at": utc_now()}], keys=("removed_id",))
    # The tables come from the schema, children first, so that none is missed.
    return {
        table.name: connection.execute(delete(table).where(table.c.tenant_id == tenant.value)).rowcount
        for table in reversed(metadata.sorted_tables)
        if "tenant_id" in table.c
    }


def add_key(
    connection: Connection,
    tenant: TenantId,
    *,
    name: str,
    secret_sha256: str,
    scopes: Sequence[Scope],
    key_id: str | None = None,
) -> ApiKey:
    """Record a key by the SHA-256 (hex) of its secret.

    ``key_id`` is its id, which only one of several processes can assign. `Conflict` if the id or the secret is in use,
    revoked keys
    included.
    """
    lock_tenant(connection, tenant)
    key = ApiKey(key_id or str(uuid.uuid4()), tenant, name, frozenset(scopes), utc_now())
    row = {
        "tenant_id": tenant.value,
        "id": key.id,
        "name": name,
        "secret_sha256": secret_sha256,
        "scopes": sorted(scope.value for scope in key.scopes),
        "created_at": key.created_at,
    }
    try:
        connection.execute(insert(api_keys), row)
    except IntegrityError as error:
        raise Conflict("that secret or that key's id is already in use") from error
    return key


def keys(connection: Connection, tenant: TenantId) -> Sequence[ApiKey]:
    """List a tenant's keys, newest first, including revoked ones."""
    statement = select(api_keys).where(api_keys.c.tenant_id == tenant.value)
    statement = statement.order_by(api_keys.c.created_at.desc(), api_keys.c.id.desc())
    return [_key_from(row) for row in connection.execute(statement).mappings()]


def revoke_key(connection: Connection, tenant: TenantId, key_id: str) -> None:
    """Revoke a key, from the next request on. `NotFound` if there is no such key. Repeating it keeps the first time."""
    statement = (
        update(api_keys)
        .where(api_keys.c.tenant_id == tenant.value, api_keys.c.id == key_id)
        .values(revoked_at=func.coalesce(api_keys.c.revoked_at, bindparam("now", utc_now(), type_=api_keys.c.revoked_at.type)))
    )
    if connection.execute(statement).rowcount == 0:
        raise NotFound(f"there is no key {key_id!r}")


def authenticate(connection: Connection, secret_sha256: str) -> Principal | None:
    """Return the principal of the key, with tenant, flags and state_version, in one statement. None for an unknown key."""
    row = connection.execute(_AUTHENTICATE, {"secret": secret_sha256}).mappings().first()
    if row is None:
        return None
    scopes = frozenset(Scope(scope) for scope in row["scopes"])
    return Principal(tenant_from(row), scopes, row["key_id"], flags=row["flags"])


def read_flags(connection: Connection, tenant: TenantId) -> Mapping[str, Any]:
    """Return the flags that the tenant has set. A tenant that does not exist has no flags."""
    flags: Mapping[str, Any] | None = connection.execute(
        select(tenants.c.flags).where(tenants.c.tenant_id == tenant.value)
    ).scalar_one_or_none()
    return flags or {}


def set_flags(connection: Connection, tenant: TenantId, flags: Mapping[str, Any]) -> Mapping[str, Any]:
    """Set flags (None removes a flag) and raise ``state_version``. Return the tenant's flags."""
    lock_tenant(connection, tenant)
    merged = {**read_flags(connection, tenant), **plain(flags)}
    new_flags = {name: value for name, value in merged.items() if value is not None}
    # A flag may have enabled a rebuild that was not wanted before.
    changed = {"flags": new_flags, "rebuild_asked_at": None}
    connection.execute(update(tenants).where(tenants.c.tenant_id == tenant.value).values(changed))
    raise_state_version(connection, tenant)
    return new_flags


def read_ontology(connection: Connection, tenant: TenantId) -> Ontology | None:
    """Return the ontology that the tenant has set. None: it uses the deployment's."""
    value = connection.execute(_ONTOLOGY, {"tenant": tenant.value}).scalar_one_or_none()
    return None if value is None else ontology_of(value)


def set_ontology(connection: Connection, tenant: TenantId, ontology: Ontology | None) -> None:
    """Set the tenant's ontology (None removes it) and raise ``state_version``. `NotFound` if there is no such tenant."""
    lock_tenant(connection, tenant)
    value = None if ontology is None else asdict(ontology)
    connection.execute(update(tenants).where(tenants.c.tenant_id == tenant.value).values(ontology=value))
    raise_state_version(connection, tenant)


class TenantDirectory(CataloguePart):
    """Tenants, their keys and flags. Its methods are not tenant-scoped. Only `tenancy` uses it."""

    create = write(create)
    tenant = read(read_tenant)
    tenant_by_name = read(tenant_by_name)
    tenants = read(list_tenants)
    known = read(known)
    removed = read(removed)
    mark_deleting = write(mark_deleting)
    remove = write(remove)
    add_key = write(add_key)
    keys = read(keys)
    revoke_key = write(revoke_key)
    authenticate = read(authenticate)
    flags = read(read_flags)
    set_flags = write(set_flags)
    ontology = read(read_ontology)
    set_ontology = write(set_ontology)
