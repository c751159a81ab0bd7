"""Quotas of tenants and keys, counters of their requests, and the checks of what documents and jobs would exceed.

`tests.fixtures.catalogue_checks.quotas` checks the contract on both databases.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache, partial
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Executable,
    Float,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal,
    select,
    type_coerce,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from agentic_rag_backend.domain.document import DocumentState
from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.domain.quota import (
    ALL_KEYS,
    VOLUMES,
    WARNING_SHARE,
    WINDOW_S,
    QuotaName,
    QuotaScope,
    QuotaUse,
    QuotaValues,
    SpentAmounts,
    TenantAmounts,
    read_values,
    refuse_use,
    store_values,
)
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.usage_report import StoredVolume
from agentic_rag_backend.errors import NotFound
from agentic_rag_backend.fairness import current_actor
from agentic_rag_backend.stores.catalogue.database import after_commit
from agentic_rag_backend.stores.catalogue.operations import CataloguePart, lock_tenant, read, write, write_soon
from agentic_rag_backend.stores.catalogue.tables import api_keys, documents, jobs, quota_counters, tenants, usage
from agentic_rag_backend.stores.catalogue.tables import document_versions as versions
from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)
PLACES_VALID_S = 30.0
"""Seconds after which the places of a process that does not renew them are free again."""
JOB_RETRY_S = 5.0
"""Seconds to wait before the repetition of a request that needs another job."""
_UNFINISHED = (DocumentState.PENDING.value, DocumentState.PROCESSING.value)


# --- limits


def set_tenant_quota(connection: Connection, tenant: TenantId, values: QuotaValues) -> None:
    """Replace the limits that were set for a tenant. `NotFound` if there is no such tenant."""
    statement = update(tenants).where(tenants.c.tenant_id == tenant.value).values(quota=store_values(values))
    if connection.execute(statement).rowcount == 0:
        raise NotFound(f"there is no tenant {tenant}")


def set_key_quota(connection: Connection, tenant: TenantId, key_id: str, values: QuotaValues) -> None:
    """Replace the limits that were set for a key. `NotFound` if the tenant has no such key."""
    of_key = (api_keys.c.tenant_id == tenant.value, api_keys.c.id == key_id)
    if connection.execute(update(api_keys).where(*of_key).values(quota=store_values(values))).rowcount == 0:
        raise NotFound(f"there is no key {key_id!r}")


# --- requests


@dataclass(frozen=True, slots=True)
class GrantedRequests:
    """The answer to a process that asks for requests of the current window.

    ``granted`` of them may be sent before ``left_s`` seconds have passed. ``total`` are granted to all processes.
    """

    granted: int
    total: int
    left_s: float


def take_requests(
    connection: Connection, tenant: TenantId, key_id: str, *, count: int, limit: int, now_s: float | None = None
) -> GrantedRequests:
    """Take up to ``count`` requests of the current window, in one statement.

    The database's clock decides about the window. A transaction that waited for another one counts in the newer window.

    Args:
        key_id: `ALL_KEYS` for the requests of all keys.
        now_s: seconds since 1970, for tests.
    """
    bound = {"tenant": tenant.value, "key": key_id, "count": count, "limit": limit, "now_s": now_s or time.time()}
    statement = _taking_statement(connection.dialect.name, is_clock_given=now_s is not None)
    try:
        row = connection.execute(statement, bound).one()
    except IntegrityError as error:
        raise NotFound(f"there is no tenant {tenant}") from error
    return GrantedRequests(int(row.granted), int(row.taken), max(0.0, (int(row.minute) + 1) * WINDOW_S - float(row.now_s)))


@cache
def _taking_statement(dialect: str, *, is_clock_given: bool) -> Executable:
    now_s: ColumnElement[float] = bindparam("now_s", type_=Float)
    if dialect == "postgresql" and not is_clock_given:
        now_s = cast(func.extract("epoch", func.statement_timestamp()), Float)
    minute = cast(func.floor(now_s / WINDOW_S), BigInteger) if dialect == "postgresql" else cast(now_s / WINDOW_S, BigInteger)
    count, limit = bindparam("count", type_=BigInteger), bindparam("limit", type_=BigInteger)
    least = _smaller(count, limit)
    insert = postgresql.insert(quota_counters) if dialect == "postgresql" else sqlite.insert(quota_counters)
    new = insert.values(
        tenant_id=bindparam("tenant"), key_id=bindparam("key"), minute=minute, taken=least, granted=least, places={}
    )
    old = quota_counters.c
    # A window far ahead was written before the clock was set back.
    goes_on = and_(old.minute >= new.excluded.minute, old.minute <= new.excluded.minute + 1)
    free = _smaller(count, case((old.taken < limit, limit - old.taken), else_=0))
    changed = {
        "minute": case((goes_on, old.minute), else_=new.excluded.minute),
        "taken": case((goes_on, old.taken + free), else_=new.excluded.taken),
        "granted": case((goes_on, free), else_=new.excluded.granted),
    }
    statement = new.on_conflict_do_update(index_elements=["tenant_id", "key_id"], set_=changed)
    returned: list[ColumnElement[Any]] = [old.minute, old.taken, old.granted, now_s.label("now_s")]
    if dialect == "postgresql":  # a power loss may take the newest counts along: their commit does not wait for the disk
        returned.append(func.set_config("synchronous_commit", "off", True))
    return statement.returning(*returned)


def _smaller(a: ColumnElement[int], b: ColumnElement[int]) -> ColumnElement[int]:
    return case((a < b, a), else_=b)


def read_counter(connection: Connection, tenant: TenantId, key_id: str) -> tuple[int, int, float]:
    """Return the requests of the current window that were taken, the places of requests, and the seconds that are left."""
    now_s = _read_clock(connection)
    left_s = WINDOW_S - now_s % WINDOW_S
    of_key = (quota_counters.c.tenant_id == tenant.value, quota_counters.c.key_id == key_id)
    row = connection.execute(select(quota_counters).where(*of_key)).first()
    if row is None:
        return 0, 0, left_s
    total = int(row.taken) if row.minute >= now_s // WINDOW_S else 0
    return total, sum(_valid_places(row.places, now_s).values()), left_s


def _read_clock(connection: Connection) -> float:
    """Return the seconds since 1970 by the database's clock."""
    if connection.dialect.name != "postgresql":
        return time.time()
    return float(connection.execute(select(func.extract("epoch", func.statement_timestamp()))).scalar_one())


