"""A rebuild requested while documents are in processing includes them, reports that it waits, and waits a limited time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.integration.pipeline.conftest import Gate

from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.job import Job, JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.ingestion.accept.uploads import Upload
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.stores.catalogue.base import Topic
from agentic_rag_backend.stores.graph.sqlite import SqliteGraphStore
from agentic_rag_backend.themes.communities.rebuilds import schedule

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
    gate = Gate(monkeypatch, SqliteGraphStore, "write_document")
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
    gate = Gate(monkeypatch, SqliteGraphStore, "write_document")
    monkeypatch.setattr(schedule, "STALLED_S", 0.3)
    tenant = await handed_in(container, 2)
    job = await container.communities.request_rebuild(tenant)
    ended = await seen(container, tenant, job, lambda held: held.state.ended)
    assert (ended.state, ended.result and ended.result["documents_left_out"]) == (JobState.SUCCEEDED, 2)
    gate.open.set()


async def test_a_rebuild_that_waits_for_documents_can_be_cancelled(container: Container, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch, SqliteGraphStore, "write_document")
    tenant = await handed_in(container, 1)
    job = await container.communities.request_rebuild(tenant)
    await seen(container, tenant, job, lambda held: held.stage == "wait")
    await container.jobs.cancel(tenant, job.id)
    assert (await seen(container, tenant, job, lambda held: held.state.ended)).state is JobState.CANCELLED
    gate.open.set()


class UnsettledName:
    """A recorded name that cannot be settled before the gate is open."""

    def __init__(self, container: Container) -> None:
        self.open, self.tried = asyncio.Event(), asyncio.Event()

        async def settle(*_: Any) -> None:
            self.tried.set()
            await self.open.wait()

        container.relay.register_handlers({Topic.NAMES: settle})


async def ready(container: Container, count: int) -> TenantId:
    tenant = await handed_in(container, count)
    async with asyncio.timeout(120):
        while await container.catalogue.jobs.pending_documents(tenant, queued_before=datetime.now(UTC)):
            await asyncio.sleep(0.02)
    return tenant


@pytest.mark.parametrize("index", ["communities", "raptor"])
async def test_a_rebuild_reads_settled_names(container: Container, monkeypatch: pytest.MonkeyPatch, index: str) -> None:
    tenant = await ready(container, 2)
    read = asyncio.Event()
    for reader in (container.communities._rebuilder, container.raptor._builder):
        run = reader.run

        async def record(*arguments: Any, run: Any = run) -> Any:
            read.set()
            return await run(*arguments)

        monkeypatch.setattr(reader, "run", record)
    name = UnsettledName(container)
    await container.catalogue.outbox.add(tenant, Topic.NAMES, "mara voss")
    request = container.communities.request_rebuild if index == "communities" else container.raptor.request_build
    job = await request(tenant)
    async with asyncio.timeout(60):
        await name.tried.wait()
    await asyncio.sleep(0.1)
    assert not read.is_set()
    name.open.set()
    ended = await seen(container, tenant, job, lambda held: held.state.ended)
    assert (ended.state, ended.result and ended.result["names_settled"]) == (JobState.SUCCEEDED, True)


async def test_names_that_stay_unsettled_delay_a_rebuild_only_for_a_while(
    container: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "SETTLED_WITHIN_S", 0.2)
    tenant = await ready(container, 2)
    name = UnsettledName(container)
    await container.catalogue.outbox.add(tenant, Topic.NAMES, "mara voss")
    job = await container.communities.request_rebuild(tenant)
    ended = await seen(container, tenant, job, lambda held: held.state.ended)
    assert (ended.state, ended.result and ended.result["names_settled"]) == (JobState.SUCCEEDED, False)
    name.open.set()
