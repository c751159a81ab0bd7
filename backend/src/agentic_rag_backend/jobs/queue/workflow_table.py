"""The table of workflows, in the catalogue's database: enqueue, claim, hand back, finish, delete.

A workflow is *waiting* (no claimant), *claimed* (by a process), or *finished*. Each change compares the state that it expects in
its own statement, so of two processes that claim, hand back or finish a workflow, one succeeds. ADR 58 gives the reasons.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Engine,
    Index,
    MetaData,
    Row,
    Select,
    String,
    Table,
    Update,
    and_,
    delete,
    exists,
    func,
    inspect,
    or_,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError

from agentic_rag_backend.domain.tenant import TenantId, TenantState, require_tenant
from agentic_rag_backend.jobs.base import QueueName
from agentic_rag_backend.jobs.queue.queue_database import Notifications
from agentic_rag_backend.stores.catalogue.database import after_commit
from agentic_rag_backend.stores.catalogue.tables import tenants

CLAIMED_AHEAD = 64
"""Workflows of one tenant and queue that a sole process claims ahead. Slots limit how many of them run."""
RETENTION = timedelta(days=7)
"""Time for which finished workflows are kept: enqueueing one of them again has no effect."""
_PAGE = 500
_LOCK = 0x61726171  # any constant: one process at a time creates the table

T = TypeVar("T")
metadata = MetaData()
workflows = Table(
    "workflows",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("queue", String, nullable=False),
    Column("claimant", String),  # executor id of the process that claimed it
    # Microseconds since 1970, so that workflows keep the order in which they were enqueued.
    Column("enqueued_us", BigInteger, nullable=False),
    Column("finished_us", BigInteger),
    # Microseconds since 1970 before which it does not start. None: it starts as soon as it can.
    Column("waits_until_us", BigInteger),
)
Index("ix_workflows_open", workflows.c.finished_us, workflows.c.queue)
_OPEN = workflows.c.finished_us.is_(None)
_WAITING = (_OPEN, workflows.c.claimant.is_(None))
_SUSPENDED = tenants.c.state == TenantState.SUSPENDED.value
_LATEST_US = 2**63 - 1
Index(
    "ix_workflows_waiting",
    workflows.c.queue,
    workflows.c.tenant_id,
    workflows.c.enqueued_us,
    postgresql_where=and_(*_WAITING),
    sqlite_where=and_(*_WAITING),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedWorkflow:
    """A workflow that a process claimed and did not finish."""

    id: str
    name: str
    queue: str
    tenant: TenantId
    executor_id: str

    @property
    def job_id(self) -> str:
        """Id of the workflow's job."""
        return self.id.rsplit(":", 2)[1]

    @property
    def attempt(self) -> int:
        """Number of the attempt at the job."""
        return int(self.id.rsplit(":", 2)[2])


def workflow_id(name: str, job_id: str, attempt: int) -> str:
    """Return the workflow id for an attempt of a job. Enqueueing the same id again has no effect."""
    return f"{name}:{job_id}:{attempt}"


