"""Waiting and claimed workflows in the tables of DBOS: enqueue, hand back, end, delete."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from dbos import DBOSClient, EnqueueOptions, Serializer
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from agentic_rag_backend.domain.tenant import TenantId, require_tenant
from agentic_rag_backend.jobs.base import QueueName
from agentic_rag_backend.jobs.queue.notifications import Notifications
from agentic_rag_backend.stores.catalogue.database import after_commit

APPLICATION = "agentic-rag"
APPLICATION_VERSION = "1"
"""A constant: workflows carry their version in their names, and every release continues the workflows of older releases."""

CLAIMED_AHEAD = 64
"""Jobs of one tenant that a sole process claims per poll of the queue. Slots limit how many of them run."""
RETENTION = timedelta(days=7)
_PAGE = 500
_UNENDED = ["ENQUEUED", "PENDING"]


class JsonSerializer(Serializer):
    """Serializes arguments as JSON: they are plain strings and numbers. Data from the database is never unpickled."""

    def serialize(self, data: Any) -> str:
        return json.dumps(data, default=_shown)

    def deserialize(cls, serialized_data: str) -> Any:  # noqa: N805 - named so by the base class
        return json.loads(serialized_data)

    def name(self) -> str:
        return "agentic_rag_json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedWorkflow:
    """A workflow that a process claimed and did not end."""

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


class DbosClient:
    """Client of the DBOS tables. Every method blocks, and raises the database's own errors.

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
        self._client = DBOSClient(
            system_database_engine=engine,
            serializer=JsonSerializer(),
            application_name=APPLICATION,
            lazy=True,
            # DBOS would block here until the database is back, and after long outages for another 90 seconds.
            retry_connection_errors=False,
        )

    def declare(self, *, polling_interval_s: float, claims_per_tenant: int | None) -> None:
        """Declare both queues with this process's polling interval.

        Args:
            claims_per_tenant: limit of claimed jobs per tenant and process, with several processes. None: this process is
                alone and claims far ahead.
        """
        for queue in QueueName:
            if claims_per_tenant is None:
                self._client.register_queue(
                    queue.value, partition_concurrency=CLAIMED_AHEAD, polling_interval_sec=polling_interval_s
                )
            else:
                # The limit applies per process. A limit over all processes would make their claims conflict, and one
                # process could claim jobs that others have slots for.
                self._client.register_queue(
                    queue.value, partition_worker_concurrency=claims_per_tenant, polling_interval_sec=polling_interval_s
                )

    def enqueue(self, options: EnqueueOptions, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Enqueue a workflow. An existing id changes nothing."""
        with self._engine.begin() as connection:
            self._enqueue(connection, options, tenant, job_id, attempt)
        self._on_enqueued(QueueName(options["queue_name"]))

    def enqueue_within(
        self, connection: Connection, options: EnqueueOptions, tenant: TenantId, job_id: str, attempt: int
    ) -> None:
        """Enqueue a workflow in an open transaction."""
        self._enqueue(connection, options, tenant, job_id, attempt)
        after_commit(connection, partial(self._on_enqueued, QueueName(options["queue_name"])))

    def _enqueue(self, connection: Connection, options: EnqueueOptions, tenant: TenantId, job_id: str, attempt: int) -> None:
        self._client.enqueue_in_transaction(connection, options, tenant.value, job_id, attempt)
        if self._notifications is not None:
            self._notifications.send(connection)

    def unended(self, workflow_ids: Collection[str]) -> frozenset[str]:
        """Return the ids that are enqueued or claimed."""
        found: set[str] = set()
        for page in _pages(list(workflow_ids)):
            held = self._client.list_workflows(workflow_ids=page, status=_UNENDED, load_input=False, load_output=False)
            found.update(workflow.workflow_id for workflow in held)
        return frozenset(found)

    def oldest_enqueued_s(self) -> Mapping[QueueName, float]:
        """Return, by queue, the seconds that the oldest unclaimed workflow has waited; 0 if none waits."""
        waiting = {queue: self._oldest(queue) for queue in QueueName}
        now_ms = time.time() * 1000
        return {queue: 0.0 if since_ms is None else max(0.0, (now_ms - since_ms) / 1000) for queue, since_ms in waiting.items()}

    def _oldest(self, queue: QueueName) -> float | None:
        found = self._client.list_workflows(
            status="ENQUEUED", queue_name=queue.value, limit=1, load_input=False, load_output=False
        )
        return found[0].created_at if found else None

    def claimed(self) -> list[ClaimedWorkflow]:
        """Return the workflows that are claimed and have not ended. Workflows that are only enqueued are not included."""
        pending = self._client.list_workflows(status="PENDING", load_input=False, load_output=False)
        return [
            ClaimedWorkflow(
                id=workflow.workflow_id,
                name=workflow.name,
                queue=str(workflow.queue_name),
                tenant=TenantId(str(workflow.queue_partition_key)),
                executor_id=str(workflow.executor_id),
            )
            for workflow in pending
        ]

    def hand_back(self, workflows: Iterable[ClaimedWorkflow]) -> int:
        """Enqueue again the workflows that still have the same claimant. Return their number.

        The comparison is DBOS's own, made for recovery. `resume_workflows` would also take a workflow from a new claimant,
        if two processes recover the work of a third one.
        """
        handed_back = sum(
            self._client._sys_db.reenqueue_for_recovery(workflow.id, [workflow.executor_id], workflow.queue)
            for workflow in workflows
        )
        if handed_back:
            self._queued_again()
        return handed_back

    def run_again(self, workflow: str, queue: QueueName) -> None:
        """Enqueue an unfinished workflow again, regardless of its claimant."""
        self._client.resume_workflows([workflow], queue_name=queue.value)
        self._queued_again()

    def end(self, workflow: ClaimedWorkflow) -> None:
        """Cancel a workflow for good."""
        self._client.cancel_workflows([workflow.id])

    def delete_old(self) -> None:
        """Delete workflows that ended before the retention period."""
        before = (datetime.now(UTC) - RETENTION).isoformat()
        while True:
            old = self._client.list_workflows(completed_before=before, limit=_PAGE, load_input=False, load_output=False)
            if not old:
                return
            self._client.delete_workflows([workflow.workflow_id for workflow in old])

    def _queued_again(self) -> None:
        """Wake the workers for workflows that DBOS enqueued in its own transaction."""
        self._on_enqueued(None)
        if self._notifications is not None:
            with contextlib.suppress(SQLAlchemyError):  # it is enqueued; other processes find it at their next poll
                self._notifications.send_now()

    def close(self) -> None:
        """Close the connection to the database."""
        self._client.destroy()


def options_of(name: str, queue: QueueName, tenant: TenantId, job_id: str, attempt: int) -> EnqueueOptions:
    """Return the options to enqueue a workflow."""
    return {
        "workflow_name": name,
        "queue_name": queue.value,
        "queue_partition_key": require_tenant(tenant).value,
        "workflow_id": workflow_id(name, job_id, attempt),
        "app_version": APPLICATION_VERSION,
    }


def by_id(workflows: Iterable[ClaimedWorkflow]) -> Mapping[str, ClaimedWorkflow]:
    """Return workflows by their ids."""
    return {workflow.id: workflow for workflow in workflows}


def _pages(ids: Sequence[str]) -> Iterable[list[str]]:
    return (list(ids[first : first + _PAGE]) for first in range(0, len(ids), _PAGE))


def _shown(value: object) -> str:
    return f"{type(value).__name__}: {value}"[:500] if isinstance(value, Exception) else str(value)[:500]
