"""Passages with vectors on the real embedded stores, without the rest of ingestion."""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

from agentic_rag_backend.communities.writing import Summariser
from agentic_rag_backend.domain.answer import Usage
from agentic_rag_backend.domain.document import Chunk, chunk_id, content_hash
from agentic_rag_backend.domain.graph import Extraction
from agentic_rag_backend.domain.job import Job
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.words import content_forms
from agentic_rag_backend.errors import ModelUnavailable
from agentic_rag_backend.jobs.turns import Turn, Turns
from agentic_rag_backend.models.llm.base import LanguageModel, ModelDelta, ModelReply, ModelRequest
from agentic_rag_backend.models.llm.extractive import ExtractiveModel
from agentic_rag_backend.raptor.forgetting import TreeMemory
from agentic_rag_backend.raptor.options import BuildOptions, TreeOptions
from agentic_rag_backend.raptor.publication import NodePoints
from agentic_rag_backend.raptor.service import RaptorService, RaptorStores
from agentic_rag_backend.stores.catalogue.base import Enqueue, PreparedChunk, Submission
from agentic_rag_backend.stores.catalogue.engine import SqlCatalogue
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, StoredPoint, VectorPoint
from agentic_rag_backend.stores.vector.edge import EdgeVectorStore

DIMENSIONS = 64
THEMES = ("harbour", "museum", "orchard", "railway", "glacier", "theatre")


class HashedWords:
    """An embedder whose vectors depend on the words alone: quick and deterministic; it counts what it embeds."""

    fingerprint = "hashed-words"
    dimensions = DIMENSIONS

    def __init__(self) -> None:
        self.embedded = 0

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.embedded += len(texts)
        return np.stack([self._vector(text) for text in texts])

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        return self._vector(text)

    async def close(self) -> None:
        return None

    @staticmethod
    def _vector(text: str) -> NDArray[np.float32]:
        vector = np.full(DIMENSIONS, 1e-3, dtype=np.float32)
        for form in content_forms(text):
            vector[hashlib.sha256(form.encode()).digest()[0] % DIMENSIONS] += 1
        return (vector / np.linalg.norm(vector)).astype(np.float32)


class ScriptedModel:
    """A generative model that answers every request alike, counts them, and can be held."""

    generative = True
    name = "scripted"

    def __init__(self, *, failing: Callable[[int], bool] = lambda call: False) -> None:
        self.requests: list[ModelRequest] = []
        self.started = asyncio.Event()
        self.released = asyncio.Event()
        self.released.set()
        self._failing = failing

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        self.started.set()
        number = len(self.requests)
        await self.released.wait()
        if self._failing(number):
            raise ModelUnavailable("the model is away")
        parsed = {
            "title": f"Part {number}",
            "summary": f"What these passages say is told in summary {number}.",
            "keywords": ["tide"],
            "findings": [{"statement": "Held by the first fact.", "sources": [1]}],
            "rating": 7,
        }
        return ModelReply("", Usage(100, 20, 1), self.name, parsed)

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta]:
        raise NotImplementedError

    async def close(self) -> None:
        return None


class HeldQueue:
    """A queue that only notes what was enqueued; tests run the workflow themselves."""

    def __init__(self) -> None:
        self._turns = Turns()

    def enqueuer(self, name: str) -> Enqueue:
        def enqueue(connection: Connection, tenant: TenantId, job: Job) -> None:
            return None

        return enqueue

    def turn(self, turn: Turn, tenant: TenantId) -> AbstractAsyncContextManager[object]:
        return self._turns.held(turn, tenant)


