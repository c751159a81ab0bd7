"""Properties of the SQLite graph store: files, threads, batches."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from agentic_rag_backend.errors import ConfigurationError, StoreUnavailable
from agentic_rag_backend.stores.graph import knowledge_batches, sqlite
from agentic_rag_backend.stores.graph.sqlite import SqliteGraphStore
from agentic_rag_testing.stores.graph_samples import ONE, A, B, knowledge, snapshot


async def test_what_was_written_is_there_after_opening_again(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "graph.db"
    store = await SqliteGraphStore.open(path)
    await store.write_document(A, ONE)
    before = await snapshot(store, A)
    await store.close()
    store = await SqliteGraphStore.open(path)
    assert await snapshot(store, A) == before
    await store.close()


@pytest.mark.parametrize("make", [lambda path: path.write_text("no database" * 100), lambda path: path.mkdir()])
async def test_a_file_that_is_no_database_is_named_unavailable(tmp_path: Path, make: object) -> None:
    path = tmp_path / "graph.db"
    make(path)  # type: ignore[operator]
    with pytest.raises(StoreUnavailable):
        await SqliteGraphStore.open(path)


async def test_a_folder_that_cannot_be_made_is_named_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable, match="cannot be made"):
        await SqliteGraphStore.open(tmp_path / "file" / "graph.db")


async def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    store = await SqliteGraphStore.open(tmp_path / "graph.db")
    await store._connections.prepare(lambda connection: connection.execute("PRAGMA user_version = 7") and None)
    await store.close()
    with pytest.raises(ConfigurationError, match="7"):
        await SqliteGraphStore.open(tmp_path / "graph.db")


@pytest.mark.parametrize("size", [1, 2, 3, 100])
async def test_streams_are_whole_and_ordered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    for name in ("_ENTITIES_PER_BATCH", "_MENTIONS_PER_BATCH", "_RELATIONSHIPS_PER_BATCH"):
        monkeypatch.setattr(sqlite, name, size)
    for name in ("_CHUNKS_PER_BATCH", "_VERSIONS_PER_BATCH", "_ENTITIES_PER_BATCH"):
        monkeypatch.setattr(knowledge_batches, name, size)
    store = await SqliteGraphStore.open(tmp_path / "graph.db")
    documents = [knowledge(f"d{number}", [("Ada", "knows", f"P{number}"), ("Ada", "knows", "Eve")]) for number in range(3)]
    for document in documents:
        await store.write_document(A, document)
        await store.write_document(B, document)
    entities = [entity async for batch in store.all_entities(A) for entity in batch]
    assert [entity.id for entity in entities] == sorted({entity.id for document in documents for entity in document.entities})
    mentions = [mention async for batch in store.all_mentions(A) for mention in batch]
    assert len(mentions) == len(set(mentions)) == 12
    batches = [batch async for batch in store.stream_knowledge(A)]
    chunks = [each for batch in batches for each in batch.mentions]
    assert [(each.support, id) for each in chunks for id in each.entity_ids] == [
        (each.support, each.entity_id) for each in mentions
    ]
    names = [name async for batch in store.all_names(A) for name in batch]
    versions = [each for batch in batches for each in batch.names]
    assert [(each.document_id, id) for each in versions for id in each.entity_ids] == [
        (each.document_id, each.entity_id) for each in names
    ]
    assert [each.entity_id for batch in batches for each in batch.labels] == [entity.id for entity in entities]
    of_some = [mention async for batch in store.all_mentions(A, ["d2", "d0"]) for mention in batch]
    assert of_some == [mention for mention in mentions if mention.support.document_id in {"d0", "d2"}]
    for selection, expected in ((None, 4), (["d0"], 2), (["d0", "d1", "d2"], 4)):
        found = [relationship async for batch in store.all_relationships(A, selection) for relationship in batch]
        assert len(found) == expected
        assert [relationship.id for relationship in found] == sorted({relationship.id for relationship in found})
    await store.close()


async def test_concurrent_writers_lose_nothing(tmp_path: Path) -> None:
    store = await SqliteGraphStore.open(tmp_path / "graph.db")
    other = await SqliteGraphStore.open(tmp_path / "graph.db")
    documents = [knowledge(f"d{number}", [("Ada", "knows", f"P{number}")]) for number in range(30)]
    writers = [(store, other)[number % 2].write_document(A, document) for number, document in enumerate(documents)]
    await asyncio.gather(*writers, store.counts(A), other.counts(A))
    assert (await store.counts(A)).mentions == 60
    deletes = [(store, other)[number % 2].delete_document(A, f"d{number}", up_to_version=1) for number in range(30)]
    removed = await asyncio.gather(*deletes)
    assert sum(gone.entities for gone in removed) == 31
    await store.close()
    await other.close()


async def test_an_entity_whose_name_is_gone_takes_one_that_is_said(tmp_path: Path) -> None:
    store = await SqliteGraphStore.open(tmp_path / "graph.db")
    first = knowledge("one", [("Acme", "is", "Acme")])
    renamed = knowledge("two", [("Acme", "is", "Acme")])
    entity = renamed.entities[0]
    await store.write_document(A, first)
    await store.write_document(A, replace(renamed, entities=(replace(entity, name="Acme Limited", description="a firm"),)))
    known = (await store.entities(A, [entity.id]))[entity.id]
    assert (known.name, known.aliases, known.description) == ("Acme", ("Acme Limited",), "a firm")
    await store.delete_document(A, "one", up_to_version=1)
    known = (await store.entities(A, [entity.id]))[entity.id]
    assert (known.name, known.aliases) == ("Acme Limited", ())
    assert await store.find_entities(A, ["Acme"]) == {}
    await store.close()
    await store.close()
