"""Usage of tenants by day, key, model and stage.

`tests.fixtures.catalogue_checks.usage` checks the contract on both databases.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Executable, Select, and_, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection, Row

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.domain.usage_report import Period, StoredVolume, TenantUsage, UsageCount, UsageGroup
from agentic_rag_backend.stores.catalogue.operations import CataloguePart, batches, read, write
from agentic_rag_backend.stores.catalogue.pages import Page, check_limit, decode_cursor, encode_cursor
from agentic_rag_backend.stores.catalogue.tables import documents, tenants, usage
from agentic_rag_backend.stores.catalogue.tenants.tenant_rows import tenant_from
from agentic_rag_backend.telemetry.usage_ledger import UsageSlot

_SCOPE = "usage of tenants"
_SLOT = ("tenant_id", "day", "key_id", "model", "stage")
_CALLS = ("prompt_tokens", "completion_tokens", "calls", "failed_calls", "cost_nanos", "unpriced_calls")
"""Columns in the order of the fields of `Usage`."""
_COUNTS = ("requests", *_CALLS)
_SUMS = [func.coalesce(func.sum(usage.c[name]), 0) for name in _COUNTS]
_COLUMNS = {UsageGroup.STAGE: usage.c.stage, UsageGroup.MODEL: usage.c.model, UsageGroup.KEY: usage.c.key_id}


def add(connection: Connection, counts: Mapping[UsageSlot, UsageCount]) -> int:
    """Add counts to the rows of their slots, and return the number of slots. Usage of removed tenants is left out."""
    present: set[str] = set()
    for batch in batches(sorted({slot.tenant.value for slot in counts})):
        # The lock keeps the tenant until the rows are there, and lets all other writers work.
        locked = select(tenants.c.tenant_id).where(tenants.c.tenant_id.in_(batch)).order_by(tenants.c.tenant_id)
        present.update(connection.execute(locked.with_for_update(read=True, key_share=True)).scalars())
    # In one order, so that two processes cannot wait for each other's rows.
    rows = [_row_of(slot, counts[slot]) for slot in sorted(counts) if slot.tenant.value in present]
    if rows:
        connection.execute(_adding_statement(connection.dialect.name), rows)
    return len(rows)


def _row_of(slot: UsageSlot, count: UsageCount) -> dict[str, Any]:
    values = dict(zip(_SLOT, (slot.tenant.value, slot.day, slot.key_id, slot.model, slot.stage), strict=True))
    return {**values, "requests": count.requests, **{name: getattr(count.usage, name) for name in _CALLS}}


@cache
def _adding_statement(dialect: str) -> Executable:
    # Both dialects have these methods, but no common class declares them.
    statement = postgresql.insert(usage) if dialect == "postgresql" else sqlite.insert(usage)
    sums = {name: usage.c[name] + statement.excluded[name] for name in _COUNTS}
    return statement.on_conflict_do_update(index_elements=list(_SLOT), set_=sums)


def read_groups(connection: Connection, tenant: TenantId, period: Period, by: UsageGroup) -> dict[str, UsageCount]:
    """Return the usage of a period by day, stage, model or key, in order of the names of the groups."""
    column: ColumnElement[Any] = _COLUMNS.get(by, usage.c.day)
    statement = select(column, *_SUMS).where(usage.c.tenant_id == tenant.value, _within(period)).group_by(column)
    rows = connection.execute(statement)
    # Sorted here, because databases sort texts differently.
    return dict(sorted((_name_of(row[0]), _count_from(row, 1)) for row in rows))


def _within(period: Period) -> ColumnElement[bool]:
    return and_(usage.c.day >= period.start, usage.c.day <= period.end)


def _name_of(group: date | str) -> str:
    return group.isoformat() if isinstance(group, date) else group


def _count_from(row: Row[Any], start: int) -> UsageCount:
    requests, *calls = map(int, row[start : start + len(_COUNTS)])
    return UsageCount(Usage(*calls), requests)


def read_volume(connection: Connection, tenant: TenantId) -> StoredVolume:
    """Return what the tenant's documents occupy now: their number, their visible chunks, and the bytes of their originals."""
    sums = (func.count(), *(func.coalesce(func.sum(column), 0) for column in (documents.c.chunk_count, documents.c.size_bytes)))
    statement = select(*sums).where(documents.c.tenant_id == tenant.value, documents.c.deleted_at.is_(None))
    return StoredVolume(*map(int, connection.execute(statement).one()))


def page_of_tenants(connection: Connection, period: Period, *, limit: int, cursor: str | None = None) -> Page[TenantUsage]:
    """Return the usage of each tenant in a period, in order of the tenants' ids. Tenants without usage are included."""
    statement: Select[Any] = select(*tenants.c).order_by(tenants.c.tenant_id).limit(check_limit(limit) + 1)
    if cursor is not None:
        (after,) = decode_cursor(_SCOPE, cursor, str)
        statement = statement.where(tenants.c.tenant_id > after)
    rows = connection.execute(statement).mappings().all()
    listed_tenants = [tenant_from(row) for row in rows[:limit]]
    ids = [tenant.id.value for tenant in listed_tenants]
    sums = select(usage.c.tenant_id, *_SUMS).where(usage.c.tenant_id.in_(ids), _within(period)).group_by(usage.c.tenant_id)
    counts = {row[0]: _count_from(row, 1) for row in connection.execute(sums)} if ids else {}
    items = tuple(TenantUsage(tenant, counts.get(tenant.id.value, UsageCount())) for tenant in listed_tenants)
    return Page(items, encode_cursor(_SCOPE, (ids[-1],)) if len(rows) > limit else None)


class UsageCatalogue(CataloguePart):
    """Model calls and requests of tenants. A row has the sum of one tenant, day, key, model and stage."""

    add = write(add)
    groups = read(read_groups)
    volume = read(read_volume)
    tenants = read(page_of_tenants)
