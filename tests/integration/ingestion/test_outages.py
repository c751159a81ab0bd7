"""Models that refuse, fail or do not answer, over real HTTP: waiting, costs, and cancelled calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from typing import TypeVar

import pytest
from tests.integration.ingestion.conftest import Builder, World

from agentic_rag_backend.breaker import Breaker
from agentic_rag_backend.domain.document import ChunkingOptions, ProcessingOptions
from agentic_rag_backend.domain.job import Job, JobState
from agentic_rag_backend.jobs import base
from agentic_rag_backend.knowledge.absence import Absence
from agentic_rag_backend.knowledge.model_calls import DocumentModel
from agentic_rag_backend.models import endpoint
from agentic_rag_backend.models.embedding.openai_embedder import OpenAIEmbedder
from agentic_rag_backend.models.llm.openai import OpenAIModel
from agentic_rag_testing.models.server import ModelServer

T = TypeVar("T")
SENTENCE = "The tides near {place} were measured twice a day in every season, and noted in a book by the keeper of the light."
TEXT = "\n\n".join(SENTENCE.format(place=f"harbour number {n}") for n in range(12))
OPTIONS = ProcessingOptions(chunking=ChunkingOptions(chunk_size=40, overlap=0))
CHUNKS = 12


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture
async def connected(builder: Builder) -> AsyncIterator[Callable[..., Awaitable[World]]]:
    embedders: list[OpenAIEmbedder] = []

    async def connect(server: ModelServer, model: str, *, timeout_s: float = 60, patience_s: float = 3600) -> World:
        embedders.append(
            OpenAIEmbedder(
                api_key="any", base_url=server.base_url, model=model, dimensions=64, timeout_s=timeout_s, max_concurrency=8
            )
        )
        return await builder.open(embedder=embedders[-1], patience_s=patience_s)

    yield connect
    for embedder in embedders:
        await embedder.close()


async def until(ask: Callable[[], Awaitable[T]], holds: Callable[[T], bool]) -> T:
    async with asyncio.timeout(90):
        while not holds(answer := await ask()):
            await asyncio.sleep(0.02)
    return answer


async def submitted(world: World) -> Job:
    job = (await world.submit(TEXT, key="tides", options=OPTIONS)).job
    assert job is not None
    return job


@pytest.mark.parametrize("model", ["status-500x9", "rate-limited-1sx1", "dropx9", "broken-jsonx2"])
async def test_faults_that_pass_are_waited_for(
    server: ModelServer, connected: Callable[..., Awaitable[World]], monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    monkeypatch.setattr(base, "FIRST_PAUSE_S", 0.02)
    world = await connected(server, model, timeout_s=3)
    job = await world.ended(await submitted(world), within_s=90)
    assert job.state is JobState.SUCCEEDED, job
    assert job.message == "", "it waits for nothing any more"
    assert job.result is not None
    assert job.result["chunks"] == CHUNKS


async def test_a_server_that_goes_and_comes_back_costs_nothing_twice(connected: Callable[..., Awaitable[World]]) -> None:
    with ModelServer() as first:
        port = first.port
        world = await connected(first, "latency-2s", timeout_s=5)
        documents, jobs = world.catalogue.documents, world.catalogue.jobs
        job = await submitted(world)
        await until(lambda: documents.prepared(world.tenant, str(job.document_id), 1), lambda held: len(held) >= 4)
    told = await until(lambda: jobs.job(world.tenant, job.id), lambda held: held.message.startswith("waiting until "))
    assert told.state is JobState.RUNNING
    assert "embedder" in told.message
    held = len(await documents.prepared(world.tenant, str(job.document_id), 1))
    assert 4 <= held < CHUNKS, "some of it was finished"
    with ModelServer(port=port) as second:
        ended = await world.ended(job, within_s=90)
        assert ended.state is JobState.SUCCEEDED
        assert second.stats().embedded_texts == CHUNKS - held, "finished groups are not paid twice"


async def test_a_refused_key_is_not_waited_for(server: ModelServer, connected: Callable[..., Awaitable[World]]) -> None:
    world = await connected(server, "status-401")
    job = await world.ended(await submitted(world))
    assert job.state is JobState.FAILED
    assert job.error is not None
    assert (job.error["code"], server.stats().total.calls) == ("model_refused", 1)


async def test_cancelling_closes_the_calls_under_way(server: ModelServer, connected: Callable[..., Awaitable[World]]) -> None:
    """Each call would last a minute."""
    world = await connected(server, "latency-60s", timeout_s=120)
    job = await submitted(world)

    async def stats() -> tuple[int, int, int]:
        now = server.stats()
        return now.total.calls, now.in_flight, now.cancelled

    calls, _, _ = await until(stats, lambda now: now[1] > 0)
    before = asyncio.get_running_loop().time()
    await world.catalogue.jobs.request_cancel(world.tenant, job.id)
    ended = await world.ended(job)
    assert ended.state is JobState.CANCELLED
    assert ended.error is not None
    assert ended.error["code"] == "cancelled"
    await until(stats, lambda now: now[1:] == (0, calls))
    assert asyncio.get_running_loop().time() - before < 50, "they were cut, not waited for"
    assert server.stats().total.calls == calls, "no other began"


async def test_cancelling_is_heard_while_a_job_waits(server: ModelServer, connected: Callable[..., Awaitable[World]]) -> None:
    world = await connected(server, "rate-limited-60s", timeout_s=2)
    job = await submitted(world)
    told = await until(lambda: world.catalogue.jobs.job(world.tenant, job.id), lambda held: bool(held.message))
    assert "it asks to wait 60 s" in told.message
    calls = server.stats().total.calls
    before = asyncio.get_running_loop().time()
    await world.catalogue.jobs.request_cancel(world.tenant, job.id)
    assert (await world.ended(job)).state is JobState.CANCELLED
    assert asyncio.get_running_loop().time() - before < 50
    assert server.stats().total.calls == calls


@pytest.fixture
async def reading(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[..., Awaitable[World]]]:
    """Open worlds whose documents a model reads. Pauses are short."""
    monkeypatch.setattr(base, "FIRST_PAUSE_S", 0.02)
    monkeypatch.setattr(base, "LONGEST_PAUSE_S", 0.1)
    monkeypatch.setattr(endpoint, "Breaker", partial(Breaker, pause_s=0.05))
    models: list[OpenAIModel] = []

    async def open_world(server: ModelServer, model: str, *, patience_s: float = 3600) -> World:
        models.append(OpenAIModel(api_key="any", base_url=server.base_url, model=model, timeout_s=30, max_concurrency=4))
        return await builder.open(model=DocumentModel(models[-1], absence=Absence(patience_s)))

    yield open_world
    for model in models:
        await model.close()


async def test_extraction_waits_for_a_model_that_comes_back(
    server: ModelServer, reading: Callable[..., Awaitable[World]]
) -> None:
    world = await reading(server, "status-503x12+reader")
    job = (await world.submit(TEXT, key="tides", options=OPTIONS, extraction="llm")).job
    assert job is not None
    told = await until(lambda: world.catalogue.jobs.job(world.tenant, job.id), lambda held: bool(held.message))
    assert "model 'status-503x12+reader'" in told.message
    assert told.message.startswith("waiting until ")
    ended = await world.ended(job, within_s=90)
    assert ended.state is JobState.SUCCEEDED, "the model read every chunk"
    assert ended.result is not None
    assert server.stats().total.calls == 12 + CHUNKS


async def test_extraction_does_without_a_model_that_stays_away_and_says_how_to_ask_it_again(
    server: ModelServer, reading: Callable[..., Awaitable[World]]
) -> None:
    world = await reading(server, "status-503x12+reader", patience_s=0)
    job = await world.ended((await world.submit(TEXT, key="tides", options=OPTIONS, extraction="llm")).job)
    assert job.state is JobState.PARTIAL
    document = await world.catalogue.documents.document(world.tenant, str(job.document_id))
    assert {failure.code for failure in document.failures} == {"model_unavailable"}
    assert "retry the job to ask the model again" in document.failures[0].message
