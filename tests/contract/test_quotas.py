"""The contract of quotas on SQLite, and on stores with planted faults."""

from __future__ import annotations

import pytest
from catalogue_checks import quotas as contract
from planted_statements import plant

from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.stores.catalogue.base import Catalogue


@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
async def test_sqlite(catalogue: Catalogue, check: contract.Check) -> None:
    await check(catalogue)


@pytest.mark.parametrize(
    ("check", "kind", "old", "new"),
    [
        (contract.a_window_grants_its_limit, "INSERT", "THEN quota_counters.taken + CASE", "THEN 0 + CASE"),
        (contract.a_late_transaction_counts_in_the_newer_window, "INSERT", "excluded.minute + ?", "excluded.minute + 0 * ?"),
        (contract.versions_reserve_bytes_and_chunks, "SELECT", "document_versions.version > documents.current_version", "0"),
        (contract.waiting_jobs_are_limited, "SELECT", "jobs.state = ?", "jobs.state <> ?"),
    ],
)
async def test_faulty_statements_fail(catalogue: Catalogue, check: contract.Check, kind: str, old: str, new: str) -> None:
    planted = plant(catalogue, kind, old, new)
    with pytest.raises((AssertionError, AgenticRagError)):
        await check(catalogue)
    assert planted
