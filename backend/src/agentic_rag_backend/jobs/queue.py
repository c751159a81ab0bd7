"""The durable queue on DBOS, the only importer of it: jobs live in the catalogue's own database."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from dbos import DBOS, DBOSClient, DBOSConfig, EnqueueOptions, Serializer
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from agentic_rag_backend.domain.job import Job
from agentic_rag_backend.domain.tenant import TenantId, require_tenant
from agentic_rag_backend.errors import AgenticRagError, ConfigurationError, StoreUnavailable
from agentic_rag_backend.jobs.base import QueueName, Workflow
from agentic_rag_backend.jobs.database import as_unavailable, beside, ping, queue_engine
from agentic_rag_backend.jobs.recovery import ALONE_AFTER, GIVEN_UP_AFTER, caution, plan
from agentic_rag_backend.jobs.running import RunningNote
from agentic_rag_backend.jobs.slots import Slots
from agentic_rag_backend.stores.catalogue.base import Enqueue

Failed = Callable[[TenantId, str, int, Exception], Awaitable[None]]
"""Told ``(tenant, job_id, attempt, error)`` of a job that ended without its workflow having recorded how."""

_APPLICATION = "agentic-rag"
_APPLICATION_VERSION = "1"
"""A constant: workflows carry their version in their names, and every release takes up what an older one left."""

_CLAIMED_AHEAD = 64
"""Jobs of one tenant claimed at a look at the queue; slots of this process then bound how many of them run."""
_RUNNING_AT_ONCE = 32
"""Workflows of one queue running in this process, over all tenants."""
_DRAIN_S = 3.0
_CANCEL_S = 1.0
_HOUSEKEEPING_S = 30.0
_RETENTION = timedelta(days=7)
_PAGE = 500

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Declared:
    queue: QueueName
    workflow: Workflow


class _JsonSerializer(Serializer):
    """Arguments are plain strings and numbers; nothing read from the database is ever unpickled."""

    def serialize(self, data: Any) -> str:
        return json.dumps(data, default=_shown)

    def deserialize(cls, serialized_data: str) -> Any:  # noqa: N805 - named so by the base class
        return json.loads(serialized_data)

    def name(self) -> str:
        return "agentic_rag_json"


class DbosQueue:
    """`JobQueue` on DBOS; see `jobs.base` for the contract.

    DBOS claims jobs in batches (a claim a job would bound a tenant to one commit a polling interval); how many of a
    tenant run at once is bound by slots in this process, in the order of claiming. DBOS is one per process: a second
    queue can be launched when the first was shut down.
    """

    _launched: DbosQueue | None = None

    def __init__(
        self,
        catalogue_engine: Engine,
        *,
        executor_id: str,
        prepare_concurrency: int,
        polling_interval_s: float,
        on_failed: Failed | None = None,
    ) -> None:
        self._engine, self._owned = queue_engine(catalogue_engine)
        self._executor_id = executor_id
        self._polling_interval_s = polling_interval_s
        self._on_failed = on_failed
        self._declared: dict[str, _Declared] = {}
        self._slots = Slots({QueueName.PREPARE: prepare_concurrency, QueueName.COMMIT: 1}, _RUNNING_AT_ONCE)
        # Only on SQLite, where one process owns the folder: elsewhere the other processes may be alive.
        self._note = RunningNote(beside(self._engine, "-running") if self._owned else None)
        self._unrecorded: set[tuple[str, str, int]] = set()
        self._waiting: set[asyncio.Task[Any]] = set()
        self._working: set[asyncio.Task[Any]] = set()
        self._stopping = False
        self._housekeeping: asyncio.Task[None] | None = None
        self._client = DBOSClient(
            system_database_engine=self._engine, serializer=_JsonSerializer(), application_name=_APPLICATION, lazy=True
        )

    def register(self, name: str, queue: QueueName, workflow: Workflow) -> None:
        """Declare a workflow before `launch`.

        Raises:
            ConfigurationError: the name is taken, or the queue was launched already.
        """
        if name in self._declared:
            raise ConfigurationError(f"a workflow named {name!r} is registered already")
        if DbosQueue._launched is self:
            raise ConfigurationError(f"workflow {name!r} was registered after the queue was launched")
        self._declared[name] = _Declared(queue, workflow)

    def enqueuer(self, name: str) -> Enqueue:
        """Return what puts a job on ``name``'s queue inside an open catalogue transaction.

        Raises:
            ConfigurationError: no workflow of that name is registered.
        """
        declared = self._workflow(name)

        def enqueue(connection: Connection, tenant: TenantId, job: Job) -> None:
            options = _options(name, declared, tenant, job.id, job.attempt)
            self._client.enqueue_in_transaction(connection, options, tenant.value, job.id, job.attempt)

        return enqueue

    async def enqueue(self, name: str, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Put a job on ``name``'s queue; the same name, job and attempt again changes nothing."""
        options = _options(name, self._workflow(name), tenant, job_id, attempt)
        with as_unavailable():
            await asyncio.to_thread(self._client.enqueue, options, tenant.value, job_id, attempt)

    async def migrate(self) -> None:
        """Bring the queue's tables to this release's version; a process that only enqueues calls it instead of `launch`."""
        with as_unavailable():
            await asyncio.to_thread(DBOS.migrate, self._engine.url.render_as_string(hide_password=False))

    async def launch(self) -> None:
        """Start working in the running loop, and take up what an earlier process of this folder left.

        Raises:
            ConfigurationError: another queue of this process is launched.
            StoreUnavailable: the database does not answer.
        """
        if DbosQueue._launched is not None:
            raise ConfigurationError("a job queue is running in this process already; shut it down first")
        DbosQueue._launched = self
        try:
            _quieten_logging()
            await self.migrate()
            with as_unavailable():
                await asyncio.to_thread(self._prepare)
                if self._owned:
                    await self._give_up(await asyncio.to_thread(self._take_up))
                DBOS(config=self._configuration())
                for name in self._declared:
                    DBOS.workflow(name=name, max_recovery_attempts=None)(self._run_as_workflow(name))
                # On the loop's own thread: DBOS runs async workflows on the loop that it finds here.
                DBOS.launch()
        except BaseException:
            await self._destroy()
            raise
        self._housekeeping = asyncio.create_task(self._keep_house(), name="job-queue-housekeeping")

    async def shutdown(self) -> None:
        """Stop taking work, give what runs a few seconds to end, hand back the rest for the next start, release the queue.

        What is handed back is cancelled (`asyncio.CancelledError` inside the workflow) and begins anew at the next start.
        """
        self._stopping = True
        if self._housekeeping is not None:
            self._housekeeping.cancel()
            await asyncio.gather(self._housekeeping, return_exceptions=True)
            self._housekeeping = None
        _cancel(self._waiting)
        if self._working:
            await asyncio.wait(set(self._working), timeout=_DRAIN_S)
        rest = self._working | self._waiting
        _cancel(rest)
        if rest:
            await asyncio.wait(rest, timeout=_CANCEL_S)
        await self._destroy()

    async def ping(self) -> None:
        """Raise `StoreUnavailable` unless the queue is running and its database answers."""
        if DbosQueue._launched is not self or self._stopping:
            raise StoreUnavailable("the job queue is not running")
        with as_unavailable():
            await asyncio.to_thread(ping, self._engine)

    def _workflow(self, name: str) -> _Declared:
        if name not in self._declared:
            raise ConfigurationError(f"no workflow named {name!r} is registered; there are {sorted(self._declared)}")
        return self._declared[name]

    def _configuration(self) -> DBOSConfig:
        return {
            "name": _APPLICATION,
            "system_database_engine": self._engine,
            "application_version": _APPLICATION_VERSION,
            "executor_id": self._executor_id,
            "serializer": _JsonSerializer(),
            "run_migrations": False,
            "use_listen_notify": False,
            "enable_otlp": False,
            "log_level": "WARNING",
            "notification_listener_polling_interval_sec": 0.2,  # it polls memory only; its sleep delays `shutdown`
            "scheduler_polling_interval_sec": 3600.0,
        }

    def _prepare(self) -> None:
        """Declare both queues, with this process's polling interval."""
        for queue in QueueName:
            self._client.register_queue(
                queue.value, partition_concurrency=_CLAIMED_AHEAD, polling_interval_sec=self._polling_interval_s
            )

    def _run_as_workflow(self, name: str) -> Callable[[str, str, int], Coroutine[Any, Any, None]]:
        async def run(tenant: str, job_id: str, attempt: int) -> None:
            await self._run(name, TenantId(tenant), job_id, attempt)

        run.__qualname__ = run.__name__ = name
        return run

    async def _run(self, name: str, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Run a workflow when its tenant and the process have room; cancelled, it stays to be taken up at the next start."""
        task = asyncio.current_task()
        if task is None or self._stopping:
            raise asyncio.CancelledError
        declared = self._declared[name]
        workflow_id = _workflow_id(name, job_id, attempt)
        self._waiting.add(task)
        task.add_done_callback(self._forget)
        async with self._slots.taken(declared.queue, tenant, caution(self._note.kills.get(workflow_id, 0))):
            self._waiting.discard(task)
            self._working.add(task)
            self._note.began(workflow_id)
            try:
                await declared.workflow(tenant, job_id, attempt)
            except Exception as error:
                try:
                    await self._failed(tenant, job_id, attempt, error)
                except Exception as problem:
                    # Ended now, the workflow would leave a job that is running for ever.
                    _log.exception("job %s failed, which could not be recorded; it is run again", job_id)
                    self._unrecorded.add((name, job_id, attempt))
                    raise asyncio.CancelledError from problem
                raise
            finally:
                self._note.ended(workflow_id)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._waiting.discard(task)
        self._working.discard(task)

    async def _failed(self, tenant: TenantId, job_id: str, attempt: int, error: Exception) -> None:
        if self._on_failed is not None:
            await self._on_failed(tenant, job_id, attempt, error)

    def _pending(self) -> list[Any]:
        """Return the workflows that some process claimed and did not end."""
        return self._client.list_workflows(status="PENDING", load_input=False, load_output=False)

    def _hand_back(self) -> None:
        """Queue again what this process claimed and did not end."""
        self._resume(workflow for workflow in self._pending() if workflow.executor_id == self._executor_id)

    def _take_up(self) -> list[Any]:
        """Queue again what the process before this one left when it was killed; return what is not run again."""
        left = {workflow.workflow_id: workflow for workflow in self._pending()}
        running = self._note.left()
        planned = plan(left, running, self._unended(self._note.kills))
        self._note.begin(planned.kills)
        self._resume(left[workflow] for workflow in planned.resumed)
        return [left[workflow] for workflow in planned.given_up]

    def _unended(self, kills: Mapping[str, int]) -> dict[str, int]:
        """Leave out what has ended since."""
        if not kills:
            return {}
        found = self._client.list_workflows(
            workflow_ids=list(kills), status=["ENQUEUED", "PENDING"], load_input=False, load_output=False
        )
        return {workflow.workflow_id: kills[workflow.workflow_id] for workflow in found}

    def _resume(self, workflows: Iterable[Any]) -> None:
        ids: dict[str, list[str]] = {}
        for workflow in workflows:
            ids.setdefault(workflow.queue_name, []).append(workflow.workflow_id)
        for queue, of_queue in ids.items():
            for first in range(0, len(of_queue), _PAGE):
                self._client.resume_workflows(of_queue[first : first + _PAGE], queue_name=queue)

    async def _give_up(self, killers: Iterable[Any]) -> None:
        """End workflows that killed the process too often."""
        times, alone = GIVEN_UP_AFTER, GIVEN_UP_AFTER - ALONE_AFTER
        for workflow in killers:
            problem = f"was running {times} times when the process was killed, the last {alone} of them with nothing beside it"
            await self._end(workflow, AgenticRagError(f"workflow {workflow.name!r} {problem}"))

    async def _reap(self, pending: Iterable[Any]) -> None:
        """End workflows that this release does not know: they would hold their tenant's place for ever."""
        for workflow in pending:
            if workflow.name not in self._declared:
                await self._end(workflow, ConfigurationError(f"workflow {workflow.name!r} is not known to this release"))

    async def _end(self, workflow: Any, error: AgenticRagError) -> None:
        _, job_id, attempt = workflow.workflow_id.rsplit(":", 2)
        _log.error("job %s given up: %s", job_id, error)
        await self._failed(TenantId(workflow.queue_partition_key), job_id, int(attempt), error)
        await asyncio.to_thread(self._client.cancel_workflows, [workflow.workflow_id])

    async def _keep_house(self) -> None:
        while True:
            try:
                with as_unavailable():
                    await asyncio.to_thread(self._run_unrecorded_again)
                    await asyncio.to_thread(self._delete_old)
                    await self._reap(await asyncio.to_thread(self._pending))
            except StoreUnavailable:
                _log.warning("the job queue's housekeeping failed; it is tried again", exc_info=True)
            await asyncio.sleep(_HOUSEKEEPING_S)

    def _run_unrecorded_again(self) -> None:
        for name, job_id, attempt in tuple(self._unrecorded):
            workflow_id = _workflow_id(name, job_id, attempt)
            self._client.resume_workflows([workflow_id], queue_name=self._declared[name].queue.value)
            self._unrecorded.discard((name, job_id, attempt))

    def _delete_old(self) -> None:
        before = (datetime.now(UTC) - _RETENTION).isoformat()
        while True:
            old = self._client.list_workflows(completed_before=before, limit=_PAGE, load_input=False, load_output=False)
            if not old:
                return
            self._client.delete_workflows([workflow.workflow_id for workflow in old])

    async def _destroy(self) -> None:
        if DbosQueue._launched is self:
            # In a thread: DBOS joins its threads, some of which wait for this loop.
            await asyncio.to_thread(DBOS.destroy, destroy_registry=True)
            DbosQueue._launched = None
            with contextlib.suppress(SQLAlchemyError):  # then they are taken up as if this process had been killed
                await asyncio.to_thread(self._hand_back)
        self._note.close()
        self._client.destroy()
        if self._owned:
            self._engine.dispose()


def _options(name: str, declared: _Declared, tenant: TenantId, job_id: str, attempt: int) -> EnqueueOptions:
    return {
        "workflow_name": name,
        "queue_name": declared.queue.value,
        "queue_partition_key": require_tenant(tenant).value,
        "workflow_id": _workflow_id(name, job_id, attempt),
        "app_version": _APPLICATION_VERSION,
    }


def _workflow_id(name: str, job_id: str, attempt: int) -> str:
    return f"{name}:{job_id}:{attempt}"


def _quieten_logging() -> None:
    """Let DBOS log through the standard tree: with a handler present it adds none of its own."""
    logger = logging.getLogger("dbos")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    logger.setLevel(logging.WARNING)


def _cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    for task in tuple(tasks):
        task.cancel()


def _shown(value: object) -> str:
    return f"{type(value).__name__}: {value}"[:500] if isinstance(value, Exception) else str(value)[:500]
