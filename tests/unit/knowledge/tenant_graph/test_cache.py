from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from knowledge_worlds import Says, World
from tenant_graphs import build_tenant_graph

from agentic_rag_backend.domain.tenant import Tenant, TenantId
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.knowledge.tenant_graph import ledger
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.knowledge.tenant_graph.ledger import GraphLedger
from agentic_rag_backend.stores.catalogue.base import Visibility


@dataclass
class Knowledge(World):
    """Documents of one chunk that names one entity. Full reads are recorded, and wait at ``gate``."""

    loads: list[TenantId] = field(default_factory=list)
    gate: asyncio.Event | None = None

    async def visibility(self, tenant: TenantId, *, since: int | None = None) -> Visibility:
        seen = await super().visibility(tenant, since=since)
        if since is None:
            self.loads.append(tenant)
            if self.gate is not None:
                await self.gate.wait()
        return seen

    def add(self, document: str, version: int = 1) -> None:
        self.show(document, version, Says(f"c:{document}", f"e:{document}", document))


@pytest.fixture
def knowledge() -> Knowledge:
    made = Knowledge()
    made.add("d1")
    return made


def cache(knowledge: Any, *, max_bytes: int = 1 << 30) -> TenantGraphs:
    return TenantGraphs(knowledge, knowledge, max_bytes=max_bytes)


def at(tenant: Tenant, version: int) -> Tenant:
    return replace(tenant, state_version=version)


def other(tenant: Tenant, number: int) -> Tenant:
    return replace(tenant, id=TenantId(f"t_{number:032x}"))


def chunks(graph: TenantGraph) -> set[str]:
    return set(graph.chunk_index)


async def test_a_graph_is_loaded_once_a_version(tenant: Tenant, knowledge: Knowledge) -> None:
    graphs = cache(knowledge)
    first = await graphs.graph(tenant)
    assert chunks(first) == {"c:d1"}
    assert await graphs.graph(tenant) is first
    knowledge.add("d2")
    second = await graphs.graph(at(tenant, 2))
    assert chunks(second) == {"c:d1", "c:d2"}
    assert chunks(first) == {"c:d1"}
    assert await graphs.graph(at(tenant, 2)) is second


async def test_only_what_changed_is_read(tenant: Tenant, knowledge: Knowledge) -> None:
    for number in range(2, 9):
        knowledge.add(f"d{number}")
    graphs = cache(knowledge)
    await graphs.graph(at(tenant, 8))
    knowledge.add("d3", 2)
    knowledge.add("d9")
    knowledge.hide("d1")
    found = await graphs.graph(at(tenant, 11))
    assert chunks(found) == {f"c:d{number}" for number in range(2, 10)}
    assert knowledge.reads == [None, ("d3", "d9")]
    knowledge.hide("d2")
    assert "c:d2" not in chunks(await graphs.graph(at(tenant, 12)))
    assert knowledge.reads == [None, ("d3", "d9"), ()]


async def test_after_more_changes_than_the_log_keeps_everything_is_read(tenant: Tenant, knowledge: Knowledge) -> None:
    for number in range(2, 9):
        knowledge.add(f"d{number}")
    graphs = cache(knowledge)
    await graphs.graph(at(tenant, 8))
    knowledge.on_record = 1
    knowledge.hide("d1")
    knowledge.purge("d1", up_to=1)
    knowledge.add("d2", 2)
    knowledge.add("d9")
    found = await graphs.graph(at(tenant, 11))
    assert chunks(found) == {f"c:d{number}" for number in range(2, 10)}
    assert knowledge.reads == [None, None]


async def test_the_same_knowledge_under_a_new_version_is_kept(tenant: Tenant, knowledge: Knowledge) -> None:
    graphs = cache(knowledge)
    first = await graphs.graph(tenant)
    knowledge.state_version = 2
    assert await graphs.graph(at(tenant, 2)) is first
    assert knowledge.reads == [None]


async def test_knowledge_that_is_written_again_for_a_version_is_read_again(tenant: Tenant, knowledge: Knowledge) -> None:
    for number in range(2, 9):
        knowledge.add(f"d{number}")
    graphs = cache(knowledge)
    await graphs.graph(at(tenant, 8))
    knowledge.add("d1", 1)
    await graphs.graph(at(tenant, 9))
    assert knowledge.reads == [None, ("d1",)]


async def test_another_version_of_a_document_is_other_knowledge(tenant: Tenant, knowledge: Knowledge) -> None:
    graphs = cache(knowledge)
    first = await graphs.graph(tenant)
    knowledge.add("d1", 2)
    assert await graphs.graph(at(tenant, 2)) is not first


async def test_who_comes_with_an_older_version_gets_the_newer(tenant: Tenant, knowledge: Knowledge) -> None:
    graphs = cache(knowledge)
    knowledge.state_version = 5
    newer = await graphs.graph(at(tenant, 5))
    assert await graphs.graph(at(tenant, 4)) is newer
    assert len(knowledge.loads) == 1


