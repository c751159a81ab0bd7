from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from agentic_rag_backend.domain.graph import Entity, Mention, Support
from agentic_rag_backend.domain.tenant import Tenant, TenantId
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.retrieval.graph_cache import TenantGraphs


@dataclass
class Knowledge:
    """A graph store and a catalogue of any tenant's documents, each of one chunk that names one entity."""

    documents: dict[str, int] = field(default_factory=lambda: {"d1": 1})
    loads: list[TenantId] = field(default_factory=list)
    failures: int = 0
    gate: asyncio.Event | None = None

    async def visible_versions(self, tenant: TenantId) -> dict[str, int]:
        return dict(self.documents)

    async def all_entities(self, tenant: TenantId) -> AsyncIterator[Sequence[Entity]]:
        self.loads.append(tenant)
        if self.gate is not None:
            await self.gate.wait()
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("the graph store is away")
        for document in self.documents:
            yield [Entity(id=f"e:{document}", name=document, type="thing")]

    async def all_mentions(self, tenant: TenantId) -> AsyncIterator[Sequence[Mention]]:
        for document, version in self.documents.items():
            yield [Mention(f"e:{document}", Support(document, version, f"c:{document}"))]


@pytest.fixture
def knowledge() -> Knowledge:
    return Knowledge()


def cache(knowledge: Any, *, max_bytes: int = 1 << 30) -> TenantGraphs:
    return TenantGraphs(knowledge, knowledge, max_bytes=max_bytes)


def at(tenant: Tenant, version: int) -> Tenant:
    return replace(tenant, state_version=version)


def other(tenant: Tenant, number: int) -> Tenant:
    return replace(tenant, id=TenantId(f"t_{number:032x}"))


async def test_a_graph_is_loaded_once_a_version(tenant: Tenant, knowledge: Knowledge) -> None:
    graphs = cache(knowledge)
    first = await graphs.graph(tenant)
    assert first.chunk_ids == ("c:d1",)
    assert await graphs.graph(tenant) is first
    knowledge.documents["d2"] = 1
    second = await graphs.graph(at(tenant, 2))
    assert second.chunk_ids == ("c:d1", "c:d2")
    assert len(knowledge.loads) == 2


async def test_the_same_knowledge_under_a_new_version_is_kept(tenant: Tenant, knowledge: Knowledge) -> None:
    graphs = cache(knowledge)
    first = await graphs.graph(tenant)
    assert await graphs.graph(at(tenant, 2)) is first
    assert len(knowledge.loads) == 1


async def test_another_version_of_a_document_is_other_knowledge(tenant: Tenant, knowledge: Knowledge) -> None:
    graphs = cache(knowledge)
    first = await graphs.graph(tenant)
    knowledge.documents["d1"] = 2
    assert await graphs.graph(at(tenant, 2)) is not first


async def test_who_comes_with_an_older_version_gets_the_newer(tenant: Tenant, knowledge: Knowledge) -> None:
    graphs = cache(knowledge)
    newer = await graphs.graph(at(tenant, 5))
    assert await graphs.graph(at(tenant, 4)) is newer
    assert len(knowledge.loads) == 1


async def test_a_slow_older_load_does_not_replace_a_newer(tenant: Tenant, knowledge: Knowledge) -> None:
    graphs = cache(knowledge)
    knowledge.gate = asyncio.Event()
    older = asyncio.create_task(graphs.graph(at(tenant, 1)))
    while not knowledge.loads:
        await asyncio.sleep(0)
    slow, knowledge.gate = knowledge.gate, None
    knowledge.documents = {"d1": 1, "d2": 1}
    newer = await graphs.graph(at(tenant, 2))
    slow.set()
    await older
    assert await graphs.graph(at(tenant, 2)) is newer
    assert newer.chunk_ids == ("c:d1", "c:d2")


async def test_those_who_ask_at_once_share_a_load(tenant: Tenant, knowledge: Knowledge) -> None:
    graphs = cache(knowledge)
    found = await asyncio.gather(*[graphs.graph(tenant) for _ in range(8)])
    assert all(graph is found[0] for graph in found)
    assert len(knowledge.loads) == 1


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
    assert (await stays).chunk_ids == ("c:d1",)
    assert len(knowledge.loads) == 1


async def test_a_failed_load_is_tried_again(tenant: Tenant, knowledge: Knowledge) -> None:
    graphs = cache(knowledge)
    knowledge.failures = 1
    outcome = await asyncio.gather(graphs.graph(tenant), graphs.graph(tenant), return_exceptions=True)
    assert [type(error) for error in outcome] == [StoreUnavailable] * 2
    assert (await graphs.graph(tenant)).chunk_ids == ("c:d1",)
    assert len(knowledge.loads) == 2


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
    assert (await graphs.graph(tenant)).chunk_ids == ("c:d1",)
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
