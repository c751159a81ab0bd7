"""The contract of usage on SQLite, and on stores with planted faults."""

from __future__ import annotations

from pathlib import Path

import pytest
from catalogue_checks import usage as contract
from planted_statements import plant

from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.stores.catalogue.base import Catalogue


async def test_sqlite(tmp_path: Path) -> None:
    for check in contract.CHECKS:
        opened = await Catalogue.open(f"sqlite:///{tmp_path / check.__name__}.db")
        await opened.migrate()
        await check(opened)
        await opened.close()


@pytest.mark.parametrize(
    ("check", "kind", "old", "new"),
    [
        (contract.counts_add_up, "INSERT", "(usage.calls + excluded.calls)", "excluded.calls"),
        (contract.tenants_are_separate, "SELECT", "usage.tenant_id = ?", "? <> ''"),
        (contract.a_period_has_both_its_ends, "SELECT", "usage.day <= ?", "? <> ''"),
        (contract.a_period_has_both_its_ends, "SELECT", "usage.day >= ?", "usage.day > ?"),
    ],
)
async def test_faulty_statements_fail(catalogue: Catalogue, check: contract.Check, kind: str, old: str, new: str) -> None:
    planted = plant(catalogue, kind, old, new)
    with pytest.raises((AssertionError, AgenticRagError)):
        await check(catalogue)
    assert planted
