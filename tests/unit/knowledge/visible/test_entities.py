"""Entities, neighbours and paths: only what visible documents say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from knowledge_worlds import Says, World
from tenant_graphs import tenant as tenant

from agentic_rag_backend.domain.document import Chunk, VisibleChunk
from agentic_rag_backend.domain.graph import Relationship, RelationshipSupport, Support
from agentic_rag_backend.domain.location import Location
from agentic_rag_backend.domain.query import EntityRef
from agentic_rag_backend.domain.tenant import Tenant, TenantId
from agentic_rag_backend.errors import NotFound
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.visible.entities import EntityReader


class Knowledge(World):
    """A world whose documents have one chunk each, and relationships between entities."""

    related: list[tuple[str, str, tuple[tuple[str, int], ...]]]

    def __init__(self) -> None:
        super().__init__()
        self.related = []

    def says(self, document: str, *entities: str, version: int = 1) -> None:
        self.show(document, version, *(Says(f"{document}.c", entity, entity.title()) for entity in entities))

    def relate(self, source: str, target: str, *by: tuple[str, int]) -> None:
        self.related.append((source, target, by))

    def _relationship(self, number: int) -> Relationship:
        source, target, by = self.related[number]
        supports = tuple(Support(document, version, f"{document}.c") for document, version in by)
        return Relationship(id=f"r{number}", source_id=source, target_id=target, relation="made", fact="", supports=supports)

    async def relationships_of(self, tenant: TenantId, entity_ids: Sequence[str]) -> list[Relationship]:
        held = [self._relationship(number) for number in range(len(self.related))]
        return [each for each in held if each.source_id in entity_ids and each.target_id in entity_ids]

    async def relationships(self, tenant: TenantId, ids: Sequence[str]) -> dict[str, Relationship]:
        return {id: self._relationship(int(id[1:])) for id in ids}

    async def fact_sentences(self, tenant: TenantId, ids: Sequence[str]) -> list[RelationshipSupport]:
        return [
            RelationshipSupport(relationship_id=id, support=each, fact=f"{each.document_id} says", start_char=0, end_char=1)
            for id, held in (await self.relationships(tenant, ids)).items()
            for each in held.supports
        ]

    async def hydrate(self, tenant: TenantId, ids: Sequence[str]) -> dict[str, VisibleChunk]:
        documents = [id.removesuffix(".c") for id in ids]
        return {f"{each}.c": _passage(each, self.visible[each]) for each in documents if each in self.visible}


def _passage(document: str, version: int) -> VisibleChunk:
    at = Location(start_char=0, end_char=1, start_line=1, end_line=1)
    made: dict[str, Any] = {"text": "text", "content_hash": "h", "size_tokens": 1, "ordinal": 0, "location": at}
    chunk = Chunk(id=f"{document}.c", document_id=document, version=version, **made)
    return VisibleChunk(chunk=chunk, document_title="T", document_key=None, metadata={})


@pytest.fixture
def world() -> Knowledge:
    """Return three documents: ada–engine, engine–mill, mill–london."""
    world = Knowledge()
    world.says("d1", "ada", "engine")
    world.says("d2", "engine", "mill")
    world.says("d3", "mill", "london")
    world.relate("ada", "engine", ("d1", 1), ("d2", 1))
    world.relate("engine", "mill", ("d2", 1))
    return world


@pytest.fixture
def read(world: Knowledge, tenant: Tenant) -> Any:
    """Return a function that calls a method of the reader for the tenant as it is now."""
    stores: Any = world
    reader = EntityReader(TenantGraphs(stores, stores, max_bytes=10**9), stores, stores)

    async def called(method: str, *given: object, **named: object) -> Any:
        now = Tenant(tenant.id, tenant.name, tenant.state, world.state_version, tenant.created_at)
        return await getattr(reader, method)(now, *given, **named)

    return called


async def test_an_entity_has_the_visible_chunks_that_mention_it(world: Knowledge, read: Any) -> None:
    found = await read("entity", "engine")
    assert (found.entity.name, found.chunk_ids) == ("Engine", ("d1.c", "d2.c"))
    world.hide("d1")
    assert (await read("entity", "engine")).chunk_ids == ("d2.c",)
    world.hide("d2")
    for method in ("entity", "neighbours"):
        with pytest.raises(NotFound):
            await read(method, "engine")


async def test_neighbours_share_chunks_and_come_with_what_visible_passages_say(world: Knowledge, read: Any) -> None:
    world.relate("ada", "mill", ("d1", 1))  # between two neighbours
    ada, mill = await read("neighbours", "engine")
    assert [(each.entity.id, each.shared_chunks) for each in (ada, mill)] == [("ada", 1), ("mill", 1)]
    assert [list(each.sentences.values()) for each in ada.relationships] == [["d1 says", "d2 says"]]
    assert [list(each.sentences.values()) for each in mill.relationships] == [["d2 says"]]
    assert [each.entity.id for each in await read("neighbours", "engine", limit=1)] == ["ada"]
    world.hide("d2")
    (ada,) = await read("neighbours", "engine")
    assert [list(each.sentences.values()) for each in ada.relationships] == [["d1 says"]]


async def test_a_relationship_that_only_an_older_version_states_is_not_shown(world: Knowledge, read: Any) -> None:
    world.says("d2", "engine", "mill", version=2)
    (ada, mill) = await read("neighbours", "engine")
    assert [list(each.sentences.values()) for each in ada.relationships] == [["d1 says"]]
    assert mill.relationships == ()


async def test_more_shared_chunks_come_first(world: Knowledge, read: Any) -> None:
    world.says("d4", "engine", "mill")
    assert [(each.entity.id, each.shared_chunks) for each in await read("neighbours", "engine")] == [("mill", 2), ("ada", 1)]


@pytest.mark.parametrize(
    ("source", "target", "hops", "expected"),
    [
        ("ada", "ada", 1, ["ada"]),
        ("ada", "engine", 1, ["ada", "engine"]),
        ("ada", "mill", 1, []),
        ("ada", "mill", 2, ["ada", "engine", "mill"]),
        ("london", "ada", 3, ["london", "mill", "engine", "ada"]),
        ("london", "ada", 2, []),
    ],
)
async def test_a_path_is_a_shortest_way(read: Any, source: str, target: str, hops: int, expected: list[str]) -> None:
    found: list[EntityRef] = await read("path", source, target, max_hops=hops)
    assert [each.id for each in found] == expected


async def test_no_path_leads_over_a_hidden_document(world: Knowledge, read: Any) -> None:
    world.hide("d2")
    assert await read("path", "ada", "london", max_hops=4) == []
    world.hide("d3")
    with pytest.raises(NotFound):
        await read("path", "ada", "london")
