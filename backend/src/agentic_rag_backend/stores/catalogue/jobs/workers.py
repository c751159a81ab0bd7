"""Workers: the processes that run jobs, and their running workflows.

Only a deployment with several processes on one database uses them. `testing.jobs.workers` checks the contract on both databases.
The clocks of two machines are never compared: a process measures how long another has been silent, or the database does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, delete, func, insert, select, update
from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.job import JobKind, JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.columns import utc_now
from agentic_rag_backend.stores.catalogue.jobs.job_rows import OPEN
from agentic_rag_backend.stores.catalogue.operations import CataloguePart, read, upsert, write, write_soon
from agentic_rag_backend.stores.catalogue.tables import jobs, workers, workflow_runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A process that runs jobs, as another process sees it."""

    executor_id: str
    beats: int
    """Number of its heartbeats."""
    workflows: frozenset[str]
    """Names of the workflows that its release can run."""
    silent_s: float = field(default=0.0, compare=False)
    """Seconds since its last heartbeat, by the database's clock."""


def database_now(connection: Connection) -> datetime:
    """Return the time of the database server, which all processes share. On SQLite, this machine's time."""
    if connection.dialect.name == "sqlite":
        return utc_now()
    now: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
    return now.astimezone(UTC)


def join(connection: Connection, executor_id: str, workflows: Collection[str]) -> None:
    """Add a worker."""
    row = {"executor_id": executor_id, "beats": 0, "workflows": sorted(workflows), "joined_at": utc_now()}
    connection.execute(insert(workers), {**row, "beaten_at": database_now(connection)})


def heartbeat(connection: Connection, executor_id: str) -> bool:
    """Record a heartbeat. Return False if the worker was removed as dead."""
    statement = update(workers).where(workers.c.executor_id == executor_id).values(beats=workers.c.beats + 1)
    return connection.execute(statement.values(beaten_at=database_now(connection))).rowcount == 1


def leave(connection: Connection, executor_id: str) -> None:
    """Remove a worker that has stopped. Its workflows are not counted as killed."""
    connection.execute(delete(workflow_runs).where(workflow_runs.c.executor_id == executor_id, workflow_runs.c.kills == 0))
    connection.execute(update(workflow_runs).where(workflow_runs.c.executor_id == executor_id).values(executor_id=None))
    connection.execute(delete(workers).where(workers.c.executor_id == executor_id))


def list_workers(connection: Connection) -> Sequence[Worker]:
    """Return all workers."""
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
    """Remove a worker without a newer heartbeat, and add a kill to each workflow that it was running.

    When several processes bury the same worker, only one of them gets True.
    """
    # The comparison makes this safe: a worker that has sent a heartbeat stays, and of two observers only one deletes the row.
    silent = delete(workers).where(workers.c.executor_id == worker.executor_id, workers.c.beats == worker.beats)
    if connection.execute(silent).rowcount == 0:
        return False
    blamed = update(workflow_runs).where(workflow_runs.c.executor_id == worker.executor_id)
    connection.execute(blamed.values(kills=workflow_runs.c.kills + 1, executor_id=None))
    return True


def began(connection: Connection, tenant: TenantId, workflow_id: str, executor_id: str) -> None:
    """Record that a worker runs a workflow now, also if another worker ran it before."""
    row = {"tenant_id": tenant.value, "workflow_id": workflow_id, "executor_id": executor_id, "kills": 0}
    upsert(connection, workflow_runs, [row], keys=("tenant_id", "workflow_id"), replace=("executor_id",))


def ended(connection: Connection, tenant: TenantId, workflow_id: str, executor_id: str, *, finished: bool) -> None:
    """Record that the worker has stopped running the workflow. Nothing changes if another worker runs it by now.

    A ``finished`` workflow is not run again, so its kills are forgotten.
    """
    its = _run_of(tenant, workflow_id, executor_id)
    forgotten = delete(workflow_runs).where(*its)
    connection.execute(forgotten if finished else forgotten.where(workflow_runs.c.kills == 0))
    if not finished:
        connection.execute(update(workflow_runs).where(*its).values(executor_id=None))


def forgive(connection: Connection, tenant: TenantId, workflow_id: str, executor_id: str) -> None:
    """Forget the kills of a workflow that the worker runs. Nothing changes if another worker runs it by now."""
    connection.execute(update(workflow_runs).where(*_run_of(tenant, workflow_id, executor_id)).values(kills=0))


def _run_of(tenant: TenantId, workflow_id: str, executor_id: str) -> tuple[ColumnElement[bool], ...]:
    return (
        workflow_runs.c.tenant_id == tenant.value,
        workflow_runs.c.workflow_id == workflow_id,
        workflow_runs.c.executor_id == executor_id,
    )


def kills(connection: Connection) -> Mapping[str, int]:
    """Return the number of kills of each unfinished workflow that has any."""
    statement = select(workflow_runs.c.workflow_id, workflow_runs.c.kills).where(workflow_runs.c.kills > 0)
    return {row.workflow_id: row.kills for row in connection.execute(statement)}


def open_jobs(connection: Connection) -> Mapping[str, int]:
    """Count the jobs of all tenants that are ``queued`` and ``running``."""
    statement = select(jobs.c.state, func.count().label("jobs")).where(jobs.c.state.in_(OPEN)).group_by(jobs.c.state)
    return dict.fromkeys(OPEN, 0) | {row.state: row.jobs for row in connection.execute(statement)}


def oldest_queued_s(connection: Connection) -> Mapping[JobKind, float]:
    """Return, by kind, the seconds that the oldest ``queued`` job of all tenants has waited.

    A kind without queued jobs is absent.
    """
    # A retried job is queued again. Its row was last changed at that time.
    oldest = func.min(jobs.c.updated_at, type_=jobs.c.updated_at.type).label("since")
    statement = select(jobs.c.kind, oldest).where(jobs.c.state == JobState.QUEUED.value).group_by(jobs.c.kind)
    now = database_now(connection)
    return {JobKind(row.kind): max(0.0, (now - row.since).total_seconds()) for row in connection.execute(statement)}


def forget(connection: Connection, workflow_ids: Collection[str]) -> None:
    """Forget the kills of workflows that no worker runs."""
    of_workflows = workflow_runs.c.workflow_id.in_(list(workflow_ids))
    connection.execute(delete(workflow_runs).where(of_workflows, workflow_runs.c.executor_id.is_(None)))


class WorkerDirectory(CataloguePart):
    """Workers. A worker joins before it claims work, sends a heartbeat every few seconds, and leaves when it has stopped."""

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
