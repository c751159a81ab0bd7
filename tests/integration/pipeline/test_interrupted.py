"""Jobs whose process ended while they ran become queued again, in every process that reads them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.job import Job, JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.ingestion.accept.uploads import Upload
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.stores.graph.sqlite import SqliteGraphStore


def settings(folder: Path) -> Settings:
    return Settings(
        data_dir=folder,
        _env_file=None,  # type: ignore[call-arg]
        community_auto_rebuild=False,
        job_polling_interval_s=0.02,
        worker_drain_s=0.05,
    )


async def job_in_the_middle(container: Container, monkeypatch: pytest.MonkeyPatch) -> tuple[TenantId, Job]:
    """Submit a document, and return its job while its commit is held."""
    reached = asyncio.Event()

    async def hangs(*_arguments: Any, **_options: Any) -> None:
        reached.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(SqliteGraphStore, "write_document", hangs)
    tenant = (await container.tenants.create("acme")).id
    submitted = await container.ingestion.submit(tenant, Upload(content=b"# Lamp\n\nThe lamp of Sarn burns.", file_name="a.md"))
    assert submitted.job is not None
    await asyncio.wait_for(reached.wait(), 60)
    job = await container.catalogue.jobs.job(tenant, submitted.job.id)
    assert job.state is JobState.RUNNING
    return tenant, job


async def ended(container: Container, tenant: TenantId, job: Job) -> Job:
    async with asyncio.timeout(60):
        while not (held := await container.catalogue.jobs.job(tenant, job.id)).state.ended:
            await asyncio.sleep(0.02)
    return held


async def test_a_job_that_a_shutdown_stopped_is_queued_and_goes_on_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        async with open_container(settings(tmp_path)) as container:
            tenant, job = await job_in_the_middle(container, patched)
            jobs = container.catalogue.jobs
            states: list[JobState] = []

            async def noted(*arguments: Any, **options: Any) -> None:
                await type(jobs).hand_back(jobs, *arguments, **options)
                states.append((await jobs.job(tenant, job.id)).state)

            patched.setattr(container.queue, "_on_returned", noted)
    assert states == [JobState.QUEUED], "at the end of the process that ran it"
    async with open_container(settings(tmp_path), work=False) as container:
        held = await container.catalogue.jobs.job(tenant, job.id)
        assert (held.state, held.attempt) == (JobState.QUEUED, job.attempt)
        assert held.message.startswith("interrupted")
    async with open_container(settings(tmp_path)) as container:
        assert (await ended(container, tenant, job)).state is JobState.SUCCEEDED


async def test_a_job_whose_process_was_killed_is_not_shown_as_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        async with open_container(settings(tmp_path)) as container:
            tenant, job = await job_in_the_middle(container, patched)
            patched.setattr(container.queue, "_on_returned", None)  # as if nothing had been done at the end
    async with open_container(settings(tmp_path), work=False) as container:
        held = await container.catalogue.jobs.job(tenant, job.id)
        assert (held.state, held.message[:11]) == (JobState.QUEUED, "interrupted")
    async with open_container(settings(tmp_path)) as container:
        assert (await ended(container, tenant, job)).state is JobState.SUCCEEDED
