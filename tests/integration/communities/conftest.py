"""A small world on the real embedded stores: documents go through rules, resolution, graph and catalogue."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

from agentic_rag_backend.communities.service import CommunityService
from agentic_rag_backend.domain.document import Chunk, chunk_id, content_hash
from agentic_rag_backend.domain.job import Job
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.words import content_forms
from agentic_rag_backend.jobs.base import QueueName, Workflow
from agentic_rag_backend.jobs.turns import Turn, Turns
from agentic_rag_backend.knowledge.extraction.rules import RuleExtractor
from agentic_rag_backend.knowledge.resolution import Resolver
from agentic_rag_backend.models.llm.base import LanguageModel
from agentic_rag_backend.models.llm.extractive import ExtractiveModel
from agentic_rag_backend.stores.catalogue.base import Enqueue, PreparedChunk, Submission
from agentic_rag_backend.stores.catalogue.engine import SqlCatalogue
from agentic_rag_backend.stores.graph.sqlite import SqliteGraphStore
from agentic_rag_backend.stores.vector.edge import EdgeVectorStore

DIMENSIONS = 32


class HashedWords:
    """An embedder whose vectors depend on the words alone: quick, deterministic, and it counts what it embeds."""

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


class HeldQueue:
    """A queue that only notes what was enqueued; tests run the workflow themselves."""

    def __init__(self) -> None:
        self.enqueued: list[tuple[str, str]] = []
        self._turns = Turns()

    def register(self, name: str, queue: QueueName, workflow: Workflow) -> None:
        raise NotImplementedError

    def enqueuer(self, name: str) -> Enqueue:
        def enqueue(connection: Connection, tenant: TenantId, job: Job) -> None:
            self.enqueued.append((name, job.id))

        return enqueue

    async def enqueue(self, name: str, tenant: TenantId, job_id: str, attempt: int) -> None:
        self.enqueued.append((name, job_id))

    def turn(self, turn: Turn, tenant: TenantId) -> AbstractAsyncContextManager[object]:
        return self._turns.held(turn, tenant)

    async def leads(self) -> bool:
        return True

    async def launch(self) -> None:
        return None

    async def shutdown(self) -> None:
        return None

    async def ping(self) -> None:
        return None


@dataclass
class World:
    catalogue: SqlCatalogue
    graph: SqliteGraphStore
    vectors: EdgeVectorStore
    embedder: HashedWords = field(default_factory=HashedWords)
    queue: HeldQueue = field(default_factory=HeldQueue)
    extractor: RuleExtractor = field(default_factory=RuleExtractor)

    def service(self, model: LanguageModel | None = None, *, patience_s: float = 0.0) -> CommunityService:
        return CommunityService(
            catalogue=self.catalogue,
            graph=self.graph,
            vectors=self.vectors,
            embedder=self.embedder,
            model=model or ExtractiveModel(self.embedder),
            queue=self.queue,
            retire_after_s=0,
            patience_s=patience_s,
        )

    async def tenant(self, name: str) -> TenantId:
        return (await self.catalogue.tenants.create(name)).id

    async def add(self, tenant: TenantId, title: str, paragraphs: Sequence[str]) -> str:
        """Make a document of one chunk a paragraph visible, as ingestion does."""
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
        document = (await self.catalogue.documents.submit(tenant, submission, self.queue.enqueuer("ingest_v1"))).document
        version = document.latest_version
        await self.catalogue.documents.begin_processing(tenant, document.id, version)
        await self.catalogue.documents.save_parsed(tenant, document.id, version, text=text, title=title, metadata={})
        chunks = self._chunks(tenant, document.id, version, paragraphs)
        extractions = await self.extractor.extract(title, chunks)
        vectors = await self.embedder.embed(paragraphs)
        prepared = [PreparedChunk(*each) for each in zip(chunks, vectors, extractions, strict=True)]
        await self.catalogue.documents.save_prepared(tenant, document.id, version, prepared)
        knowledge = await Resolver(self.graph).resolve(tenant, document.id, version, title, extractions)
        await self.graph.write_document(tenant, knowledge)
        assert await self.catalogue.documents.publish(tenant, document.id, version)
        return document.id

    async def hide(self, tenant: TenantId, document_id: str) -> None:
        """Tombstone a document: its purge has not run yet."""
        await self.catalogue.documents.tombstone(tenant, document_id, self.queue.enqueuer("delete_v1"))

    @staticmethod
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


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[World]:
    """Yield a world whose stores are in a folder."""
    catalogue = await SqlCatalogue.open(f"sqlite:///{folder / 'catalogue.db'}")
    await catalogue.migrate()
    graph = await SqliteGraphStore.open(folder / "graph.db")
    vectors = await EdgeVectorStore.open(
        folder / "vectors",
        dimensions=DIMENSIONS,
        embedder_fingerprint=HashedWords.fingerprint,
    )
    yield World(catalogue, graph, vectors)
    await vectors.close()
    await graph.close()
    await catalogue.close()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with opened(tmp_path) as made:
        yield made


@pytest.fixture(scope="session")
def open_world() -> Callable[[Path], AbstractAsyncContextManager[World]]:
    """Return what opens a world in a folder, for tests that make one an example."""
    return opened


@pytest.fixture
def story() -> Callable[[str], dict[str, list[str]]]:
    """Two themes, so that a graph of them has at least two communities: a tidal project and a museum."""

    def documents(mark: str = "") -> dict[str, list[str]]:
        return {
            f"Tidal Array{mark}": [
                f"Mira Voss{mark} founded the Halden Institute in Brennmoor in 2014.",
                f"The Halden Institute built the Tidal Array with Osric Lindqvist{mark}.",
                "Osric Lindqvist moved from Brennmoor to Carrow Bay to run the Tidal Array.",
            ],
            f"Halden Report{mark}": [
                f"Mira Voss{mark} and Osric Lindqvist published the Carrow Bay Report at the Halden Institute.",
                "The Carrow Bay Report praised the Tidal Array.",
            ],
            f"Lantern Museum{mark}": [
                f"Petra Okafor{mark} directs the Lantern Museum in Westerhall.",
                "The Lantern Museum bought the Glass Atlas from Tomas Rehn.",
                f"Tomas Rehn and Petra Okafor{mark} met in Westerhall.",
            ],
        }

    return documents
