"""Contract of the record of places: run `CHECKS` against a catalogue, each on a new, migrated, empty database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from agentic_rag_backend.stores.catalogue.engine import SqlCatalogue
from agentic_rag_backend.stores.catalogue.places import Place
from agentic_rag_backend.testing.catalogue.samples import equal

Check = Callable[[SqlCatalogue], Awaitable[None]]

FIRST, SECOND = Place("1", "a:/one"), Place("2", "a:/two")


async def the_first_that_is_claimed_stays(catalogue: SqlCatalogue) -> None:
    """Every later claim returns the first place. Other names have their own places."""
    equal(await catalogue.places.claim("vectors", FIRST), FIRST, "the first claim")
    equal(await catalogue.places.claim("vectors", SECOND), FIRST, "a later claim")
    equal(await catalogue.places.claim("graph", SECOND), SECOND, "a claim of another name")
    equal(await catalogue.places.claim("vectors", FIRST), FIRST, "the first claim again")


async def a_place_that_moved_is_the_same(catalogue: SqlCatalogue) -> None:
    """A moved place keeps its id. Its description is the latest one."""
    moved = Place(FIRST.id, "b:/elsewhere")
    await catalogue.places.claim("vectors", FIRST)
    equal(await catalogue.places.claim("vectors", moved), moved, "the place, moved")
    equal(await catalogue.places.claim("vectors", SECOND), moved, "what another is told")


async def one_of_many_gets_it(catalogue: SqlCatalogue) -> None:
    """All concurrent claims return the same place."""
    places = [Place(str(number), f"a:/{number}") for number in range(8)]
    told = await asyncio.gather(*(catalogue.places.claim("vectors", place) for place in places))
    equal(len(set(told)), 1, "different places that were told")


async def a_place_is_replaced_when_that_is_wanted(catalogue: SqlCatalogue) -> None:
    """Whether a place exists already or not."""
    await catalogue.places.replace("vectors", FIRST)
    equal(await catalogue.places.claim("vectors", SECOND), FIRST, "the place")
    await catalogue.places.replace("vectors", SECOND)
    equal(await catalogue.places.claim("vectors", FIRST), SECOND, "the place that took its place")


CHECKS: Sequence[Check] = (
    the_first_that_is_claimed_stays,
    a_place_that_moved_is_the_same,
    one_of_many_gets_it,
    a_place_is_replaced_when_that_is_wanted,
)