# --- places of requests that run


def hold_places(
    connection: Connection, tenant: TenantId, key_id: str, process: str, *, count: int, running: int, limit: int
) -> int:
    """Set the places of a process for requests that run, and return how many it may use.

    Args:
        count: places that it wants to have from now on.
        running: places that it uses already. They are counted even if the limit is lower by now.
    """
    present = sqlite.insert(quota_counters) if connection.dialect.name == "sqlite" else postgresql.insert(quota_counters)
    row = {"tenant_id": tenant.value, "key_id": key_id, "minute": 0, "taken": 0, "granted": 0, "places": {}}
    of_key = (quota_counters.c.tenant_id == tenant.value, quota_counters.c.key_id == key_id)
    try:
        connection.execute(present.on_conflict_do_nothing(), row)
    except IntegrityError as error:
        raise NotFound(f"there is no tenant {tenant}") from error
    stored = connection.execute(select(quota_counters.c.places).where(*of_key).with_for_update()).scalar_one()
    now_s = _read_clock(connection)
    entries = {name: stored[name] for name in _valid_places(stored, now_s) if name != process}
    other_places = sum(int(number) for number, _ in entries.values())
    granted: int = max(running, min(count, limit - other_places), 0)
    if granted:
        entries[process] = (granted, math.ceil(now_s + PLACES_VALID_S))
    connection.execute(update(quota_counters).where(*of_key).values(places=entries))
    return granted


