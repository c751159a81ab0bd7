"""A ready document has settled names: neither its own names nor those of earlier documents wait for the relay."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.integration.ingestion.conftest import World

from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.ingestion.commit import settlement
from agentic_rag_backend.jobs.coordination.tenant_locks import TenantLock
from agentic_rag_backend.stores.catalogue.base import SETTLING, Topic

BARE = "# Notes\n\nThe NSI surveyed Scarrow in 2019. Mara Voss praised the NSI."
EXPLAINED = "# Report\n\nThe North Sea Institute (NSI) opened a station in Scarrow. Mara Voss leads the North Sea Institute."
CHANGED = (
    "# Report\n\nThe Norwegian Ski Institute (NSI) opened a station in Scarrow. Mara Voss leads the Norwegian Ski Institute."
)


async def ingest(world: World, **texts: str) -> list[str]:
    """Upload documents at once, wait for their jobs, and return their ids. No relay runs."""
    submitted = [await world.submit(text, key=key) for key, text in texts.items()]
    for each in submitted:
        assert (await world.ended(each.job)).state is JobState.SUCCEEDED
    return [each.document.id for each in submitted]


async def entities_called(world: World, name: str) -> dict[str, str]:
    """Return the names of the entities that documents mean by a name, by document."""
    return {
        naming.document_id: naming.entity_name
        async for batch in world.graph.all_names(world.tenant)
        for naming in batch
        if naming.name == name
    }


async def test_an_earlier_document_is_settled_when_a_later_one_is_ready(world: World) -> None:
    bare, *_ = await ingest(world, bare=BARE)
    assert await entities_called(world, "NSI") == {bare: "NSI"}
    await ingest(world, explained=EXPLAINED)
    assert (await entities_called(world, "NSI"))[bare] == "North Sea Institute"
    assert not await world.catalogue.outbox.holds(world.tenant, SETTLING)


async def test_documents_of_one_commit_are_settled_before_any_is_visible(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The document that explains the acronym is written after another one, and before the first is visible."""
    seen: list[set[str]] = []
    another_is_written = asyncio.Event()
    catalogue, write, publish = world.catalogue.documents, world.graph.write_document, world.catalogue.documents.publish
    ready = catalogue.ready

    async def read(tenant: Any, document_id: str, version: int) -> Any:
        found = await ready(tenant, document_id, version)
        if found.document.key == "explained":
            await another_is_written.wait()
        return found

    async def record_write(*arguments: Any) -> None:
        await write(*arguments)
        another_is_written.set()

    async def record_names(*arguments: Any, **options: Any) -> Any:
        seen.append(set((await entities_called(world, "NSI")).values()))
        return await publish(*arguments, **options)

    monkeypatch.setattr(catalogue, "ready", read)
    monkeypatch.setattr(catalogue, "publish", record_names)
    monkeypatch.setattr(world.graph, "write_document", record_write)
    async with world.queue.tenant_lock(TenantLock.COMMIT, world.tenant):
        submitted = [await world.submit(text, key=key) for key, text in {"bare": BARE, "explained": EXPLAINED}.items()]
        async with asyncio.timeout(60):
            while len(world.ingestion._batches._prepared.get(world.tenant, ())) < 2:
                await asyncio.sleep(0.01)
    for each in submitted:
        assert (await world.ended(each.job)).state is JobState.SUCCEEDED
    assert seen == [{"North Sea Institute"}] * 2


async def test_a_new_version_ends_when_the_names_of_the_old_one_are_settled(world: World) -> None:
    bare, explained = await ingest(world, bare=BARE, explained=EXPLAINED)
    await ingest(world, explained=CHANGED)
    assert await entities_called(world, "NSI") == dict.fromkeys((bare, explained), "Norwegian Ski Institute")
    assert not await world.catalogue.outbox.holds(world.tenant, SETTLING)


@pytest.mark.parametrize("fault", [StoreUnavailable("the graph does not answer"), ValueError("a fault of the code")], ids=str)
async def test_names_that_cannot_be_settled_delay_no_document(
    world: World, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    """They stay recorded, and the relay settles them later."""
    (bare,) = await ingest(world, bare=BARE)
    replace = type(world.ingestion._settlement.facts).replace_knowledge

    async def fail(*_: Any) -> None:
        raise fault

    with monkeypatch.context() as patched:
        patched.setattr(type(world.ingestion._settlement.facts), "replace_knowledge", fail)
        await ingest(world, explained=EXPLAINED)
        entries = await world.catalogue.outbox.pending(world.tenant, limit=10, topics=SETTLING)
        assert [(entry.topic, entry.subject) for entry in entries] == [(Topic.KNOWLEDGE, bare)]
        assert not (await world.ingestion.relay.deliver(world.tenant, within_s=60)).done
    assert type(world.ingestion._settlement.facts).replace_knowledge is replace
    assert (await world.ingestion.relay.deliver(world.tenant, within_s=60)).done
    assert (await entities_called(world, "NSI"))[bare] == "North Sea Institute"


async def test_settling_takes_a_limited_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settlement, "SETTLED_WITHIN_S", -1.0)
    monkeypatch.setattr(settlement, "_PAGE", 1)
    await ingest(world, **{f"bare-{number}": f"{BARE} Part {number}." for number in range(3)})
    await ingest(world, explained=EXPLAINED)
    entries = await world.catalogue.outbox.pending(world.tenant, limit=10, topics=[Topic.KNOWLEDGE])
    assert len(entries) == 2, "one of three was settled in time"
    assert (await world.ingestion.relay.deliver(world.tenant, within_s=60)).done
    assert set((await entities_called(world, "NSI")).values()) == {"North Sea Institute"}


async def test_an_entry_that_fails_keeps_no_others_from_delivery(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = [f"failing-{number:03}" for number in range(120)]  # more than the relay reads at once
    delivered: list[str] = []

    async def name(_: Any, subject: str) -> None:
        if subject.startswith("failing"):
            raise ValueError("a fault of the code")
        delivered.append(subject)

    world.ingestion.relay.register_handlers({Topic.NAMES: name})
    await world.catalogue.outbox.add_all(world.tenant, Topic.NAMES, failing)
    await asyncio.sleep(0.002)
    await world.catalogue.outbox.add_all(world.tenant, Topic.NAMES, ["fine"])
    assert not (await world.ingestion.relay.deliver(world.tenant, within_s=60)).done
    assert delivered == ["fine"]
    assert len(await world.catalogue.outbox.pending(world.tenant, limit=200)) == len(failing)
