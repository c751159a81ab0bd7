"""A rebuild requested while documents are in processing includes them, reports that it waits, and waits a limited time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agentic_rag_backend.communities.rebuilds import waiting
from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.job import Job, JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.ingestion.uploads import Upload
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.stores.graph.sqlite import SqliteGraphStore

TEXT = "# Report {number}\n\nMara Voss founded the Tidal Institute in Scarrow with Tomas Eld in 2019. Ines Carrow joined it."


@pytest.fixture(params=[1, 4], ids=["one place", "four places"])
async def container(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Container]:
    settings = Settings(
        data_dir=tmp_path,
        _env_file=None,  # type: ignore[call-arg]
        community_auto_rebuild=False,
        job_polling_interval_s=0.02,
        prepare_concurrency=request.param,
        worker_drain_s=0.05,
    )
    async with open_container(settings) as opened:
        yield opened


class Gate:
    """Holds every document before it is written to the graph."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open = asyncio.Event()
        original, gate = SqliteGraphStore.write_document, self.open

        async def held(*arguments: Any, **options: Any) -> Any:
            await gate.wait()
            return await original(*arguments, **options)

        monkeypatch.setattr(SqliteGraphStore, "write_document", held)


async def handed_in(container: Container, count: int) -> TenantId:
    tenant = (await container.tenants.create("acme")).id
    for number in range(count):
        content = TEXT.format(number=number).encode()
        await container.ingestion.submit(tenant, Upload(content=content, file_name=f"{number}.md", key=str(number)))
    return tenant


async def seen(container: Container, tenant: TenantId, job: Job, what: Any) -> Job:
    async with asyncio.timeout(120):
        while not what(held := await container.catalogue.jobs.job(tenant, job.id)):
            await asyncio.sleep(0.02)
    return held


async def test_a_rebuild_waits_for_documents_that_are_queued(container: Container, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    tenant = await handed_in(container, 3)
    job = await container.communities.request_rebuild(tenant)
    waits = await seen(container, tenant, job, lambda held: held.stage == "wait")
    assert (waits.state, waits.done, waits.total) == (JobState.RUNNING, 0, 3)
    assert waits.message == "waiting for 3 documents that were handed in before"
    gate.open.set()
    ended = await seen(container, tenant, job, lambda held: held.state.ended)
    assert (ended.state, ended.result and ended.result["documents_left_out"]) == (JobState.SUCCEEDED, 0)
    assert ended.result is not None
    assert ended.result["communities"] > 0


async def test_what_does_not_move_is_left_out_and_counted(container: Container, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    monkeypatch.setattr(waiting, "STALLED_S", 0.3)
    tenant = await handed_in(container, 2)
    job = await container.communities.request_rebuild(tenant)
    ended = await seen(container, tenant, job, lambda held: held.state.ended)
    assert (ended.state, ended.result and ended.result["documents_left_out"]) == (JobState.SUCCEEDED, 2)
    gate.open.set()


async def test_a_rebuild_that_waits_for_documents_can_be_cancelled(container: Container, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    tenant = await handed_in(container, 1)
    job = await container.communities.request_rebuild(tenant)
    await seen(container, tenant, job, lambda held: held.stage == "wait")
    await container.jobs.cancel(tenant, job.id)
    assert (await seen(container, tenant, job, lambda held: held.state.ended)).state is JobState.CANCELLED
    gate.open.set()
