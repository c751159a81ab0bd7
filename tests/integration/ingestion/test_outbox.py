"""A change that a request writes to the catalogue reaches the other stores, despite faults in between."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.integration.ingestion.conftest import Builder, World

from agentic_rag_backend.domain.filters import Comparison
from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.errors import StoreUnavailable, UnreadableDocument
from agentic_rag_backend.stores.catalogue.base import Topic
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, VectorSearch

TEXT = "# Harbour\n\nThe harbour authority began dredging in May."


async def found_on_shelf(world: World, shelf: int) -> int:
    """Return the number of passages that the vector store finds with a filter on metadata."""
    wanted = VectorSearch(kind=NodeKind.CHUNK, text="dredging", filter=Comparison(field="shelf", operator="eq", value=shelf))
    (legs,) = await world.vectors.search(world.tenant, Collection.CHUNKS, [wanted])
    return len(legs.sparse)


async def ready(world: World, **fields: Any) -> str:
    submitted = await world.submit(TEXT, key="harbour", metadata={"shelf": 1}, **fields)
    await world.ended(submitted.job)
    return submitted.document.id


class Outage:
    """Makes the vector store refuse metadata changes while it is active."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.on = False
        self.refused = 0
        self._original = world.vectors.update_metadata
        monkeypatch.setattr(world.vectors, "update_metadata", self._update)

    async def _update(self, *arguments: Any, **options: Any) -> None:
        if self.on:
            self.refused += 1
            raise StoreUnavailable("the vector store does not answer")
        await self._original(*arguments, **options)


async def test_a_change_that_the_vector_store_missed_reaches_it_when_the_change_is_repeated(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    document_id = await ready(world)
    outage = Outage(world, monkeypatch)
    outage.on = True
    changed = await world.ingestion.update(world.tenant, document_id, fields={"shelf": 2})
    assert (changed.unchanged, changed.in_search) == (False, False)
    assert outage.refused == 1
    assert (await found_on_shelf(world, 1), await found_on_shelf(world, 2)) == (1, 0)
    outage.on = False
    again = await world.ingestion.update(world.tenant, document_id, fields={"shelf": 2})
    assert (again.unchanged, again.in_search) == (True, True)
    assert (await found_on_shelf(world, 1), await found_on_shelf(world, 2)) == (0, 1)


async def test_a_change_that_the_vector_store_missed_reaches_it_by_itself(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    document_id = await ready(world)
    outage = Outage(world, monkeypatch)
    outage.on = True
    resubmitted = await world.submit(TEXT, key="harbour", metadata={"shelf": 2})
    assert (resubmitted.document.id, resubmitted.job, resubmitted.in_search) == (document_id, None, False)
    delivering = asyncio.create_task(world.ingestion.relay.run(_leads))
    try:
        async with asyncio.timeout(60):
            while outage.refused < 3:
                await asyncio.sleep(0.02)
            outage.on = False
            while await found_on_shelf(world, 2) == 0:
                await asyncio.sleep(0.02)
    finally:
        delivering.cancel()
    assert await found_on_shelf(world, 1) == 0


async def test_what_a_process_did_not_deliver_is_delivered_by_the_next(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await builder.open()
    document_id = await ready(first)
    outage = Outage(first, monkeypatch)
    outage.on = True
    await first.ingestion.update(first.tenant, document_id, fields={"shelf": 2})
    await builder.stack.aclose()
    second = await builder.open()
    assert await found_on_shelf(second, 2) == 0
    delivering = asyncio.create_task(second.ingestion.relay.run(_leads))
    try:
        async with asyncio.timeout(60):
            while await second.catalogue.outbox.tenants(limit=1):
                await asyncio.sleep(0.02)
    finally:
        delivering.cancel()
    assert (await found_on_shelf(second, 1), await found_on_shelf(second, 2)) == (0, 1)


async def _leads() -> bool:
    return True


@pytest.mark.parametrize("writer", ["cleanup", "mirror"])
async def test_a_version_in_its_commit_keeps_its_own_metadata(world: World, monkeypatch: pytest.MonkeyPatch, writer: str) -> None:
    """Another writer copies the visible version's metadata after the next version was written, and before it is published."""
    document_id = await ready(world)
    published = world.catalogue.documents.publish

    async def publish(*arguments: Any, **options: Any) -> Any:
        handlers = world.ingestion.list_deliveries()
        if writer == "mirror":
            await handlers[Topic.LABELS](world.tenant, document_id)
        else:
            await handlers[Topic.LEFTOVERS](world.tenant, f"{document_id}@2")
        return await published(*arguments, **options)

    # The second version fails, so that it leaves something to clean up. The third one is published.
    monkeypatch.setattr(world.catalogue.documents, "publish", failing)
    second = await world.submit(f"{TEXT} It ended in June.", key="harbour", metadata={"shelf": 2})
    assert (await world.ended(second.job)).state is JobState.FAILED
    monkeypatch.setattr(world.catalogue.documents, "publish", publish)
    third = await world.submit(f"{TEXT} It ended in July.", key="harbour", metadata={"shelf": 3})
    assert (await world.ended(third.job)).state is JobState.SUCCEEDED
    assert [await found_on_shelf(world, shelf) for shelf in (1, 2, 3)] == [0, 0, 1]


async def failing(*_: Any, **__: Any) -> Any:
    raise UnreadableDocument("the publication fails")