def _valid_places(stored: Mapping[str, Any], now_s: float) -> dict[str, int]:
    """Return the number of places by process. Those far in the future were written before the clock was set back."""
    return {
        process: int(number)
        for process, (number, until_s) in stored.items()
        if now_s < until_s <= now_s + PLACES_VALID_S + WINDOW_S
    }


# --- calls of models


def read_spent_amounts(connection: Connection, tenant: TenantId, key_id: str | None, day: date) -> TenantAmounts:
    """Return what a tenant and one of its keys have spent in a day and its month, and the limits that were set for them."""
    of_key = and_(api_keys.c.tenant_id == tenants.c.tenant_id, api_keys.c.id == (key_id or ALL_KEYS))
    values = select(tenants.c.quota.label("of_tenant"), api_keys.c.quota.label("of_key")).select_from(
        tenants.outerjoin(api_keys, of_key)
    )
    limits = connection.execute(values.where(tenants.c.tenant_id == tenant.value)).first()
    tokens, cost = usage.c.prompt_tokens + usage.c.completion_tokens, usage.c.cost_nanos
    today, keys = usage.c.day == day, usage.c.key_id == (key_id or ALL_KEYS)
    sums = [
        func.coalesce(func.sum(case((condition, amount), else_=0)), 0)
        for condition in (today, literal(True), and_(today, keys), keys)
        for amount in (tokens, cost)
    ]
    of_month = (usage.c.tenant_id == tenant.value, usage.c.day >= day.replace(day=1), usage.c.day <= day)
    amounts = [int(amount) for amount in connection.execute(select(*sums).where(*of_month)).one()]
    return TenantAmounts(
        day=day,
        of_tenant=SpentAmounts(*amounts[:4]),
        of_key=SpentAmounts(*amounts[4:]) if key_id else SpentAmounts(),
        tenant_values=read_values(limits.of_tenant if limits is not None else None),
        key_values=read_values(limits.of_key if limits is not None else None),
    )


# --- documents and jobs


def read_reserved_volume(connection: Connection, tenant: TenantId) -> StoredVolume:
    """Return what the tenant's documents occupy, with what versions in processing will occupy in addition."""
    pending = and_(
        versions.c.tenant_id == documents.c.tenant_id,
        versions.c.document_id == documents.c.id,
        versions.c.version == documents.c.latest_version,
        versions.c.version > documents.c.current_version,
        versions.c.state.in_(_UNFINISHED),
    )
    sums = (
        func.coalesce(func.sum(_larger(reserved, documents.c[name])), 0)
        for name, reserved in (("chunk_count", versions.c.reserved_chunks), ("size_bytes", versions.c.size_bytes))
    )
    statement = select(func.count(), *sums).select_from(documents.outerjoin(versions, pending))
    of_tenant = (documents.c.tenant_id == tenant.value, documents.c.deleted_at.is_(None))
    return StoredVolume(*map(int, connection.execute(statement.where(*of_tenant)).one()))


def _larger(reserved: ColumnElement[int], present: ColumnElement[int]) -> ColumnElement[int]:
    return case((reserved > present, type_coerce(reserved, BigInteger)), else_=type_coerce(present, BigInteger))


