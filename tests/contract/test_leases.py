"""The leases' contract on SQLite, and on leases with planted faults."""

from __future__ import annotations

import pytest
from job_checks import leases as contract
from planted_statements import plant

from agentic_rag_backend.stores.catalogue.base import Catalogue


@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
async def test_sqlite(catalogue: Catalogue, check: contract.Check) -> None:
    await check(catalogue)


@pytest.mark.parametrize(
    ("check", "kind", "old", "new"),
    [
        (contract.one_of_many_takes_the_lease, "SELECT leases.holder", "SELECT leases.holder", "SELECT NULL AS holder"),
        (contract.only_workers_take_leases, "SELECT workers.executor_id", "workers.executor_id = ?", "? <> ''"),
        (contract.the_lease_of_a_removed_worker_is_free, "SELECT workers.executor_id", "workers.executor_id = ?", "? <> ''"),
        (
            contract.a_fence_is_void_after_the_lease_is_taken_again,
            "UPDATE leases SET holder",
            "leases.fence + ?",
            "leases.fence + 0 * ?",
        ),
        (contract.a_late_release_changes_nothing, "UPDATE leases SET holder", "AND leases.fence = ?", "AND ? > 0"),
        (contract.the_fence_of_a_removed_worker_is_void, "SELECT leases.fence", "workers.executor_id = leases.holder", "1"),
        (contract.a_void_fence_publishes_nothing, "SELECT leases.fence", "AND leases.fence = ?", "AND ? > 0"),
        (contract.a_waiting_request_is_reported_to_the_holder, "UPDATE leases SET wanted", "wanted=?", "wanted=? AND 0"),
        (contract.tenants_and_names_are_separate, "SELECT leases.holder", "leases.tenant_id = ?", "? <> ''"),
    ],
)
async def test_faulty_statements_fail(catalogue: Catalogue, check: contract.Check, kind: str, old: str, new: str) -> None:
    planted = plant(catalogue, kind, old, new)
    with pytest.raises(AssertionError):
        await check(catalogue)
    assert planted
