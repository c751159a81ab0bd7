"""The embedded application below the API, as a process opens it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.document import ChunkingOptions, ProcessingOptions
from agentic_rag_backend.domain.job import Job
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.ingestion.accept.uploads import Upload
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.stores.catalogue.base import Submitted
from agentic_rag_backend.stores.graph.base import GraphCounts
from agentic_rag_backend.stores.vector.base import Collection

Opens = Callable[..., AbstractAsyncContextManager["Application"]]
"""Takes settings that override the defaults."""


@dataclass
class Application:
    """A container, a tenant, and shortcuts for tests."""

    container: Container
    tenant: TenantId

    async def submit(self, text: str, *, key: str, tenant: TenantId | None = None, **fields: Any) -> Submitted:
        options = ProcessingOptions(chunking=ChunkingOptions(chunk_size=48, overlap=0))
        upload = Upload(content=text.encode(), file_name=f"{key}.md", key=key, options=options, **fields)
        return await self.container.ingestion.submit(tenant or self.tenant, upload)

    async def job(self, job: Job | None, *, tenant: TenantId | None = None) -> Job:
        assert job is not None
        return await self.container.catalogue.jobs.job(tenant or self.tenant, job.id)

    async def ended(self, job: Job | None, *, tenant: TenantId | None = None) -> Job:
        """Wait until the job has ended and return it."""
        held = await self.until(lambda: self.job(job, tenant=tenant), lambda held: held.state.ended)
        assert isinstance(held, Job)
        return held

    async def until(self, ask: Callable[[], Awaitable[Any]], holds: Callable[[Any], bool]) -> Any:
        async with asyncio.timeout(60):
            while not holds(answer := await ask()):
                await asyncio.sleep(0.01)
        return answer

    async def held(self) -> tuple[GraphCounts, int, int]:
        """Return the tenant's data in graph and vectors."""
        vectors = self.container.vectors
        return (
            await self.container.graph.counts(self.tenant),
            await vectors.count(self.tenant, Collection.CHUNKS),
            await vectors.count(self.tenant, Collection.NODES),
        )


class Gate:
    """Holds the calls of a method, or those with certain arguments, until it is opened."""

    def __init__(
        self, patch: pytest.MonkeyPatch, owner: type, method: str, holds: Callable[[tuple[Any, ...]], bool] = lambda _: True
    ) -> None:
        self.reached, self.open = asyncio.Event(), asyncio.Event()
        original: Callable[..., Any] = getattr(owner, method)

        async def held(*arguments: Any, **options: Any) -> Any:
            if holds(arguments):
                self.reached.set()
                await self.open.wait()
            return await original(*arguments, **options)

        patch.setattr(owner, method, held)


@pytest.fixture
def opens(tmp_path: Path) -> Opens:
    """Return a function that opens the application on one folder repeatedly."""

    @asynccontextmanager
    async def opened(**other: Any) -> AsyncIterator[Application]:
        usual: dict[str, Any] = {"community_auto_rebuild": False, "job_polling_interval_s": 0.02}
        settings = Settings(data_dir=tmp_path / "data", _env_file=None, **{**usual, **other})
        async with open_container(settings) as container:
            known = await container.catalogue.tenants.tenant_by_name("acme")
            tenant = known or await container.catalogue.tenants.create("acme")
            yield Application(container, tenant.id)

    return opened


@pytest.fixture
async def application(opens: Opens) -> AsyncIterator[Application]:
    async with opens() as opened:
        yield opened


@pytest.fixture
async def impatient(opens: Opens) -> AsyncIterator[Application]:
    """An application whose jobs fail at once if a store or model does not answer."""
    async with opens(job_patience_s=0) as opened:
        yield opened
