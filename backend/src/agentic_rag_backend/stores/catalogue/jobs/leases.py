"""Leases: work that one worker does at a time, such as the commits of a tenant.

`testing.jobs.leases` checks the contract on both databases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, exists, select, update
from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.stores.catalogue.operations import CataloguePart, read, upsert, write
from agentic_rag_backend.stores.catalogue.tables import leases, workers


@dataclass(frozen=True, slots=True)
class Fence:
    """Proof that a lease is held. ``number`` rises each time the lease is taken."""

    name: str
    number: int


_NOBODYS = ""
"""Tenant column value of leases without a tenant."""

_THIS = (leases.c.tenant_id == bindparam("tenant"), leases.c.name == bindparam("lease"))
_JOINED = select(workers.c.executor_id).where(workers.c.executor_id == bindparam("worker"))
# A worker that is taking a lease cannot be declared dead before it is done.
_JOINED_LOCKED = _JOINED.with_for_update(read=True, key_share=True)
_HELD = select(leases.c.holder, leases.c.fence, leases.c.wanted).where(*_THIS)
_HELD_LOCKED = _HELD.with_for_update()
_TAKE = (
    update(leases)
    .where(*_THIS)
    .values(holder=bindparam("worker"), fence=leases.c.fence + 1, wanted=False)
    .returning(leases.c.fence)
)
_WANT = update(leases).where(*_THIS).values(wanted=True)
_GIVE_UP = update(leases).where(*_THIS, leases.c.fence == bindparam("number")).values(holder=None).returning(leases.c.wanted)
_NEWEST = select(leases.c.fence).where(
    *_THIS, leases.c.fence == bindparam("number"), exists().where(workers.c.executor_id == leases.c.holder)
)


def require_fence(connection: Connection, tenant: TenantId, fence: Fence | None) -> None:
    """Check that the lease still has ``fence``, for the rest of the transaction. None skips the check.

    Raises:
        StoreUnavailable: another worker has the lease, and writes instead.
    """
    if fence is None:
        return
    if connection.execute(_NEWEST.with_for_update(read=True, of=leases), _bind_fence(tenant, fence)).first() is None:
        raise StoreUnavailable(f"the lease {fence.name!r} was lost: another worker continues its work")


def _is_out_of_reach(connection: Connection, tenant: str, name: str, executor_id: str) -> bool:
    """Return whether another live worker holds a lease that is already marked as wanted."""
    row = connection.execute(_HELD, {"tenant": tenant, "lease": name}).first()
    if row is None or row.holder in (None, executor_id) or not row.wanted:
        return False
    return _is_worker(connection, row.holder)


def _is_worker(connection: Connection, executor_id: str) -> bool:
    return connection.execute(_JOINED, {"worker": executor_id}).first() is not None


def _take_lease(connection: Connection, tenant: str, name: str, executor_id: str) -> Fence | None:
    # Waiting processes poll this, so it must lock nothing.
    if _is_out_of_reach(connection, tenant, name, executor_id):
        return None
    if connection.execute(_JOINED_LOCKED, {"worker": executor_id}).first() is None:
        return None
    key = {"tenant": tenant, "lease": name}
    row = connection.execute(_HELD_LOCKED, key).first()
    if row is None:
        fresh = {"tenant_id": tenant, "name": name, "holder": None, "fence": 0, "wanted": False}
        upsert(connection, leases, [fresh], keys=("tenant_id", "name"))
        row = connection.execute(_HELD_LOCKED, key).one()
    # Checked after the row was locked: its previous holder joined before that.
    if row.holder not in (None, executor_id) and _is_worker(connection, row.holder):
        if not row.wanted:
            connection.execute(_WANT, key)
        return None
    return Fence(name, connection.execute(_TAKE, {**key, "worker": executor_id}).scalar_one())


def take(connection: Connection, tenant: TenantId, name: str, executor_id: str) -> Fence | None:
    """Take a tenant's lease. Return None if another worker holds it, and mark the lease as wanted (see `give_up`).

    A worker that holds the lease takes it again, which invalidates its earlier fence. A process that has not joined gets
    None.
    """
    return _take_lease(connection, tenant.value, name, executor_id)


def lead(connection: Connection, name: str, executor_id: str) -> bool:
    """Return whether the worker does ``name``, a task without a tenant. It keeps the task while it is a worker."""
    return _take_lease(connection, _NOBODYS, name, executor_id) is not None


def give_up(connection: Connection, tenant: TenantId, fence: Fence) -> bool:
    """Give up a lease. Return whether another worker wanted it. An invalid fence changes nothing."""
    return bool(connection.execute(_GIVE_UP, _bind_fence(tenant, fence)).scalar_one_or_none())


def holds(connection: Connection, tenant: TenantId, fence: Fence) -> bool:
    """Return whether the fence is the newest of its lease and its holder is a worker."""
    return connection.execute(_NEWEST, _bind_fence(tenant, fence)).first() is not None


def _bind_fence(tenant: TenantId, fence: Fence) -> dict[str, Any]:
    return {"tenant": tenant.value, "lease": fence.name, "number": fence.number}


class Leases(CataloguePart):
    """Leases by tenant and name. A worker holds a lease until it gives it up or leaves the workers."""

    take = write(take)
    give_up = write(give_up)
    holds = read(holds)
    lead = write(lead)
