"""The contract of store folders on SQLite, and with planted faults."""

from __future__ import annotations

import pytest
from catalogue_checks import store_folders as contract
from planted_statements import plant

from agentic_rag_backend.stores.catalogue.base import Catalogue


@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
async def test_sqlite(catalogue: Catalogue, check: contract.Check) -> None:
    await check(catalogue)


@pytest.mark.parametrize(
    ("check", "kind", "old", "new"),
    [
        (contract.the_first_claim_stays, "SELECT places", "places.name = ?", "? <> ''"),
        (contract.a_moved_folder_keeps_its_id, "UPDATE places", "places.name = ?", "places.name <> ?"),
        (contract.replace_records_another_folder, "INSERT INTO places", "SET place_id = excluded.place_id,", "SET"),
    ],
)
async def test_faulty_statements_fail(catalogue: Catalogue, check: contract.Check, kind: str, old: str, new: str) -> None:
    planted = plant(catalogue, kind, old, new)
    with pytest.raises(AssertionError):
        await check(catalogue)
    assert planted