def require_volume(connection: Connection, tenant: TenantId, *, new_documents: int = 0, new_bytes: int = 0) -> None:
    """Check the limits of the caller's tenant before a document or a version is recorded. The tenant is locked.

    Raises:
        QuotaExceeded: it would exceed a limit, or the tenant has all chunks that it may have.
    """
    limits = current_actor().effective_limits
    if limits is None or not any(name in limits.of_tenant for name in VOLUMES):
        return
    volume = read_reserved_volume(connection, tenant)
    used = dict(zip(VOLUMES, (volume.documents, volume.chunks, volume.size_bytes), strict=True))
    needs = (
        (QuotaName.DOCUMENTS, new_documents, "another document"),
        (QuotaName.CHUNKS, new_documents, "the chunks of another document"),
        (QuotaName.BYTES, new_bytes, f"{new_bytes} more bytes"),
    )
    for name, addition, reason in needs:
        limit = limits.of_tenant.get(name)
        if limit is not None and addition > 0 and used[name] + addition > limit:
            raise refuse_use(QuotaUse(name, QuotaScope.TENANT, limit, used[name]), reason)
        if limit is not None and used[name] < WARNING_SHARE * limit <= used[name] + addition:
            about = {"tenant": str(tenant), "quota": name.value, "limit": limit, "used": used[name] + addition}
            after_commit(connection, partial(_log.warning, "quota_nearly_used", **about))


def reserve_chunks(connection: Connection, tenant: TenantId, document_id: str, version: int, *, chunks: int) -> None:
    """Reserve the chunks of a version that is being processed, if a quota limits them. Idempotent.

    Raises:
        QuotaExceeded: the tenant would have more chunks than it may have.
    """
    limits = current_actor().effective_limits
    limit = None if limits is None else limits.of_tenant.get(QuotaName.CHUNKS)
    if limit is None:
        return
    lock_tenant(connection, tenant)
    of_version = (versions.c.tenant_id == tenant.value, versions.c.document_id == document_id, versions.c.version == version)
    connection.execute(update(versions).where(*of_version).values(reserved_chunks=0))
    used = read_reserved_volume(connection, tenant).chunks
    present = select(documents.c.chunk_count).where(documents.c.tenant_id == tenant.value, documents.c.id == document_id)
    addition = chunks - (connection.execute(present).scalar_one_or_none() or 0)
    if addition > 0 and used + addition > limit:
        raise refuse_use(QuotaUse(QuotaName.CHUNKS, QuotaScope.TENANT, limit, used), f"{addition} more chunks of the document")
    connection.execute(update(versions).where(*of_version).values(reserved_chunks=chunks))


def require_job(connection: Connection, tenant: TenantId) -> None:
    """Check the limit on waiting jobs of the caller's tenant, before another job is recorded.

    Raises:
        QuotaExceeded: as many jobs wait as may wait.
    """
    actor = current_actor()
    limits = None if actor.job else actor.effective_limits  # a job that continues as another one is not refused
    limit = None if limits is None else limits.of_tenant.get(QuotaName.JOBS_WAITING)
    if limit is None:
        return
    lock_tenant(connection, tenant)
    waiting = count_waiting_jobs(connection, tenant)
    if waiting + 1 > limit:
        use = QuotaUse(QuotaName.JOBS_WAITING, QuotaScope.TENANT, limit, waiting)
        raise refuse_use(use, "one more job", retry_after_s=JOB_RETRY_S)


def count_waiting_jobs(connection: Connection, tenant: TenantId) -> int:
    """Count the tenant's jobs that wait for their turn."""
    waiting = (jobs.c.tenant_id == tenant.value, jobs.c.state == JobState.QUEUED.value)
    return int(connection.execute(select(func.count()).select_from(jobs).where(*waiting)).scalar_one())


def read_stocks(connection: Connection, tenant: TenantId) -> tuple[StoredVolume, int]:
    """Return what the tenant's documents occupy, and the number of its jobs that wait."""
    return read_reserved_volume(connection, tenant), count_waiting_jobs(connection, tenant)


class QuotaCatalogue(CataloguePart):
    """Quotas of tenants and keys, and what is counted for them."""

    set_tenant_quota = write(set_tenant_quota)
    set_key_quota = write(set_key_quota)
    take_requests = write_soon(take_requests)
    hold_places = write_soon(hold_places)
    counter = read(read_counter)
    spending = read(read_spent_amounts)
    stocks = read(read_stocks)
