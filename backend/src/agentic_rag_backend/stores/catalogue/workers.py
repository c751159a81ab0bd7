"""Workers and what they run, on SQL."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.job import JobKind, JobState
from agentic_rag_backend.domain.tenant import TenantId, require_tenant
from agentic_rag_backend.stores.catalogue.columns import utc_now
from agentic_rag_backend.stores.catalogue.database import Database
from agentic_rag_backend.stores.catalogue.job_rows import OPEN
from agentic_rag_backend.stores.catalogue.liveness import Worker
from agentic_rag_backend.stores.catalogue.rows import upsert
from agentic_rag_backend.stores.catalogue.tables import jobs, workers, workflow_runs


class SqlWorkers:
    """Implements `WorkerDirectory`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def join(self, executor_id: str, workflows: Collection[str]) -> None:
        """Add a worker."""
        row = {"executor_id": executor_id, "beats": 0, "workflows": sorted(workflows), "joined_at": utc_now()}

        def add(connection: Connection) -> None:
            connection.execute(insert(workers), {**row, "beaten_at": database_now(connection)})

        await self._database.write(add)

    async def beat(self, executor_id: str) -> bool:
        """Say that a worker is alive."""
        statement = update(workers).where(workers.c.executor_id == executor_id).values(beats=workers.c.beats + 1)

        def count(connection: Connection) -> bool:
            return connection.execute(statement.values(beaten_at=database_now(connection))).rowcount == 1

        return await self._database.write_soon(count)

    async def leave(self, executor_id: str) -> None:
        """Remove a worker that runs nothing any more."""
        await self._database.write(_leave, executor_id)

    async def workers(self) -> Sequence[Worker]:
        """Return everybody."""

        def find(connection: Connection) -> Sequence[Worker]:
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

        return await self._database.read(find)

    async def bury(self, worker: Worker) -> bool:
        """Remove a worker that has not beaten since."""
        return await self._database.write(_bury, worker)

    async def began(self, tenant: TenantId, workflow_id: str, executor_id: str) -> None:
        """Record that a worker is running a workflow now."""
        row = {"tenant_id": require_tenant(tenant).value, "workflow_id": workflow_id, "executor_id": executor_id, "kills": 0}

        def record(connection: Connection) -> None:
            upsert(connection, workflow_runs, [row], keys=("tenant_id", "workflow_id"), replace=("executor_id",))

        await self._database.write(record)

    async def ended(self, tenant: TenantId, workflow_id: str, executor_id: str, *, finished: bool) -> None:
        """Record that it does not any more."""
        await self._database.write(_ended, require_tenant(tenant), workflow_id, executor_id, finished)

    async def kills(self) -> Mapping[str, int]:
        """Return at how many kills each workflow was present."""
        statement = select(workflow_runs.c.workflow_id, workflow_runs.c.kills).where(workflow_runs.c.kills > 0)

        def find(connection: Connection) -> Mapping[str, int]:
            return {row.workflow_id: row.kills for row in connection.execute(statement)}

        return await self._database.read(find)

    async def open_jobs(self) -> Mapping[str, int]:
        """Count the jobs of all tenants that have not ended."""
        statement = select(jobs.c.state, func.count().label("jobs")).where(jobs.c.state.in_(OPEN)).group_by(jobs.c.state)

        def count(connection: Connection) -> Mapping[str, int]:
            return dict.fromkeys(OPEN, 0) | {row.state: row.jobs for row in connection.execute(statement)}

        return await self._database.read(count)

    async def oldest_queued_s(self) -> Mapping[JobKind, float]:
        """Return, by kind, for how many seconds the oldest queued job has waited."""
        # A job that is retried is queued again: its row was last changed then.
        oldest = func.min(jobs.c.updated_at, type_=jobs.c.updated_at.type).label("since")
        statement = select(jobs.c.kind, oldest).where(jobs.c.state == JobState.QUEUED.value).group_by(jobs.c.kind)

        def measure(connection: Connection) -> Mapping[JobKind, float]:
            now = database_now(connection)
            rows = connection.execute(statement)
            return {JobKind(row.kind): max(0.0, (now - row.since).total_seconds()) for row in rows}

        return await self._database.read(measure)

    async def forget(self, workflow_ids: Collection[str]) -> None:
        """Forget what was counted against workflows that nobody runs any more."""
        named = workflow_runs.c.workflow_id.in_(list(workflow_ids))
        statement = delete(workflow_runs).where(named, workflow_runs.c.executor_id.is_(None))

        def remove(connection: Connection) -> None:
            connection.execute(statement)

        await self._database.write(remove)


def database_now(connection: Connection) -> datetime:
    """Return the time by the one clock that all processes share: the database server's, on SQLite this machine's."""
    if connection.dialect.name == "sqlite":
        return utc_now()
    now: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
    return now.astimezone(UTC)


def _leave(connection: Connection, executor_id: str) -> None:
    connection.execute(delete(workflow_runs).where(workflow_runs.c.executor_id == executor_id, workflow_runs.c.kills == 0))
    connection.execute(update(workflow_runs).where(workflow_runs.c.executor_id == executor_id).values(executor_id=None))
    connection.execute(delete(workers).where(workers.c.executor_id == executor_id))


def _bury(connection: Connection, worker: Worker) -> bool:
    # The comparison is what makes it safe: who has beaten meanwhile is alive, and of two who come here one finds the row.
    silent = delete(workers).where(workers.c.executor_id == worker.executor_id, workers.c.beats == worker.beats)
    if connection.execute(silent).rowcount == 0:
        return False
    blamed = update(workflow_runs).where(workflow_runs.c.executor_id == worker.executor_id)
    connection.execute(blamed.values(kills=workflow_runs.c.kills + 1, executor_id=None))
    return True


def _ended(connection: Connection, tenant: TenantId, workflow_id: str, executor_id: str, finished: bool) -> None:
    its = (
        workflow_runs.c.tenant_id == tenant.value,
        workflow_runs.c.workflow_id == workflow_id,
        workflow_runs.c.executor_id == executor_id,
    )
    forgotten = delete(workflow_runs).where(*its)
    connection.execute(forgotten if finished else forgotten.where(workflow_runs.c.kills == 0))
    if not finished:
        connection.execute(update(workflow_runs).where(*its).values(executor_id=None))
