"""Expensive results are computed once, also for new versions, other chunking, retries and cancelled jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from tests.integration.ingestion.conftest import Builder, World

from agentic_rag_backend.domain.document import Chunk, ChunkingOptions, DocumentState, ProcessingOptions
from agentic_rag_backend.domain.graph import Extraction
from agentic_rag_backend.domain.job import Job, JobState
from agentic_rag_backend.errors import ModelInputRefused, ModelRefused
from agentic_rag_backend.ingestion.prepare import chunk_reading
from agentic_rag_backend.ingestion.service import INGEST
from agentic_rag_backend.knowledge.extraction.rules import RuleExtractor
from agentic_rag_backend.models.embedding.bundled import BundledEmbedder
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, VectorSearch

PLACES = ("Scarrow", "Greenholm", "Teller Sound", "Outer Mirrow", "Basel", "Warsaw", "Paris", "Halden", "Oslo", "Bergen")
OPTIONS = ProcessingOptions(chunking=ChunkingOptions(chunk_size=60, overlap=0))
FILLER = "The tides were measured twice a day, in every season, and noted in a book that nobody but the keeper ever read."


def report(*, besides: dict[int, str] | None = None) -> str:
    """Return a document of ten chunks. Some of them have a different text."""
    said = {n: f"Mara Voss founded the Tidal Institute in {place}." for n, place in enumerate(PLACES)}
    return "\n\n".join(f"## Part {n}\n\n{text} {FILLER}" for n, text in {**said, **(besides or {})}.items())


class Metered:
    """Counts paid calls, and refuses or fails for configured texts."""

    def __init__(self) -> None:
        self.embedded: list[str] = []
        self.poison: str | None = None
        self.refusal: type[ModelRefused] = ModelInputRefused
        self.embedder = _Embedder(self)
        self.extractor = _Extractor(self)

    def paid(self) -> int:
        """Return the number of texts embedded since the last call.

        The rules cost nothing. They read unchanged chunks again, because the types of names depend on the whole document.
        """
        count = len([text for text in self.embedded if text != "text"])
        self.embedded.clear()
        return count


class _Embedder(BundledEmbedder):
    def __init__(self, meter: Metered) -> None:
        super().__init__()
        self.meter = meter
        self.gate: asyncio.Event | None = None
        self.gate_after = 4
        self.waiting = asyncio.Event()

    async def embed(self, texts: Sequence[str]):  # type: ignore[no-untyped-def]
        if self.gate is not None and len(self.meter.embedded) >= self.gate_after:
            self.waiting.set()
            await self.gate.wait()
        if self.meter.poison and any(self.meter.poison in text for text in texts):
            raise self.meter.refusal("the embedder answered HTTP 400")
        found = await super().embed(texts)
        self.meter.embedded += texts
        return found


class _Extractor(RuleExtractor):
    def __init__(self, meter: Metered) -> None:
        super().__init__()
        self.meter = meter

    async def extract(self, title: str, chunks: Sequence[Chunk]) -> list[Extraction]:
        if any("riddle" in chunk.text for chunk in chunks):
            raise ZeroDivisionError("a fault in a rule")
        return await super().extract(title, chunks)


@pytest.fixture
def meter() -> Metered:
    return Metered()


@pytest.fixture
async def metered(builder: Builder, meter: Metered) -> World:
    return await builder.open(embedder=meter.embedder, extractor=meter.extractor, patience_s=0)


async def submitted(world: World, text: str, **fields: object) -> Job:
    fields = {"title": "Tides", "key": "report", "options": OPTIONS, **fields}
    return await world.ended((await world.submit(text, **fields)).job)


async def shown(world: World, job: Job) -> list[Chunk]:
    assert job.document_id is not None
    return [item.chunk for item in (await world.catalogue.documents.chunks(world.tenant, job.document_id, limit=100)).items]


async def retried(world: World, job: Job) -> Job:
    return await world.ended(await world.catalogue.jobs.retry(world.tenant, job.id, world.queue.enqueuer(INGEST)))


async def test_an_update_pays_for_what_changed_only(metered: World, meter: Metered) -> None:
    first = await submitted(metered, report())
    assert first.result is not None
    assert (first.result["chunks"], first.result["reused"]) == (10, 0)
    assert meter.paid() == 10
    before = await shown(metered, first)
    vectors = await metered.vectors.vectors(metered.tenant, Collection.CHUNKS, [chunk.id for chunk in before])
    edited = report(besides={3: "Ines Carrow left the Tidal Institute in 2031."})
    second = await submitted(metered, edited)
    assert second.result is not None
    assert (second.result["chunks"], second.result["reused"]) == (10, 9)
    assert (second.done, second.total) == (10, 10)
    assert meter.paid() == 1
    after = await shown(metered, second)
    kept = {chunk.id for chunk in before} & {chunk.id for chunk in after}
    assert len(kept) == 9
    again = await metered.vectors.vectors(metered.tenant, Collection.CHUNKS, sorted(kept))
    assert all((again[id] == vectors[id]).all() for id in kept)
    dense = await metered.embedder.embed_query("Who left the institute?")
    search = VectorSearch(kind=NodeKind.CHUNK, dense=dense, text="Carrow")
    assert (await metered.vectors.search(metered.tenant, Collection.CHUNKS, [search]))[0].sparse
    assert await metered.graph.find_entities(metered.tenant, ["ines carrow"])
    # A new first paragraph moves every chunk and changes none.
    third = await submitted(metered, f"## Preface\n\nLise Meitner wrote a preface. {FILLER}\n\n{edited}")
    assert third.result is not None
    assert (third.result["chunks"], third.result["reused"]) == (11, 10)
    assert meter.paid() == 1


async def test_versions_on_their_way_at_once_compute_a_chunk_once(metered: World, meter: Metered) -> None:
    assert (await submitted(metered, "A first version.")).state is JobState.SUCCEEDED
    meter.paid()
    meter.embedder.gate, meter.embedder.gate_after = asyncio.Event(), 0
    await metered.submit(report(), title="Tides", key="report", options=OPTIONS)
    await meter.embedder.waiting.wait()
    edited = report(besides={3: "Ines Carrow left the Tidal Institute in 2031."})
    job = (await metered.submit(edited, title="Tides", key="report", options=OPTIONS)).job
    assert job is not None
    while not (await metered.catalogue.documents.version(metered.tenant, str(job.document_id), 3)).text:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)  # enough time for the expected fault
    meter.embedder.gate.set()
    assert (await metered.ended(job)).state is JobState.SUCCEEDED
    assert len(meter.embedded) == len(set(meter.embedded)) >= 10


async def test_another_title_is_another_passage(metered: World, meter: Metered) -> None:
    await submitted(metered, report())
    meter.paid()
    again = await submitted(metered, report(besides={0: "Something else."}), title="Floods")
    assert again.result is not None
    assert again.result["reused"] == 0
    assert meter.paid() == 10


async def test_another_chunking_keeps_the_chunks_that_stay(metered: World, meter: Metered) -> None:
    first = await submitted(metered, report())
    meter.paid()
    assert first.document_id is not None
    cut = await metered.ingestion.chunk_again(metered.tenant, first.document_id, ChunkingOptions(chunk_size=64, overlap=0))
    second = await metered.ended(cut.job)
    assert second.result is not None
    assert second.result["chunks"] - second.result["reused"] == meter.paid()
    assert second.result["reused"] > 0


async def test_a_cancelled_job_is_not_paid_again(metered: World, meter: Metered) -> None:
    meter.embedder.gate = asyncio.Event()
    job = (await metered.submit(report(), key="report", title="Tides", options=OPTIONS)).job
    assert job is not None
    await meter.embedder.waiting.wait()
    await metered.catalogue.jobs.request_cancel(metered.tenant, job.id)
    assert (await metered.ended(job)).state is JobState.CANCELLED
    assert meter.paid() == 4, "one group was finished"
    meter.embedder.gate = None
    # Another version reuses the results of the cancelled one.
    second = await submitted(metered, report(besides={9: "Something else."}))
    assert second.state is JobState.SUCCEEDED
    assert meter.paid() == 6
    assert second.result is not None
    assert second.result["reused"] == 4


async def test_a_retried_job_continues_after_its_cancellation(metered: World, meter: Metered) -> None:
    meter.embedder.gate = asyncio.Event()
    job = (await metered.submit(report(), key="report", title="Tides", options=OPTIONS)).job
    assert job is not None
    await meter.embedder.waiting.wait()
    await metered.catalogue.jobs.request_cancel(metered.tenant, job.id)
    meter.paid()
    cancelled = await metered.ended(job)
    meter.embedder.gate = None
    again = await retried(metered, cancelled)
    assert again.state is JobState.SUCCEEDED
    assert meter.paid() == 6


@pytest.mark.parametrize("word", ["poison", "riddle"])
async def test_only_what_failed_is_tried_again(metered: World, meter: Metered, word: str) -> None:
    """A chunk that the embedder refuses, or whose extraction fails. Readers see the old version until the new one is ready."""
    meter.poison = "poison"
    bad = report(besides={5: f"Ada Lovelace wrote about a {word} in London."})
    job = await submitted(metered, bad)
    assert job.state is JobState.PARTIAL
    assert job.document_id is not None
    document = await metered.catalogue.documents.document(metered.tenant, job.document_id)
    assert (document.state, document.chunk_count) == (DocumentState.PARTIAL, 10)
    (failure,) = document.failures
    stage, code = ("embed", "model_input_refused") if word == "poison" else ("extract", "extraction_failed")
    assert (failure.stage, failure.code) == (stage, code)
    before = await shown(metered, job)
    assert failure.chunk_id == next(chunk.id for chunk in before if word in chunk.text)
    search = VectorSearch(kind=NodeKind.CHUNK, text=word)
    hits = (await metered.vectors.search(metered.tenant, Collection.CHUNKS, [search]))[0].sparse
    assert [hit.id for hit in hits] == [failure.chunk_id], "it is found by its words"
    meter.paid()

    still = await retried(metered, job)
    assert still.state is JobState.PARTIAL, "nothing has changed yet"
    assert meter.paid() <= 1
    meter.poison = None
    meter.extractor.__class__ = RuleExtractor  # type: ignore[assignment]
    good = await retried(metered, still)
    assert (good.id, good.state) == (job.id, JobState.SUCCEEDED)
    assert good.result is not None
    assert (good.result["chunks"], good.result["reused"], good.result["failures"]) == (10, 9, 0)
    assert meter.paid() <= 1
    document = await metered.catalogue.documents.document(metered.tenant, job.document_id)
    assert (document.state, document.failures, document.current_version) == (DocumentState.READY, (), 3)
    assert [chunk.id for chunk in await shown(metered, good)] == [chunk.id for chunk in before]
    assert await metered.graph.find_entities(metered.tenant, ["ada lovelace"])


@pytest.mark.parametrize("refusal", [ModelInputRefused, ModelRefused])
async def test_an_embedder_that_refuses_everything_fails_the_document(
    metered: World, meter: Metered, refusal: type[ModelRefused]
) -> None:
    meter.poison, meter.refusal = "t", refusal
    job = await submitted(metered, report())
    assert job.state is JobState.FAILED
    assert job.error is not None
    assert job.error["code"] == refusal.code
    assert job.document_id is not None
    document = await metered.catalogue.documents.document(metered.tenant, job.document_id)
    assert [(failure.code, failure.chunk_id) for failure in document.failures] == [(refusal.code, None)]
    meter.poison = None
    assert (await retried(metered, job)).state is JobState.SUCCEEDED


async def test_a_deletion_leaves_no_result(metered: World, meter: Metered) -> None:
    first = await submitted(metered, report())
    meter.poison = "poison"
    meter.refusal = ModelRefused
    failed = await submitted(metered, report(besides={9: "poison"}))
    assert failed.state is JobState.FAILED
    assert first.document_id is not None
    held = await metered.catalogue.documents.remains(metered.tenant, first.document_id)
    assert held["prepared_chunks"] > 10
    job = await metered.ended(await metered.ingestion.delete(metered.tenant, first.document_id))
    assert job.result is not None
    assert job.result["removed"]["rows"]["prepared_chunks"] == held["prepared_chunks"]
    assert job.result["leftovers"]["prepared_chunks"] == 0
    assert not any((await metered.catalogue.documents.remains(metered.tenant, first.document_id)).values())


async def test_another_strategy_keeps_the_chunks_that_stay(metered: World, meter: Metered) -> None:
    # `recursive` with this size makes a chunk of each section, and so does `structure`.
    first = await submitted(metered, report())
    meter.paid()
    assert first.document_id is not None
    cut = await metered.ingestion.chunk_again(metered.tenant, first.document_id, ChunkingOptions("structure", 60, 0))
    second = await metered.ended(cut.job)
    assert second.result is not None
    assert (second.result["chunks"], second.result["reused"]) == (10, 10)
    assert meter.paid() == 0

    by_meaning = await metered.ingestion.chunk_again(metered.tenant, first.document_id, ChunkingOptions("semantic", 60, 0))
    third = await metered.ended(by_meaning.job)
    assert third.state is JobState.SUCCEEDED, third.error
    text = report()
    for chunk in (await metered.catalogue.documents.chunks(metered.tenant, first.document_id, limit=100)).items:
        place = chunk.chunk.location
        assert text[place.start_char : place.end_char] == chunk.chunk.text


async def test_a_document_that_another_strategy_cut_is_partial_and_says_so(
    metered: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_reading, "MAX_UNITS", 5)
    options = ProcessingOptions(chunking=ChunkingOptions("semantic", 60, 0))
    job = (await metered.submit(report(), key="long", title="Tides", options=options)).job
    assert job is not None
    assert job.document_id is not None
    assert (await metered.ended(job)).state is JobState.PARTIAL
    document = await metered.catalogue.documents.document(metered.tenant, job.document_id)
    assert (document.state, document.chunk_count) == (DocumentState.PARTIAL, 10)
    (failure,) = document.failures
    assert (failure.stage, failure.code, failure.chunk_id) == ("chunk", "too_long", None)
    assert "the document was cut by 'recursive' instead" in failure.message
