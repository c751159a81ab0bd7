from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from agentic_rag_backend.domain.graph import EntityMention, Extraction, Mention, NameDescription, Naming
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.identity import near_names
from agentic_rag_backend.knowledge.identity.near_names import NearNames
from agentic_rag_backend.knowledge.resolution.resolver import Resolver
from agentic_rag_backend.stores.graph.sqlite import SqliteGraphStore

TENANT = TenantId("t_" + "a" * 32)


class CountingStore:
    """A graph store that counts how often each document is read."""

    def __init__(self, store: SqliteGraphStore) -> None:
        self.store = store
        self.reads: list[str] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self.store, name)

    def all_names(self, tenant: TenantId, document_ids: Sequence[str]) -> AsyncIterator[list[Naming]]:
        self.reads += document_ids
        return self.store.all_names(tenant, document_ids)

    def all_mentions(self, tenant: TenantId, document_ids: Sequence[str]) -> AsyncIterator[list[Mention]]:
        return self.store.all_mentions(tenant, document_ids)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[CountingStore]:
    opened = await SqliteGraphStore.open(tmp_path / "graph.db")
    yield CountingStore(opened)
    await opened.close()


def said(document: str, *chunks: Sequence[str], description: str = "") -> list[Extraction]:
    return [
        Extraction(
            chunk_id=f"{document}-{number}",
            mentions=tuple(EntityMention(name=name, type="person", start_char=0, end_char=0) for name in names),
            descriptions=tuple(NameDescription(name=name, text=description) for name in names if description),
        )
        for number, names in enumerate(chunks)
    ]


async def write(store: CountingStore, resolver: Resolver, document: str, *chunks: Sequence[str], description: str = "") -> None:
    knowledge = await resolver.resolve(TENANT, document, 1, "", said(document, *chunks, description=description))
    await store.store.write_document(TENANT, knowledge)


async def test_names_near_a_name_are_those_of_its_chunks_and_each_document_is_read_once(store: CountingStore) -> None:
    resolver = Resolver(store.store)
    await write(store, resolver, "d1", ("Ada", "Ben"), ("Ada", "Cara"), ("Dora", "Eli"))
    await write(store, resolver, "d2", ("Ada",), ("Ben", "Eli"))
    reader = NearNames(store, TENANT)  # type: ignore[arg-type]
    assert await reader.near("ada", ["d1", "d2"]) == {"d1": {"ben", "cara"}}
    assert await reader.near("eli", ["d1", "d2", "d3"]) == {"d1": {"dora"}, "d2": {"ben"}}
    assert await reader.near("ben", ["d2"]) == {"d2": {"eli"}}
    assert sorted(store.reads) == ["d1", "d2", "d3"]


async def test_documents_beyond_the_bound_are_read_again(store: CountingStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_names, "_MAX_ITEMS", 5)
    resolver = Resolver(store.store)
    for document in ("d1", "d2"):
        await write(store, resolver, document, ("Ada", "Ben"))
    reader = NearNames(store, TENANT)  # type: ignore[arg-type]
    for _ in range(2):
        assert await reader.near("ada", ["d1", "d2"]) == {"d1": {"ben"}, "d2": {"ben"}}
    assert store.reads == ["d1", "d2", "d1", "d2"]


async def test_settling_many_names_reads_each_document_once_until_the_graph_changes(store: CountingStore) -> None:
    resolver = Resolver(store)  # type: ignore[arg-type]
    names = [f"Person {number}" for number in range(30)]
    for document, description in (("d1", "painter; born 1901"), ("d2", "nurse; born 1960")):
        await write(store, resolver, document, names, description=description)
    store.reads.clear()
    for name in names:
        assert await resolver.identities.find_outdated_documents(TENANT, name.lower()) == ["d1"]
    assert sorted(store.reads) == ["d1", "d2"]
    await write(store, resolver, "d3", names, description="nurse; born 1960")
    store.reads.clear()
    await resolver.identities.find_outdated_documents(TENANT, "person 1")
    assert sorted(store.reads) == ["d1", "d2", "d3"]
