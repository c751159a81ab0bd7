"""Workers and their running workflows, on SQL."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, delete, func, insert, select, update
from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.job import JobKind, JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.columns import utc_now
from agentic_rag_backend.stores.catalogue.jobs.job_rows import OPEN
from agentic_rag_backend.stores.catalogue.operations import SqlPort, read, write, write_soon
from agentic_rag_backend.stores.catalogue.ports.workers import Worker
from agentic_rag_backend.stores.catalogue.rows import upsert
from agentic_rag_backend.stores.catalogue.tables import jobs, workers, workflow_runs


def database_now(connection: Connection) -> datetime:
    """Return the time of the database server, which all processes share. On SQLite, this machine's time."""
    if connection.dialect.name == "sqlite":
        return utc_now()
    now: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
    return now.astimezone(UTC)


def join(connection: Connection, executor_id: str, workflows: Collection[str]) -> None:
    """See `WorkerDirectory.join`."""
    row = {"executor_id": executor_id, "beats": 0, "workflows": sorted(workflows), "joined_at": utc_now()}
    connection.execute(insert(workers), {**row, "beaten_at": database_now(connection)})


def heartbeat(connection: Connection, executor_id: str) -> bool:
    """See `WorkerDirectory.heartbeat`."""
    statement = update(workers).where(workers.c.executor_id == executor_id).values(beats=workers.c.beats + 1)
    return connection.execute(statement.values(beaten_at=database_now(connection))).rowcount == 1


def leave(connection: Connection, executor_id: str) -> None:
    """See `WorkerDirectory.leave`."""
    connection.execute(delete(workflow_runs).where(workflow_runs.c.executor_id == executor_id, workflow_runs.c.kills == 0))
    connection.execute(update(workflow_runs).where(workflow_runs.c.executor_id == executor_id).values(executor_id=None))
    connection.execute(delete(workers).where(workers.c.executor_id == executor_id))


def list_workers(connection: Connection) -> Sequence[Worker]:
    """See `WorkerDirectory.workers`."""
    rows = connection.execute(select(workers).order_by(workers.c.executor_id)).mappings().all()
    now = database_now(connection)
    return [
        Worker(
            executor_id=row["executor_id"],
            beats=row["beats"],
            workflows=frozenset(row["workflows"]),
            silent_s=max(0.0, (now - row["beaten_at"]).total_seconds()),
        )
        for row in rows
    ]


def bury(connection: Connection, worker: Worker) -> bool:
    """See `WorkerDirectory.bury`."""
    # The comparison makes this safe: a worker that has sent a heartbeat stays, and of two observers only one deletes the row.
    silent = delete(workers).where(workers.c.executor_id == worker.executor_id, workers.c.beats == worker.beats)
    if connection.execute(silent).rowcount == 0:
        return False
    blamed = update(workflow_runs).where(workflow_runs.c.executor_id == worker.executor_id)
    connection.execute(blamed.values(kills=workflow_runs.c.kills + 1, executor_id=None))
    return True


def began(connection: Connection, tenant: TenantId, workflow_id: str, executor_id: str) -> None:
    """See `WorkerDirectory.began`."""
    row = {"tenant_id": tenant.value, "workflow_id": workflow_id, "executor_id": executor_id, "kills": 0}
    upsert(connection, workflow_runs, [row], keys=("tenant_id", "workflow_id"), replace=("executor_id",))


def ended(connection: Connection, tenant: TenantId, workflow_id: str, executor_id: str, *, finished: bool) -> None:
    """See `WorkerDirectory.ended`."""
    its = _run_of(tenant, workflow_id, executor_id)
    forgotten = delete(workflow_runs).where(*its)
    connection.execute(forgotten if finished else forgotten.where(workflow_runs.c.kills == 0))
    if not finished:
        connection.execute(update(workflow_runs).where(*its).values(executor_id=None))


def forgive(connection: Connection, tenant: TenantId, workflow_id: str, executor_id: str) -> None:
    """See `WorkerDirectory.forgive`."""
    connection.execute(update(workflow_runs).where(*_run_of(tenant, workflow_id, executor_id)).values(kills=0))


def _run_of(tenant: TenantId, workflow_id: str, executor_id: str) -> tuple[ColumnElement[bool], ...]:
    return (
        workflow_runs.c.tenant_id == tenant.value,
        workflow_runs.c.workflow_id == workflow_id,
        workflow_runs.c.executor_id == executor_id,
    )


def kills(connection: Connection) -> Mapping[str, int]:
    """See `WorkerDirectory.kills`."""
    statement = select(workflow_runs.c.workflow_id, workflow_runs.c.kills).where(workflow_runs.c.kills > 0)
    return {row.workflow_id: row.kills for row in connection.execute(statement)}


def open_jobs(connection: Connection) -> Mapping[str, int]:
    """See `WorkerDirectory.open_jobs`."""
    statement = select(jobs.c.state, func.count().label("jobs")).where(jobs.c.state.in_(OPEN)).group_by(jobs.c.state)
    return dict.fromkeys(OPEN, 0) | {row.state: row.jobs for row in connection.execute(statement)}


def oldest_queued_s(connection: Connection) -> Mapping[JobKind, float]:
    """See `WorkerDirectory.oldest_queued_s`."""
    # A retried job is queued again. Its row was last changed at that time.
    oldest = func.min(jobs.c.updated_at, type_=jobs.c.updated_at.type).label("since")
    statement = select(jobs.c.kind, oldest).where(jobs.c.state == JobState.QUEUED.value).group_by(jobs.c.kind)
    now = database_now(connection)
    return {JobKind(row.kind): max(0.0, (now - row.since).total_seconds()) for row in connection.execute(statement)}


def forget(connection: Connection, workflow_ids: Collection[str]) -> None:
    """See `WorkerDirectory.forget`."""
    named = workflow_runs.c.workflow_id.in_(list(workflow_ids))
    connection.execute(delete(workflow_runs).where(named, workflow_runs.c.executor_id.is_(None)))


class SqlWorkers(SqlPort):
    """Implements `WorkerDirectory`."""

    join = write(join)
    heartbeat = write_soon(heartbeat)
    leave = write(leave)
    workers = read(list_workers)
    bury = write(bury)
    began = write(began)
    ended = write(ended)
    forgive = write(forgive)
    kills = read(kills)
    open_jobs = read(open_jobs)
    oldest_queued_s = read(oldest_queued_s)
    forget = write(forget)
