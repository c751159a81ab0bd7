"""Readers during a rebuild with a store outage see the old generation, then the new one, and nothing in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agentic_rag_backend.domain.graph import community_point_id
from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.jobs import base
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, VectorSearch
from agentic_rag_backend.themes.communities.service import CommunityService

Story = Callable[[str], dict[str, list[str]]]
Seen = tuple[int, frozenset[str], frozenset[str]]
"""A generation, the listed ids, and those of them that a search finds."""


async def look(world: Any, service: CommunityService, tenant: TenantId) -> Seen | None:
    """Return what a reader sees now. None if the generation changed between the two reads."""
    listed = (await service.list(tenant, limit=1000)).items
    generation = (await service.read_status(tenant))["generation"]
    search = VectorSearch(kind=NodeKind.COMMUNITY, text="Tidal Array Lantern Museum", limit=100, generation=generation)
    legs = (await world.vectors.search(tenant, Collection.NODES, [search]))[0]
    if (await service.read_status(tenant))["generation"] != generation or {view.generation for view in listed} - {generation}:
        return None
    ids = frozenset(view.id for view in listed)
    return generation, ids, frozenset(community_point_id(each.id, generation) for each in legs.sparse)


@asynccontextmanager
async def reading(world: Any, service: CommunityService, tenant: TenantId) -> AsyncIterator[list[Seen]]:
    """Read continuously meanwhile. An error of a reader fails the test."""
    seen: list[Seen] = []
    over = asyncio.Event()

    async def read() -> None:
        while not over.is_set():
            found = await look(world, service, tenant)
            if found is not None:
                seen.append(found)
            await asyncio.sleep(0)

    reader = asyncio.create_task(read())
    yield seen
    over.set()
    await reader


PLACES = [
    "graph.write_communities",
    "vectors.upsert",
    "vectors.flush",
    "communities.save_summaries",
    "communities.publish",
]


@pytest.mark.parametrize("place", PLACES)
async def test_a_store_that_is_away_during_a_rebuild_leaves_no_gap(
    world: Any, story: Story, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    tenant, service = await world.tenant("a"), world.service(patience_s=600.0)
    for title, paragraphs in story("").items():
        await world.add(tenant, title, paragraphs)
    first = await service.request_rebuild(tenant)
    await service.rebuild(tenant, first.id, 1)
    await world.add(tenant, "Orchard", ["Bastian Krol planted the Winter Orchard with Alena Novak and Mira Voss."])

    monkeypatch.setattr(base, "FIRST_PAUSE_S", 0.01)
    owner, name = place.split(".")
    port = {"graph": world.graph, "vectors": world.vectors, "communities": world.catalogue.communities}[owner]
    original, refused = getattr(port, name), 0
    back = asyncio.Event()

    async def away(*arguments: Any, **named: Any) -> Any:
        nonlocal refused
        if not back.is_set():
            refused += 1
            raise StoreUnavailable("the store is away")
        return await original(*arguments, **named)

    async with reading(world, service, tenant) as seen:
        monkeypatch.setattr(port, name, away)
        job = await service.request_rebuild(tenant)
        running = asyncio.create_task(service.rebuild(tenant, job.id, 1))
        while refused < 3:
            await asyncio.sleep(0.01)
        told = await world.catalogue.jobs.job(tenant, job.id)
        assert told.state is JobState.RUNNING
        before = len(seen)
        assert {generation for generation, _, _ in seen} == {1}
        back.set()
        await running
        while seen[-1][0] == 1:
            await asyncio.sleep(0)
    assert (await world.catalogue.jobs.job(tenant, job.id)).state is JobState.SUCCEEDED
    assert before > 0, "nobody read while the store was away"
    wholes = {generation: (ids, found) for generation, ids, found in seen}
    assert {1, max(wholes)} == set(wholes)
    for generation, ids, found in seen:
        assert (ids, found) == wholes[generation], "a reader saw a part of a generation"
        assert ids >= found > frozenset()


async def test_a_rebuild_that_waits_can_be_cancelled(world: Any, story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    tenant, service = await world.tenant("a"), world.service(patience_s=600.0)
    for title, paragraphs in story("").items():
        await world.add(tenant, title, paragraphs)

    async def away(*_: Any) -> None:
        raise StoreUnavailable("the store is away")

    monkeypatch.setattr(world.graph, "write_communities", away)
    job = await service.request_rebuild(tenant)
    running = asyncio.create_task(service.rebuild(tenant, job.id, 1))
    while not (await world.catalogue.jobs.job(tenant, job.id)).message.startswith("waiting until"):
        await asyncio.sleep(0.01)
    await world.catalogue.jobs.request_cancel(tenant, job.id)
    await running
    assert (await world.catalogue.jobs.job(tenant, job.id)).state is JobState.CANCELLED
    assert (await service.read_status(tenant))["generation"] == 0


async def test_patience_ends(world: Any, story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    tenant, service = await world.tenant("a"), world.service(patience_s=0.05)
    monkeypatch.setattr(base, "FIRST_PAUSE_S", 0.01)
    await world.add(tenant, "Tidal Array", story("")["Tidal Array"])

    async def away(*_: Any) -> None:
        raise StoreUnavailable("the store is away")

    monkeypatch.setattr(world.graph, "write_communities", away)
    job = await service.request_rebuild(tenant)
    await service.rebuild(tenant, job.id, 1)
    ended = await world.catalogue.jobs.job(tenant, job.id)
    assert (ended.state, ended.error) == (
        JobState.FAILED,
        {"code": "store_unavailable", "message": "the store is away", "stage": "summarise"},
    )
