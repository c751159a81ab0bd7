"""Contract of the record of folders: run `CHECKS` against a catalogue, each on a new, migrated, empty database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.stores.catalogue.store_folders import StoreFolder
from agentic_rag_backend.testing.catalogue.samples import equal

Check = Callable[[Catalogue], Awaitable[None]]

FIRST, SECOND = StoreFolder("1", "a:/one"), StoreFolder("2", "a:/two")


async def the_first_claim_stays(catalogue: Catalogue) -> None:
    """Every later claim returns the first folder. Other names have their own folders."""
    equal(await catalogue.store_folders.claim("vectors", FIRST), FIRST, "the first claim")
    equal(await catalogue.store_folders.claim("vectors", SECOND), FIRST, "a later claim")
    equal(await catalogue.store_folders.claim("graph", SECOND), SECOND, "a claim of another name")
    equal(await catalogue.store_folders.claim("vectors", FIRST), FIRST, "the first claim again")


async def a_moved_folder_keeps_its_id(catalogue: Catalogue) -> None:
    """A moved folder keeps its id. Its description is the latest one."""
    moved = StoreFolder(FIRST.id, "b:/elsewhere")
    await catalogue.store_folders.claim("vectors", FIRST)
    equal(await catalogue.store_folders.claim("vectors", moved), moved, "the folder, moved")
    equal(await catalogue.store_folders.claim("vectors", SECOND), moved, "a claim of another folder")


async def concurrent_claims_return_one_folder(catalogue: Catalogue) -> None:
    """All concurrent claims return the same folder."""
    folders = [StoreFolder(str(number), f"a:/{number}") for number in range(8)]
    answers = await asyncio.gather(*(catalogue.store_folders.claim("vectors", folder) for folder in folders))
    equal(len(set(answers)), 1, "different folders returned")


async def replace_records_another_folder(catalogue: Catalogue) -> None:
    """`replace` records the folder, whether or not the name has one."""
    await catalogue.store_folders.replace("vectors", FIRST)
    equal(await catalogue.store_folders.claim("vectors", SECOND), FIRST, "the folder")
    await catalogue.store_folders.replace("vectors", SECOND)
    equal(await catalogue.store_folders.claim("vectors", FIRST), SECOND, "the folder that replaced it")


CHECKS: Sequence[Check] = (
    the_first_claim_stays,
    a_moved_folder_keeps_its_id,
    concurrent_claims_return_one_folder,
    replace_records_another_folder,
)
