"""The embedded profile below the API: real stores, a real durable queue, the bundled embedder."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from direct_reader import DirectReader

from agentic_rag_backend.domain.job import Job
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.ingestion.accept.uploads import Upload
from agentic_rag_backend.ingestion.service import IngestionOptions, IngestionService
from agentic_rag_backend.jobs.base import PATIENCE_S
from agentic_rag_backend.jobs.queue.job_queue import JobQueue
from agentic_rag_backend.knowledge.extraction.base import Extractor
from agentic_rag_backend.knowledge.extraction.methods import ExtractionMethods
from agentic_rag_backend.knowledge.extraction.rules import RuleExtractor
from agentic_rag_backend.knowledge.model_calls import DocumentModel
from agentic_rag_backend.knowledge.resolution.resolver import Resolver
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.models.embedding.bundled import BundledEmbedder
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer
from agentic_rag_backend.stores.blob.base import BlobStore
from agentic_rag_backend.stores.catalogue.base import Catalogue, Submitted
from agentic_rag_backend.stores.graph.sqlite import SqliteGraphStore
from agentic_rag_backend.stores.vector.edge.store import EdgeVectorStore


@dataclass
class World:
    """All parts of an ingestion, and shortcuts for tests."""

    catalogue: Catalogue
    vectors: EdgeVectorStore
    graph: SqliteGraphStore
    blobs: BlobStore
    embedder: BundledEmbedder
    queue: JobQueue
    ingestion: IngestionService
    tenant: TenantId
    folder: Path

    async def submit(
        self, text: str | bytes, *, key: str | None = None, tenant: TenantId | None = None, **fields: object
    ) -> Submitted:
        content = text.encode() if isinstance(text, str) else text
        upload = Upload(content=content, file_name=fields.pop("file_name", "file.md"), key=key, **fields)  # type: ignore[arg-type]
        return await self.ingestion.submit(tenant or self.tenant, upload)

    async def ended(self, job: Job | None, *, tenant: TenantId | None = None, within_s: float = 120) -> Job:
        assert job is not None
        async with asyncio.timeout(within_s):
            while True:
                held = await self.catalogue.jobs.job(tenant or self.tenant, job.id)
                if held.state.ended:
                    return held
                await asyncio.sleep(0.02)

    def originals(self) -> list[Path]:
        return [path for path in (self.folder / "blobs").rglob("*") if path.is_file()]


POLLING_S = 0.02


class Builder:
    """Creates worlds in one folder. The second one continues with the data of the first."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self.folder = folder
        self.stack = stack

    async def open(
        self,
        *,
        extractor: Extractor | None = None,
        embedder: Embedder | None = None,
        work: bool = True,
        patience_s: float = PATIENCE_S,
        model: DocumentModel | None = None,
        keep_originals: bool = True,
    ) -> World:
        bundled = BundledEmbedder()
        self.stack.push_async_callback(bundled.close)
        vectors = await EdgeVectorStore.open(
            self.folder / "vectors",
            dimensions=(embedder or bundled).dimensions,
            embedder_fingerprint=(embedder or bundled).fingerprint,
        )
        self.stack.push_async_callback(vectors.close)
        catalogue = await Catalogue.open(f"sqlite:///{self.folder / 'catalogue.db'}")
        self.stack.push_async_callback(catalogue.close)
        await catalogue.migrate()
        graph = await SqliteGraphStore.open(self.folder / "graph.db")
        self.stack.push_async_callback(graph.close)
        blobs = BlobStore((self.folder / "blobs").as_uri())
        queue = JobQueue(catalogue.sync_engine, executor_id="test", prepare_concurrency=4, polling_interval_s=POLLING_S)
        ingestion = IngestionService(
            catalogue=catalogue,
            graph=graph,
            vectors=vectors,
            blobs=blobs,
            embedder=embedder or bundled,
            reader=DirectReader(WordPieceTokenizer()),
            extraction=ExtractionMethods(extractor or RuleExtractor(), model),
            resolver=Resolver(graph),
            queue=queue,
            model=model,
            options=IngestionOptions(max_upload_mb=2, group_size=4, patience_s=patience_s, keep_originals=keep_originals),
        )
        for name, (queue_name, workflow) in ingestion.list_workflows().items():
            queue.register(name, queue_name, workflow)
        if work:
            await queue.launch()
            self.stack.push_async_callback(queue.shutdown)
        known = await catalogue.tenants.tenant_by_name("acme")
        tenant = known or await catalogue.tenants.create("acme")
        return World(catalogue, vectors, graph, blobs, bundled, queue, ingestion, tenant.id, self.folder)


@pytest.fixture
async def builder(tmp_path: Path) -> AsyncIterator[Builder]:
    async with AsyncExitStack() as stack:
        yield Builder(tmp_path, stack)


@pytest.fixture
async def world(builder: Builder) -> World:
    return await builder.open()
