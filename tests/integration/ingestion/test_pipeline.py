"""Documents from submission until they are searchable, and from deletion until they are removed, on real stores."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from tests.integration.ingestion.conftest import Builder, World

from agentic_rag_backend.domain.document import Chunk, ChunkingOptions, DocumentState, ProcessingOptions
from agentic_rag_backend.domain.graph import Extraction
from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.errors import (
    ModelUnavailable,
    NotFound,
)
from agentic_rag_backend.ingestion.service import INGEST
from agentic_rag_backend.ingestion.vectors.fact_points import FactPoints
from agentic_rag_backend.jobs import base
from agentic_rag_backend.knowledge.extraction.rules import RuleExtractor
from agentic_rag_backend.models.embedding.bundled import BundledEmbedder
from agentic_rag_backend.stores.graph.base import GraphCounts
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, VectorSearch

CURIE = """---
title: Marie Curie
year: 1934
published: 2020-05-01
---
# Life

Marie Curie was born in Warsaw in 1867. She moved to Paris and studied at the University of Paris.

# Work

Marie Curie discovered polonium and radium together with Pierre Curie. She founded the Radium Institute in Paris.
"""
JOLIOT = (
    "# Irène Joliot-Curie\n\nIrène Joliot-Curie was the daughter of Marie Curie. She worked at the Radium Institute in Paris."
)


async def ready(world: World, text: str, **fields: object) -> str:
    submitted = await world.submit(text, **fields)
    job = await world.ended(submitted.job)
    assert job.state is JobState.SUCCEEDED, job
    return submitted.document.id


async def test_a_document_becomes_chunks_knowledge_and_vectors(world: World) -> None:
    submitted = await world.submit(CURIE, key="curie", metadata={"shelf": 3})
    assert submitted.document.state is DocumentState.PENDING
    assert submitted.document.title == "Marie Curie"
    job = await world.ended(submitted.job)
    document = await world.catalogue.documents.document(world.tenant, submitted.document.id)
    assert (document.state, document.current_version, document.title) == (DocumentState.READY, 1, "Marie Curie")
    assert document.metadata == {"year": 1934, "published": "2020-05-01", "shelf": 3}
    assert job.result is not None
    assert job.result["chunks"] == document.chunk_count == 1
    assert job.result["entities"] > 3
    assert job.result["relationships"] > 0
    assert (await world.catalogue.communities.pointer(world.tenant)).stale
    dense = await world.embedder.embed_query("Who discovered radium?")
    legs = await world.vectors.search(
        world.tenant,
        Collection.CHUNKS,
        [VectorSearch(kind=NodeKind.CHUNK, dense=dense, text="polonium")],
    )
    chunk_ids = {hit.id for hit in (*legs[0].dense, *legs[0].sparse)}
    visible = await world.catalogue.documents.hydrate(world.tenant, sorted(chunk_ids))
    assert [item.chunk.document_id for item in visible.values()] == [document.id]
    version = await world.catalogue.documents.version(world.tenant, document.id, 1)
    for item in visible.values():
        assert version.text[item.chunk.location.start_char : item.chunk.location.end_char] == item.chunk.text
    found = await world.graph.find_entities(world.tenant, ["marie curie"])
    assert found["marie curie"][0].name == "Marie Curie"
    facts = await world.vectors.search(
        world.tenant, Collection.NODES, [VectorSearch(kind=NodeKind.FACT, text="discovered polonium")]
    )
    assert facts[0].sparse


async def test_a_passage_is_the_only_thing_embedded(world: World) -> None:
    before = world.embedder.stats.texts
    await ready(world, CURIE)
    assert world.embedder.stats.texts - before == 1


async def test_a_shared_fact_is_found_by_the_words_of_what_is_left(world: World) -> None:
    first = await ready(world, "Marie Curie worked with Pierre Curie on luminous zirconium.")
    await ready(world, "Marie Curie worked with Pierre Curie in a draughty shed.")

    async def facts(text: str) -> set[str]:
        search = VectorSearch(kind=NodeKind.FACT, text=text)
        return {hit.id for hit in (await world.vectors.search(world.tenant, Collection.NODES, [search]))[0].sparse}

    await world.ended(await world.ingestion.delete(world.tenant, first))
    assert await facts("luminous zirconium") == set()
    assert await facts("draughty shed")


async def test_deleting_leaves_nothing(world: World) -> None:
    curie, joliot = await ready(world, CURIE), await ready(world, JOLIOT)
    tenant = world.tenant
    version = await world.catalogue.documents.version(tenant, curie, 1)
    first = await world.ended(await world.ingestion.delete(tenant, curie))
    assert first.state is JobState.SUCCEEDED
    assert first.result is not None
    assert first.result["removed"]["vectors"] == 1
    assert first.result["removed"]["originals"] == 1
    assert set(first.result["leftovers"].values()) == {0}
    with pytest.raises(NotFound):
        await world.catalogue.documents.document(tenant, curie)
    with pytest.raises(NotFound):
        await world.blobs.get(tenant, version.blob_key)
    # The statements that the other document shares are still there.
    assert await world.graph.find_entities(tenant, ["marie curie"])
    assert "polonium" not in await world.graph.find_entities(tenant, ["polonium"])
    await world.ended(await world.ingestion.delete(tenant, joliot))
    assert await world.graph.counts(tenant) == GraphCounts(0, 0, 0)
    assert await world.vectors.count(tenant, Collection.CHUNKS) == 0
    assert await world.vectors.count(tenant, Collection.NODES) == 0
    assert world.originals() == []


@pytest.mark.parametrize("gone", [0, 1, 2])
async def test_an_inventory_counts_what_is_removed(world: World, gone: int) -> None:
    """Also for a document with two versions. Items that other documents support are not counted."""
    ids = [await ready(world, text, key=str(number)) for number, text in enumerate((CURIE, JOLIOT, f"{CURIE}\n\n{JOLIOT}"))]
    await ready(world, f"{CURIE} Marie Curie taught Ellen Gleditsch.", key="0")
    facts = FactPoints(world.graph, world.vectors)
    counted = await facts.count_knowledge(world.tenant, ids[gone], up_to_version=9)
    assert counted.mentions > 0
    assert counted == await facts.remove_knowledge(world.tenant, ids[gone], up_to_version=9)


async def test_a_new_version_replaces_the_old_one_everywhere(world: World) -> None:
    first = await ready(world, CURIE, key="curie")
    second = await ready(world, "# Lise Meitner\n\nLise Meitner worked in Berlin with Otto Hahn.", key="curie")
    assert first == second
    document = await world.catalogue.documents.document(world.tenant, first)
    assert (document.current_version, document.chunk_count, document.title) == (2, 1, "Lise Meitner")
    assert await world.graph.find_entities(world.tenant, ["marie curie"]) == {}
    assert await world.vectors.count(world.tenant, Collection.CHUNKS) == 1
    counts = await world.graph.counts(world.tenant)
    assert await world.vectors.count(world.tenant, Collection.NODES) == counts.relationships
    assert len(world.originals()) == 1


async def test_an_edit_keeps_what_both_versions_say(world: World) -> None:
    document = await ready(world, CURIE, key="curie")
    before = (await world.graph.find_entities(world.tenant, ["marie curie"]))["marie curie"][0].id
    await ready(world, CURIE.replace("1867", "1868"), key="curie")
    after = (await world.graph.find_entities(world.tenant, ["marie curie"]))["marie curie"][0].id
    assert before == after
    counts = await world.graph.counts(world.tenant)
    assert await world.vectors.count(world.tenant, Collection.NODES) == counts.relationships
    async for mentions in world.graph.all_mentions(world.tenant, [document]):
        assert {mention.support.version for mention in mentions} == {2}


async def test_many_documents_at_once_are_all_there(world: World) -> None:
    texts = [
        f"# Report {number}\n\nReport {number} says that Marie Curie met Person{number} Smith in Paris." for number in range(25)
    ]
    submitted = await asyncio.gather(*(world.submit(text) for text in texts))
    jobs = await asyncio.gather(*(world.ended(item.job, within_s=60) for item in submitted))
    assert {job.state for job in jobs} == {JobState.SUCCEEDED}
    marie = (await world.graph.find_entities(world.tenant, ["marie curie"]))["marie curie"]
    assert len(marie) == 1
    assert (await world.graph.mention_counts(world.tenant, [marie[0].id]))[marie[0].id] == 25


async def test_a_long_document_is_staged_in_groups(world: World) -> None:
    text = "\n\n".join(
        f"## Chapter {number}\n\n" + f"Explorer number {number} crossed the wide river near Basel. " * 12 for number in range(30)
    )
    options = ProcessingOptions(chunking=ChunkingOptions(chunk_size=150, overlap=10))
    submitted = await world.submit(text, options=options)
    job = await world.ended(submitted.job, within_s=60)
    assert job.result is not None
    assert job.result["chunks"] >= 30
    assert (job.done, job.total) == (job.result["chunks"], job.result["chunks"])


class SometimesBroken(RuleExtractor):
    """Fails on chunks that contain a marker, like a rule with a fault."""

    async def extract(self, title: str, chunks: Sequence[Chunk]) -> list[Extraction]:
        if any("poison" in chunk.text for chunk in chunks):
            raise ZeroDivisionError("a fault in a rule")
        return await super().extract(title, chunks)


async def test_a_chunk_whose_extraction_fails_makes_the_document_partial(builder: Builder) -> None:
    world = await builder.open(extractor=SometimesBroken())
    text = "\n\n".join(
        f"## Part {n}\n\n" + f"Ada Lovelace wrote to Charles Babbage in London. {'poison ' if n == 1 else ''}" * 12
        for n in range(3)
    )
    submitted = await world.submit(text)
    job = await world.ended(submitted.job)
    assert job.state is JobState.PARTIAL
    document = await world.catalogue.documents.document(world.tenant, submitted.document.id)
    assert document.state is DocumentState.PARTIAL
    assert {failure.code for failure in document.failures} == {"extraction_failed"}
    assert 0 < len(document.failures) < document.chunk_count
    assert all(failure.chunk_id for failure in document.failures)
    assert await world.graph.find_entities(world.tenant, ["ada lovelace"])


class Unwell(BundledEmbedder):
    """Does not answer the first calls, or any call."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures = failures
        self.calls = 0

    async def embed(self, texts: Sequence[str]):  # type: ignore[no-untyped-def]
        self.calls += 1
        if self.calls <= self.failures:
            raise ModelUnavailable("the model is away")
        return await super().embed(texts)


