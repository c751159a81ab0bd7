"""An automatic rebuild waits for queued documents for a limited time, and a manual rebuild makes it unnecessary."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.integration.pipeline.conftest import Gate

from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.job import Job, JobKind, JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.ingestion.accept.uploads import Upload
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.stores.graph.sqlite import SqliteGraphStore
from agentic_rag_backend.themes.communities.rebuilds import schedule
from agentic_rag_backend.themes.communities.rebuilds.rebuild_options import RebuildOptions
from agentic_rag_backend.themes.raptor.build_options import BuildOptions

TEXT = "# Report {number}\n\nMara Voss founded the Tidal Institute in Scarrow with Tomas Eld in 2019. Ines Carrow joined it."
QUIET_S = 0.4
KINDS = (JobKind.REBUILD, JobKind.RAPTOR)

Opened = Callable[..., AbstractAsyncContextManager[Container]]


class Polls:
    """Counts the polls of the schedules."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        original = schedule.ThemeSchedule.request_due

        async def counted(*arguments: Any) -> int:
            found = await original(*arguments)
            self.count += 1
            return found

        monkeypatch.setattr(schedule.ThemeSchedule, "request_due", counted)
        monkeypatch.setattr(schedule, "_SHORTEST_PAUSE_S", 0.02)

    async def several(self) -> None:
        """Wait until every schedule has polled for longer than the quiet time."""
        await asyncio.sleep(2 * QUIET_S)
        enough = self.count + 8
        async with asyncio.timeout(60):
            while self.count < enough:
                await asyncio.sleep(0.02)


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    @asynccontextmanager
    async def open_with(**settings: Any) -> AsyncIterator[Container]:
        given = {"community_rebuild_delay_s": QUIET_S, "raptor_update_delay_s": QUIET_S, "raptor_auto_update": True, **settings}
        configured = Settings(
            data_dir=tmp_path,
            _env_file=None,  # type: ignore[call-arg]
            job_polling_interval_s=0.02,
            worker_drain_s=0.05,
            community_rebuild_threshold=0,
            **given,
        )
        async with open_container(configured) as container:
            yield container

    return open_with


async def hand_in(container: Container, tenant: TenantId, *names: str) -> list[Job]:
    jobs = []
    for name in names:
        upload = Upload(content=TEXT.format(number=name).encode(), file_name=f"{name}.md", key=name)
        submitted = await container.ingestion.submit(tenant, upload)
        assert submitted.job is not None
        jobs.append(submitted.job)
    return jobs


async def ended(container: Container, tenant: TenantId, *jobs: Job) -> None:
    async with asyncio.timeout(60):
        for job in jobs:
            while not (held := await container.catalogue.jobs.job(tenant, job.id)).state.ended:
                await asyncio.sleep(0.02)
            assert held.state is JobState.SUCCEEDED


async def builds(container: Container, tenant: TenantId, *kinds: JobKind) -> list[Job]:
    return [job for kind in kinds or KINDS for job in (await container.catalogue.jobs.jobs(tenant, kind=kind, limit=50)).items]


async def with_tree(container: Container, tenant: TenantId) -> None:
    """Ingest two documents and build communities and a tree of them."""
    await ended(container, tenant, *await hand_in(container, tenant, "one", "two"))
    await ended(container, tenant, await container.communities.request_rebuild(tenant))
    await ended(container, tenant, await container.raptor.request_build(tenant, BuildOptions()))


async def test_an_upload_is_finished_before_its_rebuild(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, polls = (
        Gate(monkeypatch, SqliteGraphStore, "write_document", lambda arguments: "held" in arguments[2].title),
        Polls(monkeypatch),
    )
    async with opened() as container:
        tenant = (await container.tenants.create("acme")).id
        await with_tree(container, tenant)
        before = len(await builds(container, tenant))
        await ended(container, tenant, *await hand_in(container, tenant, "three"))
        held = await hand_in(container, tenant, "held", "held too")
        await polls.several()
        assert len(await builds(container, tenant)) == before, "two documents are still in processing"
        gate.open.set()
        await ended(container, tenant, *held)
        await polls.several()
        later = await builds(container, tenant)
        await ended(container, tenant, *later)
        assert len(later) == before + 2, "one rebuild and one update, of all three"


async def test_a_rebuild_waits_for_uploads_for_a_limited_time(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, polls = (
        Gate(monkeypatch, SqliteGraphStore, "write_document", lambda arguments: "held" in arguments[2].title),
        Polls(monkeypatch),
    )
    async with opened(rebuild_max_wait_s=3 * QUIET_S) as container:
        tenant = (await container.tenants.create("acme")).id
        await with_tree(container, tenant)
        before = len(await builds(container, tenant))
        await ended(container, tenant, *await hand_in(container, tenant, "three"))
        await hand_in(container, tenant, "held")
        await polls.several()
        await polls.several()
        assert len(await builds(container, tenant)) == before + 2
        gate.open.set()


@pytest.mark.parametrize("mode", ["full", "incremental"])
async def test_no_rebuild_follows_a_manual_one(opened: Opened, monkeypatch: pytest.MonkeyPatch, mode: Any) -> None:
    polls = Polls(monkeypatch)
    async with opened() as container:
        tenant = (await container.tenants.create("acme")).id
        await with_tree(container, tenant)
        before = len(await builds(container, tenant, JobKind.REBUILD))
        await ended(container, tenant, *await hand_in(container, tenant, "three"))
        await ended(container, tenant, await container.communities.request_rebuild(tenant, RebuildOptions(mode=mode)))
        await polls.several()
        await polls.several()
        assert len(await builds(container, tenant, JobKind.REBUILD)) == before + 1