@dataclass
class World:
    catalogue: SqlCatalogue
    vectors: EdgeVectorStore
    embedder: HashedWords = field(default_factory=HashedWords)
    queue: HeldQueue = field(default_factory=HeldQueue)

    def service(self, model: LanguageModel | None = None, **options: Any) -> RaptorService:
        stores = RaptorStores(catalogue=self.catalogue, vectors=self.vectors, embedder=self.embedder, queue=self.queue)  # type: ignore[arg-type]
        summariser = Summariser(model or ExtractiveModel(self.embedder), prompt="tree_summary")
        shape = TreeOptions(**{"cluster_size": 4, **options})
        return RaptorService(stores, summariser=summariser, options=shape, retire_after_s=0)

    async def tenant(self, name: str) -> TenantId:
        return (await self.catalogue.tenants.create(name)).id

    async def add(self, tenant: TenantId, title: str, paragraphs: Sequence[str]) -> str:
        """Make a document of one chunk a paragraph visible; the same title again is its next version."""
        text = "\n\n".join(paragraphs)
        submission = Submission(
            document_id=str(uuid.uuid4()),
            key=title,
            title=title,
            content_hash=content_hash(text),
            media_type="text/plain",
            size_bytes=len(text),
            blob_key=str(uuid.uuid4()),
        )
        documents = self.catalogue.documents
        document = (await documents.submit(tenant, submission, self.queue.enqueuer("ingest_v1"))).document
        version = document.latest_version
        await documents.begin_processing(tenant, document.id, version)
        await documents.save_parsed(tenant, document.id, version, text=text, title=title, metadata={})
        chunks = list(_chunks(tenant, document.id, version, paragraphs))
        vectors = await self.embedder.embed(paragraphs)
        prepared = [
            PreparedChunk(chunk, vector, Extraction(chunk_id=chunk.id)) for chunk, vector in zip(chunks, vectors, strict=True)
        ]
        await documents.save_prepared(tenant, document.id, version, prepared)
        points = [
            VectorPoint(
                id=chunk.id,
                kind=NodeKind.CHUNK,
                dense=vector,
                text=chunk.text,
                document_id=document.id,
                version=version,
                title=title,
            )
            for chunk, vector in zip(chunks, vectors, strict=True)
        ]
        await self.vectors.upsert(tenant, Collection.CHUNKS, points)
        assert await documents.publish(tenant, document.id, version)
        return document.id

    async def fill(self, tenant: TenantId, *, each: int = 8, order: int = 1) -> dict[str, str]:
        """Hand in a document for each theme, in either order."""
        return {theme: await self.add(tenant, theme, story(theme, each)) for theme in THEMES[::order]}

    async def remove(self, tenant: TenantId, document_id: str) -> None:
        """Delete a document as its delete job does, as far as trees are concerned."""
        await self.catalogue.documents.tombstone(tenant, document_id, self.queue.enqueuer("delete_v1"))
        await self.vectors.delete_document(tenant, document_id, up_to_version=99)
        await self.memory.forget(tenant, document_id)
        await self.catalogue.documents.purge(tenant, document_id, up_to_version=99)

    @property
    def memory(self) -> TreeMemory:
        return TreeMemory(self.catalogue.documents, self.catalogue.trees, NodePoints(self.vectors, self.embedder))

    async def build(self, service: RaptorService, tenant: TenantId, **options: Any) -> Job:
        """Run a build and return the ended job."""
        job = await service.request_build(tenant, BuildOptions(**options))
        await service.build(tenant, job.id, job.attempt)
        return await self.catalogue.jobs.job(tenant, job.id)

    async def points(self, tenant: TenantId) -> list[StoredPoint]:
        pages = self.vectors.points(tenant, Collection.NODES, kind=NodeKind.RAPTOR)
        return [point async for page in pages for point in page]


def story(theme: str, count: int) -> list[str]:
    """Return passages that share the theme's words and differ in some of their own."""
    return [
        f"The {theme} keeper of {theme} hill counted {theme} lanterns{number} beside the {theme} gate. "
        f"Nobody at the {theme} remembered the {theme} winter{number} of that year."
        for number in range(count)
    ]


def _chunks(tenant: TenantId, document_id: str, version: int, paragraphs: Sequence[str]) -> list[Chunk]:
    chunks, start = [], 0
    for ordinal, text in enumerate(paragraphs):
        digest = content_hash(text)
        chunks.append(
            Chunk(
                id=chunk_id(tenant, document_id, digest, 0),
                document_id=document_id,
                version=version,
                ordinal=ordinal,
                text=text,
                start_char=start,
                end_char=start + len(text),
                start_line=1 + 2 * ordinal,
                end_line=1 + 2 * ordinal,
                size_tokens=len(text.split()),
                content_hash=digest,
            )
        )
        start += len(text) + 2
    return chunks


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    catalogue = await SqlCatalogue.open(f"sqlite:///{tmp_path / 'catalogue.db'}")
    await catalogue.migrate()
    vectors = await EdgeVectorStore.open(
        tmp_path / "vectors", dimensions=DIMENSIONS, embedder_fingerprint=HashedWords.fingerprint
    )
    yield World(catalogue, vectors)
    await vectors.close()
    await catalogue.close()
