"""Tenants, their keys and their flags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from sqlalchemy import (
    JSON,
    Column,
    ColumnElement,
    Text,
    bindparam,
    cast,
    delete,
    false,
    func,
    insert,
    select,
    type_coerce,
    update,
)
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from agentic_rag_backend.domain.ontology import Ontology, ontology_of
from agentic_rag_backend.domain.tenant import LABEL_NAME, Tenant, TenantChange, TenantId, TenantState, require_tenant
from agentic_rag_backend.errors import Conflict, InvalidScope, NotFound
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
from agentic_rag_backend.stores.catalogue.tables import metadata, removed_tenants, tenants
from agentic_rag_backend.stores.catalogue.tenants import api_keys
from agentic_rag_backend.stores.catalogue.tenants.tenant_rows import tenant_from

_SCOPE, _NEWEST_FIRST = "tenants", "newest tenants"
"""Scopes of cursors. A cursor of one order leads nowhere in the other."""
_ONTOLOGY = select(tenants.c.ontology).where(tenants.c.tenant_id == bindparam("tenant"))


def create(connection: Connection, name: str, *, tenant_id: TenantId | None = None) -> Tenant:
    """Create a tenant. `Conflict` if the name is taken; the message has the id of the tenant with this name."""
    new = TenantId.new() if tenant_id is None else require_tenant(tenant_id)
    _require_free_name(connection, name)
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


def _require_free_name(connection: Connection, name: str) -> None:
    if (namesake := tenant_by_name(connection, name)) is not None:
        raise Conflict(
            f"the tenant name {name!r} is taken by {namesake.id}, which is {namesake.state.value}: choose another name"
        )


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


def tenant_and_flags(connection: Connection, name_or_id: str) -> tuple[Tenant, Mapping[str, Any]] | None:
    """Return the tenant with an id or a name, and its flags, in one statement. None: there is none, or it is being deleted.

    A text of the form of an id is never read as a name.
    """
    try:
        condition = tenants.c.tenant_id == TenantId(name_or_id).value
    except InvalidScope:
        condition = tenants.c.name == name_or_id
    statement = select(tenants).where(condition, tenants.c.state != TenantState.DELETING.value)
    row = connection.execute(statement).mappings().first()
    return None if row is None else (tenant_from(row), row["flags"] or {})


def list_tenants(
    connection: Connection,
    *,
    limit: int,
    cursor: str | None = None,
    newest_first: bool = False,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> Page[Tenant]:
    """List tenants in order of creation, or the newest first.

    In order of creation, a pass over all pages also reaches tenants that are created meanwhile.

    Args:
        labels: labels that the listed tenants have. Names of labels that no tenant can have match nothing.
    """
    check_limit(limit)
    scope = _NEWEST_FIRST if newest_first else _SCOPE
    statement = select(tenants).where(*(_has_label(connection, name, value) for name, value in labels.items()))
    if cursor is not None:
        statement = statement.where(beyond(tenants, scope, cursor, newest_first=newest_first))
    order = (tenants.c.created_at, tenants.c.tenant_id)
    statement = statement.order_by(*(column.desc() for column in order) if newest_first else order).limit(limit + 1)
    listed_tenants = [tenant_from(row) for row in connection.execute(statement).mappings()]
    last_tenant = listed_tenants[limit - 1] if len(listed_tenants) > limit else None
    return Page(
        tuple(listed_tenants[:limit]), time_cursor(scope, last_tenant.created_at, last_tenant.id.value) if last_tenant else None
    )


def _has_label(connection: Connection, name: str, value: str) -> ColumnElement[bool]:
    """Return the condition that a tenant has a label."""
    if not LABEL_NAME.match(name):
        return false()
    stored = type_coerce(tenants.c.labels, Text())
    if connection.dialect.name == "postgresql":
        return func.json_extract_path_text(cast(stored, JSON), name) == value
    return func.json_extract(stored, f'$."{name}"') == value


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


def change(connection: Connection, tenant: TenantId, changes: TenantChange) -> Tenant:
    """Rename a tenant, replace its labels, suspend or resume it. Its data and ``state_version`` stay.

    Raises:
        NotFound: the tenant does not exist.
        Conflict: the name is taken, or the tenant is being imported or deleted and cannot be suspended or resumed.
    """
    lock_tenant(connection, tenant)
    present = read_tenant(connection, tenant)
    values: dict[str, Any] = {}
    if changes.name is not None and changes.name != present.name:
        _require_free_name(connection, changes.name)
        values["name"] = changes.name
    if changes.labels is not None:
        values["labels"] = dict(changes.labels)
    if changes.suspended is not None:
        values["state"] = _next_state(present, suspended=changes.suspended).value
    if values:
        try:
            connection.execute(update(tenants).where(tenants.c.tenant_id == tenant.value).values(values))
        except IntegrityError as error:  # another process has just used the name
            raise Conflict(f"the tenant name {changes.name!r} is taken: choose another name") from error
    return read_tenant(connection, tenant)


def _next_state(tenant: Tenant, *, suspended: bool) -> TenantState:
    if tenant.state not in (TenantState.ACTIVE, TenantState.SUSPENDED):
        action = "suspended" if suspended else "resumed"
        raise Conflict(f"tenant {tenant.id} is {tenant.state.value} and cannot be {action}; only active tenants can be suspended")
    return TenantState.SUSPENDED if suspended else TenantState.ACTIVE


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
    tenant_and_flags = read(tenant_and_flags)
    tenants = read(list_tenants)
    known = read(known)
    removed = read(removed)
    change = write(change)
    mark_deleting = write(mark_deleting)
    remove = write(remove)
    add_key = write(api_keys.add)
    keys = read(api_keys.list_all)
    rotate_key = write(api_keys.rotate)
    revoke_key = write(api_keys.revoke)
    note_uses = write(api_keys.note_uses)
    authenticate = read(api_keys.authenticate)
    flags = read(read_flags)
    set_flags = write(set_flags)
    ontology = read(read_ontology)
    set_ontology = write(set_ontology)