async def test_who_comes_while_an_older_state_is_loaded_waits_for_the_newer(tenant: Tenant, knowledge: Knowledge) -> None:
    graphs = cache(knowledge)
    knowledge.gate = asyncio.Event()
    older = asyncio.create_task(graphs.graph(at(tenant, 1)))
    while not knowledge.loads:
        await asyncio.sleep(0)
    knowledge.add("d2")
    newer = [asyncio.create_task(graphs.graph(at(tenant, 2))) for _ in range(3)]
    knowledge.gate.set()
    await older
    assert [chunks(await task) for task in newer] == [{"c:d1", "c:d2"}] * 3


async def test_a_version_that_comes_between_two_reads_is_read_too(tenant: Tenant, knowledge: Knowledge) -> None:
    """Its predecessor's knowledge is already gone when it is read: the graph would contain nothing of the document."""
    for number in range(2, 9):
        knowledge.add(f"d{number}")
    graphs = cache(knowledge)

    def publish() -> None:
        knowledge.before_read = lambda: None
        knowledge.show("d1", knowledge.visible["d1"] + 1, Says("c:new", "e:new", "New"))

    knowledge.before_read = publish
    found = await graphs.graph(at(tenant, 8))
    assert {"c:new", "c:d8"} <= chunks(found)
    assert "c:d1" not in chunks(found)
    knowledge.add("d2", 2)
    knowledge.before_read = publish
    assert "c:new" in chunks(await graphs.graph(at(tenant, 10)))
    assert set((await graphs.graph(at(tenant, 10))).names) == set(build_tenant_graph(knowledge.knowledge()).names)


async def test_a_document_deleted_and_uploaded_again_while_read_is_the_new_one(tenant: Tenant, knowledge: Knowledge) -> None:
    for number in range(2, 9):
        knowledge.add(f"d{number}")
    graphs = cache(knowledge)
    await graphs.graph(at(tenant, 8))

    def replaced() -> None:
        knowledge.before_read = lambda: None
        knowledge.hide("d3")
        knowledge.purge("d3", up_to=9)
        knowledge.add("again")

    knowledge.add("d3", 2)
    knowledge.before_read = replaced
    found = await graphs.graph(at(tenant, 9))
    assert chunks(found) == chunks(build_tenant_graph(knowledge.knowledge()))
    assert "c:again" in chunks(found)


async def test_most_of_it_replaced_is_made_anew(tenant: Tenant, knowledge: Knowledge) -> None:
    graphs = cache(knowledge)
    await graphs.graph(tenant)
    for number in range(2, 9):
        knowledge.add(f"d{number}")
    await graphs.graph(at(tenant, 8))
    assert knowledge.reads == [None, None]


async def test_a_worn_graph_is_made_anew(tenant: Tenant, knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "WORN_MINIMUM", 3)
    for number in range(2, 9):
        knowledge.add(f"d{number}")
    graphs = cache(knowledge)
    version = 8
    for turn in range(60):
        knowledge.hide(f"d{turn + 1}")
        knowledge.add(f"d{turn + 9}")
        version += 2
        found = await graphs.graph(at(tenant, version))
        assert chunks(found) == set(chunks(build_tenant_graph(knowledge.knowledge())))
        assert found.chunk_places < 25
    assert 2 < knowledge.reads.count(None) < 12


async def test_those_who_ask_at_once_share_a_load(tenant: Tenant, knowledge: Knowledge) -> None:
    graphs = cache(knowledge)
    found = await asyncio.gather(*[graphs.graph(tenant) for _ in range(8)])
    assert all(graph is found[0] for graph in found)
    assert knowledge.reads == [None]


async def test_one_who_gives_up_leaves_the_load_to_the_other(tenant: Tenant, knowledge: Knowledge) -> None:
    graphs = cache(knowledge)
    knowledge.gate = asyncio.Event()
    gone, stays = asyncio.create_task(graphs.graph(tenant)), asyncio.create_task(graphs.graph(tenant))
    while not knowledge.loads:
        await asyncio.sleep(0)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    knowledge.gate.set()
    assert chunks(await stays) == {"c:d1"}
    assert knowledge.reads == [None]


async def test_a_failed_load_is_tried_again(tenant: Tenant, knowledge: Knowledge) -> None:
    graphs = cache(knowledge)
    knowledge.failures = 1
    outcome = await asyncio.gather(graphs.graph(tenant), graphs.graph(tenant), return_exceptions=True)
    assert [type(error) for error in outcome] == [StoreUnavailable] * 2
    assert chunks(await graphs.graph(tenant)) == {"c:d1"}
    assert knowledge.reads == [None, None]


async def test_a_failed_update_leaves_the_graph_as_it_was(tenant: Tenant, knowledge: Knowledge) -> None:
    for number in range(2, 9):
        knowledge.add(f"d{number}")
    graphs = cache(knowledge)
    before = await graphs.graph(at(tenant, 8))
    knowledge.add("d2", 2)
    knowledge.failures = 1
    with pytest.raises(StoreUnavailable):
        await graphs.graph(at(tenant, 9))
    assert await graphs.graph(at(tenant, 8)) is before
    assert chunks(await graphs.graph(at(tenant, 9))) == chunks(before)
    assert knowledge.reads == [None, ("d2",), ("d2",)]


