"""Contract of every worker directory: run `CHECKS` against an adapter, each on a new, empty database.

A check is an async function of the directory that raises `AssertionError`. ``tests/contract/test_workers.py`` shows how to run
them, and that directories with planted faults fail them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidScope
from agentic_rag_backend.stores.catalogue.base import Worker, WorkerDirectory
from agentic_rag_backend.testing.catalogue.samples import equal, raises

A = TenantId("t_" + "a" * 32)
B = TenantId("t_" + "b" * 32)
AT_ONCE = 8

Check = Callable[[WorkerDirectory], Awaitable[None]]


async def workers_join_and_leave(directory: WorkerDirectory) -> None:
    """A joined worker is listed with its workflows and can send heartbeats until it leaves. Others cannot."""
    await directory.join("one", ["ingest_v1", "delete_v1"])
    await directory.join("two", [])
    equal([await directory.heartbeat(name) for name in ("one", "one", "nobody")], [True, True, False])
    equal(
        list(await directory.workers()),
        [
            Worker(executor_id="one", beats=2, workflows=frozenset({"ingest_v1", "delete_v1"})),
            Worker(executor_id="two", beats=0, workflows=frozenset()),
        ],
    )
    await directory.leave("one")
    equal([worker.executor_id for worker in await directory.workers()], ["two"])
    equal(await directory.heartbeat("one"), False, "a heartbeat after leaving")


async def only_silent_workers_are_removed(directory: WorkerDirectory) -> None:
    """A heartbeat since the last reading saves a worker. A removed worker learns of it at its next heartbeat."""
    await directory.join("one", [])
    await directory.join("two", [])
    one, two = await directory.workers()
    await directory.heartbeat("one")
    equal([await directory.bury(one), await directory.bury(two)], [False, True])
    equal([await directory.heartbeat("one"), await directory.heartbeat("two")], [True, False])


async def one_of_many_removes_a_silent_worker(directory: WorkerDirectory) -> None:
    """Of many workers that remove the same worker, one succeeds, and a kill is counted once."""
    await directory.join("one", [])
    await directory.began(A, "w:1:1", "one")
    (silent,) = await directory.workers()
    outcomes = await asyncio.gather(*(directory.bury(silent) for _ in range(AT_ONCE)))
    equal((outcomes.count(True), await directory.kills()), (1, {"w:1:1": 1}))


async def running_workflows_are_blamed_for_a_kill(directory: WorkerDirectory) -> None:
    """Kills count for the workflows that the removed worker was running at its end, and for no others."""
    for name in ("one", "two"):
        await directory.join(name, [])
    await directory.began(A, "w:over:1", "one")
    await directory.ended(A, "w:over:1", "one", finished=True)
    await directory.began(A, "w:stopped:1", "one")
    await directory.ended(A, "w:stopped:1", "one", finished=False)
    await directory.began(A, "w:running:1", "one")
    await directory.began(B, "w:other:1", "one")
    await directory.began(A, "w:elsewhere:1", "two")
    await _bury(directory, "one")
    equal(await directory.kills(), {"w:running:1": 1, "w:other:1": 1})


async def kills_add_up_until_the_workflow_ends(directory: WorkerDirectory) -> None:
    """Regardless of stops in between. A worker that leaves adds no kill."""
    for times in (1, 2):
        await directory.join("one", [])
        await directory.began(A, "w:1:1", "one")
        await _bury(directory, "one")
        equal(await directory.kills(), {"w:1:1": times})
    await directory.join("two", [])
    await directory.began(A, "w:1:1", "two")
    await directory.began(A, "w:2:1", "two")
    await directory.leave("two")
    equal(await directory.kills(), {"w:1:1": 2}, "after leaving")
    await directory.join("three", [])
    await directory.began(A, "w:1:1", "three")
    await directory.ended(A, "w:1:1", "three", finished=False)
    equal(await directory.kills(), {"w:1:1": 2}, "after stopping")
    await directory.began(A, "w:1:1", "three")
    await directory.ended(A, "w:1:1", "three", finished=True)
    equal(await directory.kills(), {}, "after the end")


async def progress_forgives_kills(directory: WorkerDirectory) -> None:
    """Only the worker that runs the workflow forgives. Later kills count again."""
    for worker in ("one", "two"):
        await directory.join(worker, [])
        await directory.began(A, "w:1:1", worker)
        await directory.began(A, "w:2:1", worker)
        await _bury(directory, worker)
    await directory.join("three", [])
    await directory.began(A, "w:1:1", "three")
    await directory.forgive(A, "w:1:1", "two")
    await directory.forgive(B, "w:1:1", "three")
    equal(await directory.kills(), {"w:1:1": 2, "w:2:1": 2})
    await directory.forgive(A, "w:1:1", "three")
    equal(await directory.kills(), {"w:2:1": 2})
    await _bury(directory, "three")
    equal(await directory.kills(), {"w:1:1": 1, "w:2:1": 2})


async def only_the_running_worker_records_an_end(directory: WorkerDirectory) -> None:
    """A worker presumed dead reports an end. Workflows that now run elsewhere stay unchanged."""
    await directory.join("zombie", [])
    await directory.began(A, "w:1:1", "zombie")
    await _bury(directory, "zombie")
    await directory.join("two", [])
    await directory.began(A, "w:1:1", "two")
    for finished in (False, True):
        await directory.ended(A, "w:1:1", "zombie", finished=finished)
    await _bury(directory, "two")
    equal(await directory.kills(), {"w:1:1": 2})


async def kills_can_be_forgotten(directory: WorkerDirectory) -> None:
    """`forget` removes the kills of the named workflows that no worker runs."""
    await directory.join("one", [])
    for name in ("w:1:1", "w:2:1", "w:3:1"):
        await directory.began(A, name, "one")
    await _bury(directory, "one")
    await directory.join("two", [])
    await directory.began(A, "w:3:1", "two")
    await directory.forget(["w:1:1", "w:3:1"])
    await directory.forget([])
    equal(await directory.kills(), {"w:2:1": 1, "w:3:1": 1})


async def runs_require_a_tenant(directory: WorkerDirectory) -> None:
    """Any value but a `TenantId` is an error."""
    for scope in (None, "", A.value):
        await raises(InvalidScope, directory.began(scope, "w:1:1", "one"), "began")  # type: ignore[arg-type]
        await raises(InvalidScope, directory.forgive(scope, "w:1:1", "one"), "forgive")  # type: ignore[arg-type]
        await raises(InvalidScope, directory.ended(scope, "w:1:1", "one", finished=True), "ended")  # type: ignore[arg-type]


CHECKS: tuple[Check, ...] = (
    workers_join_and_leave,
    only_silent_workers_are_removed,
    one_of_many_removes_a_silent_worker,
    running_workflows_are_blamed_for_a_kill,
    kills_add_up_until_the_workflow_ends,
    progress_forgives_kills,
    only_the_running_worker_records_an_end,
    kills_can_be_forgotten,
    runs_require_a_tenant,
)


async def _bury(directory: WorkerDirectory, executor_id: str) -> None:
    for worker in await directory.workers():
        if worker.executor_id == executor_id:
            equal(await directory.bury(worker), True, f"burying {executor_id}")
