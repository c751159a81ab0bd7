"""Contract of every store of search sessions: run `CHECKS` against a catalogue, each on a new, empty database.

A check is an async function of the catalogue that raises `AssertionError`. ``tests/contract/test_search_sessions.py`` shows how
to run them, and that stores with planted faults fail them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from agentic_rag_backend.domain.search_session import MAX_SESSION_FACTS, FactPlace, RememberedConstraint, SessionMemory
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidScope, NotFound
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.testing.catalogue.samples import equal, raises, true

KEPT_S = 600.0
AT_ONCE = 8
NURSE = RememberedConstraint("entity", "e-1")
CITY = RememberedConstraint("attribute", "Aldry, \u00e9", "city")

Check = Callable[[Catalogue], Awaitable[None]]


def facts(*names: str) -> SessionMemory:
    """Return a memory of facts in chunks of these ids."""
    return SessionMemory(tuple(FactPlace(name, 3, 9) for name in names))


async def a_memory_grows(catalogue: Catalogue) -> None:
    """The first call begins the session. Later calls add to it, and return all of it."""
    tenant, sessions = await _tenant(catalogue), catalogue.search_sessions
    equal(await sessions.recall(tenant, "s"), None)
    first = SessionMemory((FactPlace("a", 0, 4),), (NURSE,))
    equal(await sessions.remember(tenant, "s", first, kept_s=KEPT_S), first)
    more = SessionMemory((FactPlace("b", 5, 70),), (CITY,))
    whole = SessionMemory((*first.facts, *more.facts), (NURSE, CITY))
    equal(await sessions.remember(tenant, "s", more, kept_s=KEPT_S), whole)
    equal(await sessions.recall(tenant, "s"), whole)
    equal(await sessions.remember(tenant, "s", SessionMemory(), kept_s=KEPT_S), whole)
    equal(await sessions.recall(tenant, "other"), None)


async def concurrent_requests_lose_nothing(catalogue: Catalogue) -> None:
    """Each of several requests of one session adds its fact."""
    tenant, sessions = await _tenant(catalogue), catalogue.search_sessions
    names = [f"chunk-{number}" for number in range(AT_ONCE)]
    await asyncio.gather(*(sessions.remember(tenant, "s", facts(name), kept_s=KEPT_S) for name in names))
    found = await sessions.recall(tenant, "s")
    equal(sorted(fact.chunk_id for fact in (found or SessionMemory()).facts), names)


async def tenants_are_separate(catalogue: Catalogue) -> None:
    """Equal digests of two tenants are two sessions."""
    a, b, sessions = await _tenant(catalogue), await _tenant(catalogue, "b"), catalogue.search_sessions
    await sessions.remember(a, "s", facts("of a"), kept_s=KEPT_S)
    equal(await sessions.recall(b, "s"), None)
    equal(await sessions.remember(b, "s", facts("of b"), kept_s=KEPT_S), facts("of b"))
    equal(await sessions.recall(a, "s"), facts("of a"))
    equal(await sessions.recall(b, "s"), facts("of b"))


async def an_expired_session_is_empty(catalogue: Catalogue) -> None:
    """Nothing returns it, also before it is removed, and it begins again."""
    tenant, sessions = await _tenant(catalogue), catalogue.search_sessions
    await sessions.remember(tenant, "s", facts("old"), kept_s=0)
    equal(await sessions.recall(tenant, "s"), None)
    equal(await sessions.remember(tenant, "s", facts("new"), kept_s=KEPT_S), facts("new"))
    await sessions.remember(tenant, "t", facts("kept"), kept_s=KEPT_S)
    await sessions.remember(tenant, "t", SessionMemory(), kept_s=0)
    equal(await sessions.recall(tenant, "t"), None)


async def expired_sessions_are_removed(catalogue: Catalogue) -> None:
    """Those of all tenants. Other sessions stay."""
    a, b, sessions = await _tenant(catalogue), await _tenant(catalogue, "b"), catalogue.search_sessions
    for tenant in (a, b):
        await sessions.remember(tenant, "over", facts("x"), kept_s=0)
    await sessions.remember(a, "kept", facts("y"), kept_s=KEPT_S)
    equal((await sessions.sweep(), await sessions.sweep()), (2, 0))
    equal(await sessions.recall(a, "kept"), facts("y"))


async def a_memory_is_bounded(catalogue: Catalogue) -> None:
    """The newest facts stay."""
    tenant, sessions = await _tenant(catalogue), catalogue.search_sessions
    names = [f"{number}" for number in range(MAX_SESSION_FACTS + 3)]
    await sessions.remember(tenant, "s", facts(*names[:-1]), kept_s=KEPT_S)
    await sessions.remember(tenant, "s", facts(names[-1]), kept_s=KEPT_S)
    equal(await sessions.recall(tenant, "s"), facts(*names[-MAX_SESSION_FACTS:]))


async def sessions_go_with_their_tenant(catalogue: Catalogue) -> None:
    """A removed tenant has none, and none can begin."""
    tenant, sessions = await _tenant(catalogue), catalogue.search_sessions
    await sessions.remember(tenant, "s", facts("x"), kept_s=KEPT_S)
    removed = await catalogue.tenants.remove(tenant)
    true(removed["search_sessions"] == 1, "its session was removed")
    equal(await sessions.recall(tenant, "s"), None)
    await raises(NotFound, sessions.remember(tenant, "s", facts("x"), kept_s=KEPT_S), "no tenant")


async def every_method_requires_a_tenant(catalogue: Catalogue) -> None:
    """Any value but a `TenantId` is an error."""
    sessions = catalogue.search_sessions
    for scope in (None, "", "t_" + "a" * 32):
        await raises(InvalidScope, sessions.recall(scope, "s"), "recall")  # type: ignore[arg-type]
        await raises(InvalidScope, sessions.remember(scope, "s", facts("x"), kept_s=1), "remember")  # type: ignore[arg-type]


CHECKS: tuple[Check, ...] = (
    a_memory_grows,
    concurrent_requests_lose_nothing,
    tenants_are_separate,
    an_expired_session_is_empty,
    expired_sessions_are_removed,
    a_memory_is_bounded,
    sessions_go_with_their_tenant,
    every_method_requires_a_tenant,
)


async def _tenant(catalogue: Catalogue, name: str = "a") -> TenantId:
    return (await catalogue.tenants.create(name)).id