async def test_a_partly_applied_change_discards_the_ledger(
    tenant: Tenant, knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2, 9):
        knowledge.add(f"d{number}")
    graphs = cache(knowledge)
    await graphs.graph(at(tenant, 8))
    knowledge.hide("d2")

    def full(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(GraphLedger, "_put_links", full)
        with pytest.raises(MemoryError):
            await graphs.graph(at(tenant, 9))
    found = await graphs.graph(at(tenant, 9))
    assert chunks(found) == {f"c:d{number}" for number in (1, *range(3, 9))}
    assert knowledge.reads == [None, (), None]


async def test_a_failure_that_nobody_waits_for_is_nobodys(tenant: Tenant, knowledge: Knowledge) -> None:
    noticed: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: noticed.append(context))
    graphs = cache(knowledge)
    knowledge.failures, knowledge.gate = 1, asyncio.Event()
    gone = asyncio.create_task(graphs.graph(tenant))
    while not knowledge.loads:
        await asyncio.sleep(0)
    gone.cancel()
    knowledge.gate.set()
    await asyncio.sleep(0.01)
    assert chunks(await graphs.graph(tenant)) == {"c:d1"}
    del gone
    await asyncio.sleep(0)
    assert noticed == []


async def test_the_least_recently_used_goes_when_memory_is_full(tenant: Tenant, knowledge: Knowledge) -> None:
    one = (await cache(knowledge).graph(tenant)).size_bytes
    knowledge.loads.clear()
    graphs = cache(knowledge, max_bytes=2 * one + one // 2)
    a, b, c = (other(tenant, number) for number in range(3))
    held = await graphs.graph(a)
    await graphs.graph(b)
    assert await graphs.graph(a) is held
    await graphs.graph(c)
    assert graphs.size_bytes == 2 * one
    assert await graphs.graph(a) is held
    assert knowledge.loads == [a.id, b.id, c.id]
    await graphs.graph(b)
    assert knowledge.loads == [a.id, b.id, c.id, b.id]


async def test_a_graph_larger_than_the_bound_is_kept_alone(tenant: Tenant, knowledge: Knowledge) -> None:
    graphs = cache(knowledge, max_bytes=1)
    a, b = other(tenant, 1), other(tenant, 2)
    await graphs.graph(a)
    held = await graphs.graph(b)
    assert await graphs.graph(b) is held
    assert graphs.size_bytes == held.size_bytes


async def test_a_deleted_tenant_is_forgotten(tenant: Tenant, knowledge: Knowledge) -> None:
    graphs = cache(knowledge)
    await graphs.graph(tenant)
    graphs.forget(tenant.id)
    assert graphs.size_bytes == 0
    graphs.forget(tenant.id)
    await graphs.graph(tenant)
    assert len(knowledge.loads) == 2
    assert graphs.size_bytes == 0, "a question that came late"


async def test_a_tenant_deleted_while_its_graph_is_loaded_is_forgotten(tenant: Tenant, knowledge: Knowledge) -> None:
    graphs = cache(knowledge)
    knowledge.gate = asyncio.Event()
    asked = asyncio.create_task(graphs.graph(tenant))
    while not knowledge.loads:
        await asyncio.sleep(0)
    graphs.forget(tenant.id)
    knowledge.gate.set()
    assert chunks(await asked) == {"c:d1"}
    assert graphs.size_bytes == 0


async def test_a_tenant_made_again_under_its_id_is_kept(tenant: Tenant, knowledge: Knowledge) -> None:
    graphs = cache(knowledge)
    await graphs.graph(tenant)
    graphs.forget(tenant.id)
    again = replace(tenant, created_at=tenant.created_at + timedelta(days=36_500))
    held = await graphs.graph(again)
    assert await graphs.graph(again) is held
    assert graphs.size_bytes == held.size_bytes


async def test_a_mended_tenant_is_read_anew_once(tenant: Tenant, knowledge: Knowledge) -> None:
    graphs = cache(knowledge)
    await graphs.graph(tenant)
    graphs.read_anew(tenant.id)
    held = await graphs.graph(tenant)
    assert await graphs.graph(tenant) is held
    assert len(knowledge.loads) == 2


async def test_what_was_being_read_when_it_was_mended_is_not_kept(tenant: Tenant, knowledge: Knowledge) -> None:
    graphs = cache(knowledge)
    knowledge.gate = asyncio.Event()
    asked = asyncio.create_task(graphs.graph(tenant))
    while not knowledge.loads:
        await asyncio.sleep(0)
    graphs.read_anew(tenant.id)
    knowledge.gate.set()
    await asked
    assert graphs.size_bytes == 0
    held = await graphs.graph(tenant)
    assert await graphs.graph(tenant) is held
    assert len(knowledge.loads) == 2