class WorkflowTable:
    """Workflows in the database of ``engine``. Every method blocks, and raises the database's own errors.

    Args:
        on_enqueued: called with the queue after each committed enqueue; with None after workflows were enqueued again.
        notifications: wakes the queue workers of other processes. None if the database has no notifications.
    """

    def __init__(
        self,
        engine: Engine,
        on_enqueued: Callable[[QueueName | None], None] = lambda queue: None,
        notifications: Notifications | None = None,
    ) -> None:
        self._engine = engine
        self._on_enqueued = on_enqueued
        self._notifications = notifications

    def create(self) -> None:
        """Create the table unless it exists, and take over the unfinished workflows of releases that used DBOS."""
        with self._engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
            elif not connection.connection.in_transaction:
                # The driver would commit the table before the workflows are in it. No later start takes them over.
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            if not inspect(connection).has_table(workflows.name):
                metadata.create_all(connection)
                _adopt_workflows(connection)
            elif workflows.c.waits_until_us.name not in {
                column["name"] for column in inspect(connection).get_columns(workflows.name)
            }:
                connection.execute(text("ALTER TABLE workflows ADD COLUMN waits_until_us BIGINT"))  # an earlier release made it

    def enqueue(self, name: str, queue: QueueName, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Enqueue a workflow. An existing id changes nothing."""
        with self._engine.begin() as connection:
            self._insert_workflow(connection, name, queue, tenant, workflow_id(name, job_id, attempt))
        self._on_enqueued(queue)

    def enqueue_within(
        self, connection: Connection, name: str, queue: QueueName, tenant: TenantId, job_id: str, attempt: int
    ) -> None:
        """Enqueue a workflow in an open transaction."""
        self._insert_workflow(connection, name, queue, tenant, workflow_id(name, job_id, attempt))
        after_commit(connection, partial(self._on_enqueued, queue))

    def _insert_workflow(self, connection: Connection, name: str, queue: QueueName, tenant: TenantId, id: str) -> None:
        dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
        row = {"tenant_id": require_tenant(tenant).value, "id": id, "name": name, "queue": queue.value, "enqueued_us": _now_us()}
        connection.execute(dialect.insert(workflows).on_conflict_do_nothing(), row)
        if self._notifications is not None:
            self._notifications.notify_processes(connection)

    def claim(self, queue: QueueName, executor_id: str, *, per_tenant: int, alone: bool) -> list[ClaimedWorkflow]:
        """Claim waiting workflows of a queue for a process: one of each tenant in turn, each tenant's in order.

        Workflows of suspended tenants wait, and so do workflows that a quota delays.

        Args:
            per_tenant: limit of claimed workflows of a tenant: of this process, or of all processes if it is ``alone``.
        """
        with self._engine.begin() as connection:
            keys = [
                (row.tenant_id, row.id)
                for row in connection.execute(_select_claimable(queue, None if alone else executor_id, per_tenant))
            ]
            claimed: dict[tuple[str, str], ClaimedWorkflow] = {}
            for page in _cut_pages(keys):
                free = update(workflows).where(tuple_(workflows.c.tenant_id, workflows.c.id).in_(page), *_WAITING)
                rows = connection.execute(free.values(claimant=executor_id).returning(workflows))
                claimed |= {(row.tenant_id, row.id): _claimed_of(row) for row in rows}
        return [claimed[key] for key in keys if key in claimed]

    def list_suspended(self, tenant_ids: Collection[TenantId]) -> frozenset[TenantId]:
        """Return the tenants that are suspended."""
        suspended: set[str] = set()
        with self._engine.connect() as connection:
            for page in _cut_pages(sorted(tenant.value for tenant in tenant_ids)):
                suspended.update(
                    connection.execute(select(tenants.c.tenant_id).where(tenants.c.tenant_id.in_(page), _SUSPENDED)).scalars()
                )
        return frozenset(TenantId(value) for value in suspended)

    def finish(self, workflow: ClaimedWorkflow) -> None:
        """Record that a workflow has ended, unless another process has claimed it."""
        with self._engine.begin() as connection:
            connection.execute(_update_claim(workflow).values(finished_us=_now_us()))

    def end(self, workflow: ClaimedWorkflow) -> None:
        """End a workflow for good, regardless of its claimant."""
        of_workflow = (workflows.c.tenant_id == workflow.tenant.value, workflows.c.id == workflow.id, _OPEN)
        with self._engine.begin() as connection:
            connection.execute(update(workflows).where(*of_workflow).values(finished_us=_now_us()))

    def list_unfinished_ids(self, workflow_ids: Collection[str]) -> frozenset[str]:
        """Return the ids that are waiting or claimed."""
        open_ids: set[str] = set()
        with self._engine.connect() as connection:
            for page in _cut_pages(list(workflow_ids)):
                open_ids.update(connection.execute(select(workflows.c.id).where(workflows.c.id.in_(page), _OPEN)).scalars())
        return frozenset(open_ids)

    def oldest_enqueued_s(self) -> Mapping[QueueName, float]:
        """Return, by queue, the seconds that the oldest unclaimed workflow has waited; 0 if none waits.

        Workflows of suspended tenants, and those that a quota delays, do not count.
        """
        is_suspended = exists().where(tenants.c.tenant_id == workflows.c.tenant_id, _SUSPENDED)
        oldest = select(workflows.c.queue, func.min(workflows.c.enqueued_us)).where(*_WAITING, _is_due(), ~is_suspended)
        oldest = oldest.group_by(workflows.c.queue)
        with self._engine.connect() as connection:
            since_us: dict[str, int] = {row[0]: row[1] for row in connection.execute(oldest)}
        now_us = _now_us()
        return {queue: max(0.0, (now_us - since_us.get(queue.value, now_us)) / 1e6) for queue in QueueName}

    def list_claims(self) -> list[ClaimedWorkflow]:
        """Return the workflows that are claimed and have not ended. Workflows that are only enqueued are not included."""
        statement = select(workflows).where(_OPEN, workflows.c.claimant.is_not(None)).order_by(workflows.c.enqueued_us)
        with self._engine.connect() as connection:
            return [_claimed_of(row) for row in connection.execute(statement)]

    def hand_back(self, handed_back: Iterable[ClaimedWorkflow], *, until: datetime | None = None) -> int:
        """Enqueue again the workflows that still have the same claimant. Return their number.

        Args:
            until: the moment before which they do not start.
        """
        values = {"claimant": None, "waits_until_us": None if until is None else int(until.timestamp() * 1e6)}
        with self._engine.begin() as connection:
            count = sum(connection.execute(_update_claim(workflow).values(values)).rowcount for workflow in handed_back)
        if count:
            self._on_enqueued(None)
            if self._notifications is not None:
                with contextlib.suppress(SQLAlchemyError):  # they wait; other processes find them at their next poll
                    self._notifications.send_now()
        return count

    def end_waits(self, tenant: TenantId, job_id: str | None = None) -> None:
        """Let the workflows of a tenant, or of one of its jobs, start as soon as they can."""
        conditions = [workflows.c.tenant_id == tenant.value, workflows.c.waits_until_us.is_not(None), _OPEN]
        if job_id is not None:
            conditions.append(workflows.c.id.contains(f":{job_id}:", autoescape=True))
        with self._engine.begin() as connection:
            if not connection.execute(update(workflows).where(*conditions).values(waits_until_us=None)).rowcount:
                return
            if self._notifications is not None:
                self._notifications.notify_processes(connection)
        self._on_enqueued(None)

    def delete_old_workflows(self) -> None:
        """Delete workflows that ended before the retention period."""
        before_us = _now_us() - int(RETENTION.total_seconds() * 1e6)
        with self._engine.begin() as connection:
            connection.execute(delete(workflows).where(workflows.c.finished_us < before_us))


def by_id(claimed: Iterable[ClaimedWorkflow]) -> Mapping[str, ClaimedWorkflow]:
    """Return workflows by their ids."""
    return {workflow.id: workflow for workflow in claimed}


def _select_claimable(queue: QueueName, claimant: str | None, per_tenant: int) -> Select[tuple[str, str]]:
    """Select the tenants and ids of waiting workflows that fit into the limit of their tenant, one of each tenant in turn.

    Rows that another process is claiming are skipped, so that processes do not wait for each other.
    """
    of_queue = and_(workflows.c.queue == queue.value, _is_due())
    is_counted = workflows.c.claimant.is_not(None) if claimant is None else workflows.c.claimant == claimant
    claims = select(workflows.c.tenant_id, func.count().label("count"))
    claims = claims.where(_OPEN, workflows.c.queue == queue.value, is_counted)
    claims_of = claims.group_by(workflows.c.tenant_id).subquery()
    waiting = select(workflows.c.tenant_id).where(of_queue, *_WAITING).distinct().subquery()
    # Only the oldest workflows of a tenant are numbered: a claim must not take longer the more of them wait.
    of_tenant = select(workflows.c.enqueued_us).where(of_queue, *_WAITING, workflows.c.tenant_id == waiting.c.tenant_id)
    last_us = of_tenant.order_by(workflows.c.enqueued_us).limit(1).offset(per_tenant - 1).scalar_subquery()
    is_suspended = exists().where(tenants.c.tenant_id == waiting.c.tenant_id, _SUSPENDED)
    oldest = select(waiting.c.tenant_id, func.coalesce(last_us, _LATEST_US).label("last_us")).where(~is_suspended).subquery()
    order = (workflows.c.enqueued_us, workflows.c.id)
    turn = func.row_number().over(partition_by=workflows.c.tenant_id, order_by=order).label("turn")
    are_oldest = (oldest.c.tenant_id == workflows.c.tenant_id) & (workflows.c.enqueued_us <= oldest.c.last_us)
    turns = select(workflows.c.id, workflows.c.tenant_id, turn).join(oldest, are_oldest).where(of_queue, *_WAITING).subquery()
    return (
        select(workflows.c.tenant_id, workflows.c.id)
        .join(turns, (turns.c.tenant_id == workflows.c.tenant_id) & (turns.c.id == workflows.c.id))
        .outerjoin(claims_of, claims_of.c.tenant_id == workflows.c.tenant_id)
        .where(*_WAITING, turns.c.turn <= per_tenant - func.coalesce(claims_of.c.count, 0))
        .order_by(turns.c.turn, *order)
        .with_for_update(of=workflows, skip_locked=True)
    )


def _is_due() -> ColumnElement[bool]:
    return or_(workflows.c.waits_until_us.is_(None), workflows.c.waits_until_us <= _now_us())


def _update_claim(workflow: ClaimedWorkflow) -> Update:
    """Return an update of a workflow that still has the same claimant."""
    return update(workflows).where(
        workflows.c.tenant_id == workflow.tenant.value,
        workflows.c.id == workflow.id,
        workflows.c.claimant == workflow.executor_id,
        _OPEN,
    )


def _adopt_workflows(connection: Connection) -> None:
    """Take over the unfinished workflows in the tables of DBOS, which earlier releases used. All of them start again."""
    schema = "dbos" if connection.dialect.name == "postgresql" else None
    if not inspect(connection).has_table("workflow_status", schema=schema):
        return
    connection.execute(
        text(
            "INSERT INTO workflows (tenant_id, id, name, queue, enqueued_us) "
            "SELECT queue_partition_key, workflow_uuid, name, queue_name, created_at * 1000 "
            f"FROM {'dbos.' if schema else ''}workflow_status "
            "WHERE status IN ('ENQUEUED', 'PENDING') AND queue_partition_key IS NOT NULL AND queue_name IS NOT NULL"
        )
    )


def _claimed_of(row: Row[Any]) -> ClaimedWorkflow:
    tenant = TenantId(row.tenant_id)
    return ClaimedWorkflow(id=row.id, name=row.name, queue=row.queue, tenant=tenant, executor_id=row.claimant)


def _now_us() -> int:
    return time.time_ns() // 1000


def _cut_pages(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[start : start + _PAGE] for start in range(0, len(items), _PAGE))