async def test_a_model_that_is_away_for_a_moment_is_waited_for(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "FIRST_PAUSE_S", 0.01)
    unwell = Unwell(2)
    world = await builder.open(embedder=unwell)
    await ready(world, JOLIOT)
    assert unwell.calls >= 3
    await unwell.close()


async def test_a_model_that_stays_away_fails_the_job_which_can_be_tried_again(builder: Builder) -> None:
    unwell = Unwell(1)
    world = await builder.open(embedder=unwell, patience_s=0)
    submitted = await world.submit(JOLIOT)
    job = await world.ended(submitted.job)
    assert job.state is JobState.FAILED
    assert job.error == {"code": "model_unavailable", "message": "the model is away", "stage": "chunk"}
    document = await world.catalogue.documents.document(world.tenant, submitted.document.id)
    assert document.state is DocumentState.FAILED
    assert (await world.catalogue.documents.version(world.tenant, document.id, 1)).text == JOLIOT, "its text can be read"
    again = await world.catalogue.jobs.retry(world.tenant, job.id, world.queue.enqueuer(INGEST))
    assert (await world.ended(again)).state is JobState.SUCCEEDED
    await unwell.close()


class Slow(BundledEmbedder):
    """Holds every passage until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()
        self.waiting = asyncio.Event()

    async def embed(self, texts: Sequence[str]):  # type: ignore[no-untyped-def]
        self.waiting.set()
        await self.go.wait()
        return await super().embed(texts)


async def test_an_overtaken_version_ends_as_cancelled(builder: Builder) -> None:
    slow = Slow()
    world = await builder.open(embedder=slow)
    old = await world.submit(CURIE, key="one")
    await slow.waiting.wait()
    new = await world.submit(JOLIOT, key="one")
    slow.go.set()
    ended_old, ended_new = await world.ended(old.job), await world.ended(new.job)
    assert ended_new.state is JobState.SUCCEEDED
    assert ended_old.state is JobState.CANCELLED
    assert "replaced" in ended_old.message
    assert await world.graph.find_entities(world.tenant, ["polonium"]) == {}
    assert await world.vectors.count(world.tenant, Collection.CHUNKS) == 1
    await slow.close()


async def test_a_document_deleted_while_it_is_prepared_leaves_nothing(builder: Builder) -> None:
    slow = Slow()
    world = await builder.open(embedder=slow)
    submitted = await world.submit(CURIE)
    await slow.waiting.wait()
    deletion = await world.ingestion.delete(world.tenant, submitted.document.id)
    slow.go.set()
    assert (await world.ended(deletion)).state is JobState.SUCCEEDED
    assert (await world.ended(submitted.job)).state is JobState.CANCELLED
    assert await world.graph.counts(world.tenant) == GraphCounts(0, 0, 0)
    assert await world.vectors.count(world.tenant, Collection.CHUNKS) == 0
    assert world.originals() == []
    await slow.close()


async def test_an_interrupted_preparation_resumes_without_embedding_again(builder: Builder) -> None:
    text = "\n\n".join(f"## Part {n}\n\n" + f"Explorer number {n} crossed the wide river near Basel. " * 12 for n in range(12))

    class Dies(BundledEmbedder):
        calls = 0

        async def embed(self, texts: Sequence[str]):  # type: ignore[no-untyped-def]
            self.calls += 1
            if self.calls == 3:
                raise asyncio.CancelledError  # a shutdown cancels workflows in this way
            return await super().embed(texts)

    dies = Dies()
    world = await builder.open(embedder=dies, work=False)
    await world.queue.migrate()
    submitted = await world.submit(text)
    assert submitted.job is not None
    with pytest.raises(asyncio.CancelledError):
        await world.ingestion.ingest_v1(world.tenant, submitted.job.id, 1)
    staged = await world.catalogue.documents.prepared(world.tenant, submitted.document.id, 1)
    assert len(staged) == 8
    before = dies.stats.texts
    await world.ingestion.ingest_v1(world.tenant, submitted.job.id, 1)
    chunks = len(await world.catalogue.documents.prepared(world.tenant, submitted.document.id, 1))
    assert dies.stats.texts - before == chunks - 8
    for _ in range(2):  # a step that was running when the process ended runs again
        await world.ingestion.commit_v1(world.tenant, submitted.job.id, 1)
    document = await world.catalogue.documents.document(world.tenant, submitted.document.id)
    assert (document.state, document.chunk_count) == (DocumentState.READY, chunks)
    await dies.close()
