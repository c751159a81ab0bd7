"""The worker directory's contract on SQLite, and on directories with planted faults."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from catalogue_checks.samples import nothing
from job_checks import workers as contract
from planted_statements import plant

from agentic_rag_backend.domain.job import JobKind, JobState
from agentic_rag_backend.stores.catalogue.base import Catalogue


@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
async def test_sqlite(catalogue: Catalogue, check: contract.Check) -> None:
    await check(catalogue.workers)


async def test_jobs_that_have_not_ended_are_counted_over_all_tenants(catalogue: Catalogue) -> None:
    assert await catalogue.workers.open_jobs() == {"queued": 0, "running": 0}
    one, other = [(await catalogue.tenants.create(name)).id for name in ("one", "other")]
    of_one = [await catalogue.jobs.create(one, JobKind.REBUILD, {}, nothing) for _ in range(3)]
    await catalogue.jobs.create(other, JobKind.RECONCILE, {}, nothing)
    for job in of_one[:2]:
        await catalogue.jobs.start(one, job.id)
    await catalogue.jobs.finish(one, of_one[0].id, JobState.FAILED)
    assert await catalogue.workers.open_jobs() == {"queued": 2, "running": 1}


async def test_the_oldest_queued_job_of_each_kind_tells_how_long_it_waits(catalogue: Catalogue) -> None:
    assert await catalogue.workers.oldest_queued_s() == {}
    tenants = [(await catalogue.tenants.create(name)).id for name in ("one", "other")]
    waiting = [await catalogue.jobs.create(tenant, JobKind.REBUILD, {}, nothing) for tenant in tenants]
    begun = await catalogue.jobs.create(tenants[0], JobKind.RECONCILE, {}, nothing)
    await catalogue.jobs.start(tenants[0], begun.id)
    waited = (datetime.now(UTC) - waiting[0].created_at).total_seconds()
    found = await catalogue.workers.oldest_queued_s()
    assert set(found) == {JobKind.REBUILD}
    assert found[JobKind.REBUILD] >= waited


@pytest.mark.parametrize(
    ("check", "kind", "old", "new"),
    [
        (contract.only_silent_workers_are_removed, "DELETE FROM workers", "workers.beats = ?", "? >= 0"),
        (
            contract.one_of_many_removes_a_silent_worker,
            "DELETE FROM workers",
            "DELETE FROM workers",
            "UPDATE workers SET executor_id = executor_id",
        ),
        (
            contract.running_workflows_are_blamed_for_a_kill,
            "UPDATE workflow_runs SET executor_id=?, kills",
            "workflow_runs.executor_id = ?",
            "? <> ''",
        ),
        (contract.kills_add_up_until_the_workflow_ends, "INSERT INTO workflow_runs", "DO UPDATE SET", "DO UPDATE SET kills = 0,"),
        (contract.kills_add_up_until_the_workflow_ends, "DELETE FROM workflow_runs", "AND workflow_runs.kills = ?", "AND ? = 0"),
        (
            contract.only_the_running_worker_records_an_end,
            "DELETE FROM workflow_runs",
            "AND workflow_runs.executor_id = ?",
            "AND ? <> ''",
        ),
        (
            contract.only_the_running_worker_records_an_end,
            "UPDATE workflow_runs",
            "AND workflow_runs.executor_id = ?",
            "AND ? <> ''",
        ),
        (contract.kills_can_be_forgotten, "DELETE FROM workflow_runs", "AND workflow_runs.executor_id IS NULL", ""),
        (contract.workers_join_and_leave, "UPDATE workers", "beats + ?", "beats + 0 * ?"),
    ],
)
async def test_faulty_statements_fail(catalogue: Catalogue, check: contract.Check, kind: str, old: str, new: str) -> None:
    planted = plant(catalogue, kind, old, new)
    with pytest.raises(AssertionError):
        await check(catalogue.workers)
    assert planted
