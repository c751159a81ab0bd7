"""Contract of leases: run `CHECKS` against a catalogue with leases and workers, each on a new, empty database.

``tests/contract/test_leases.py`` shows how to run them, and that leases with planted faults fail them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidScope, StoreUnavailable
from agentic_rag_backend.stores.catalogue.base import Catalogue, Fence
from agentic_rag_backend.testing.catalogue.samples import equal, nothing, raises, stage, submission, tenant

A = TenantId("t_" + "a" * 32)
B = TenantId("t_" + "b" * 32)
AT_ONCE = 8


Check = Callable[[Catalogue], Awaitable[None]]


async def one_of_many_takes_the_lease(site: Catalogue) -> None:
    """Of many concurrent workers one gets the lease, and the others after it is given up, each with a higher fence."""
    names = await _joined(site, AT_ONCE)
    before = 0
    while names:
        taken = await asyncio.gather(*(site.leases.take(A, "commit", name) for name in names))
        given = [(name, fence) for name, fence in zip(names, taken, strict=True) if fence is not None]
        equal(len(given), 1, f"leases given to {len(names)} who asked at once")
        ((name, fence),) = given
        equal(fence.number > before, True, f"fence {fence.number} after {before}")
        before = fence.number
        names.remove(name)
        await site.leases.give_up(A, fence)


async def only_workers_take_leases(site: Catalogue) -> None:
    """Workers that never joined, have left, or were removed as dead get no lease."""
    await _joined(site, 1)
    await site.workers.join("left", [])
    await site.workers.leave("left")
    equal([await site.leases.take(A, "commit", name) for name in ("nobody", "left")], [None, None])
    await _bury(site, "worker-0")
    equal(await site.leases.take(A, "commit", "worker-0"), None, "a buried worker")


async def the_lease_of_a_removed_worker_is_free(site: Catalogue) -> None:
    """The lease of a removed worker is free. While its holder is a worker, no other worker gets it."""
    await _joined(site, 3)
    await _taken(site, "worker-0")
    equal(await site.leases.take(A, "commit", "worker-1"), None)
    await _bury(site, "worker-0")
    await _taken(site, "worker-1")
    equal(await site.leases.take(A, "commit", "worker-2"), None)
    await site.workers.leave("worker-1")
    await _taken(site, "worker-2")


async def a_fence_is_void_after_the_lease_is_taken_again(site: Catalogue) -> None:
    """Also by the same worker."""
    await _joined(site, 1)
    first = await _taken(site, "worker-0")
    equal(await site.leases.holds(A, first), True)
    second = await _taken(site, "worker-0")
    equal([await site.leases.holds(A, fence) for fence in (first, second)], [False, True])


async def the_fence_of_a_removed_worker_is_void(site: Catalogue) -> None:
    """Even before another worker takes the lease."""
    await _joined(site, 2)
    fence = await _taken(site, "worker-0")
    await _bury(site, "worker-0")
    equal(await site.leases.holds(A, fence), False)


async def a_late_release_changes_nothing(site: Catalogue) -> None:
    """An invalid fence gives nothing up."""
    await _joined(site, 2)
    old = await _taken(site, "worker-0")
    new = await _taken(site, "worker-0")
    await site.leases.give_up(A, old)
    equal((await site.leases.holds(A, new), await site.leases.take(A, "commit", "worker-1")), (True, None))


async def a_waiting_request_is_reported_to_the_holder(site: Catalogue) -> None:
    """The holder learns once whether another worker requested the lease."""
    await _joined(site, 2)
    equal(await site.leases.give_up(A, await _taken(site, "worker-0")), False)
    fence = await _taken(site, "worker-0")
    for _ in range(2):
        equal(await site.leases.take(A, "commit", "worker-1"), None)
    equal(await site.leases.give_up(A, fence), True)
    equal(await site.leases.give_up(A, await _taken(site, "worker-1")), False, "told twice")


async def tenants_and_names_are_separate(site: Catalogue) -> None:
    """A lease belongs to one tenant and one name. A missing tenant is an error."""
    await _joined(site, 2)
    fence = await _taken(site, "worker-0")
    others = [await site.leases.take(B, "commit", "worker-1"), await site.leases.take(A, "rebuild", "worker-1")]
    equal([found is not None for found in others], [True, True])
    for scope in (None, "", A.value):
        await raises(InvalidScope, site.leases.take(scope, "commit", "worker-0"), "take")  # type: ignore[arg-type]
        await raises(InvalidScope, site.leases.give_up(scope, fence), "give_up")  # type: ignore[arg-type]
        await raises(InvalidScope, site.leases.holds(scope, fence), "holds")  # type: ignore[arg-type]


async def a_void_fence_publishes_nothing(site: Catalogue) -> None:
    """A fence is invalid after its holder was removed or another worker took the lease. The newest fence is valid."""
    owner = await tenant(site)
    submitted = await site.documents.submit(owner, submission("report", "Ada knew Charles."), nothing)
    document = await stage(site, owner, submitted, "Ada knew Charles.")
    await _joined(site, 2)
    old = await site.leases.take(owner, "commit", "worker-0")
    await _bury(site, "worker-0")
    await raises(StoreUnavailable, site.documents.publish(owner, document.id, 1, fence=old), "a buried worker")
    new = await site.leases.take(owner, "commit", "worker-1")
    await raises(StoreUnavailable, site.documents.publish(owner, document.id, 1, fence=old), "a void fence")
    equal((await site.documents.document(owner, document.id)).current_version, 0)
    equal(await site.documents.publish(owner, document.id, 1, fence=new), True)


async def one_worker_leads(site: Catalogue) -> None:
    """One of many workers does a task without a tenant, until it leaves the workers."""
    names = await _joined(site, 3)
    for _ in range(2):
        asked = await asyncio.gather(*(site.leases.lead("housekeeping", name) for name in names))
        equal(asked.count(True), 1, f"leaders among {asked}")
    leader = names[asked.index(True)]
    equal(await site.leases.lead("other", leader), True)
    await _bury(site, leader)
    rest = [name for name in names if name != leader]
    asked = await asyncio.gather(*(site.leases.lead("housekeeping", name) for name in rest))
    equal((asked.count(True), await site.leases.lead("housekeeping", leader)), (1, False))


CHECKS: tuple[Check, ...] = (
    one_of_many_takes_the_lease,
    only_workers_take_leases,
    the_lease_of_a_removed_worker_is_free,
    a_fence_is_void_after_the_lease_is_taken_again,
    the_fence_of_a_removed_worker_is_void,
    a_late_release_changes_nothing,
    a_waiting_request_is_reported_to_the_holder,
    tenants_and_names_are_separate,
    a_void_fence_publishes_nothing,
    one_worker_leads,
)


async def _joined(site: Catalogue, count: int) -> list[str]:
    names = [f"worker-{number}" for number in range(count)]
    for name in names:
        await site.workers.join(name, [])
    return names


async def _taken(site: Catalogue, name: str) -> Fence:
    fence = await site.leases.take(A, "commit", name)
    if fence is None:
        raise AssertionError(f"{name} was refused a lease that is free, or its own")
    return fence


async def _bury(site: Catalogue, executor_id: str) -> None:
    for worker in await site.workers.workers():
        if worker.executor_id == executor_id:
            equal(await site.workers.bury(worker), True, f"burying {executor_id}")
