"""A small world on the real embedded stores: documents pass through rules, resolution, graph and catalogue."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from theme_doubles import HashedWords, HeldQueue

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.extraction.rules import RuleExtractor
from agentic_rag_backend.knowledge.resolution.resolver import Resolver
from agentic_rag_backend.models.llm.base import ExtractiveModel, LanguageModel
from agentic_rag_backend.stores.catalogue.base import Catalogue, PreparedChunk
from agentic_rag_backend.stores.graph.sqlite import SqliteGraphStore
from agentic_rag_backend.stores.vector.edge.store import EdgeVectorStore
from agentic_rag_backend.themes.communities.service import CommunityService
from agentic_rag_testing.stores.passages import hand_in

DIMENSIONS = 32


async def deliver_nothing(_: TenantId, __: float) -> None:
    """Deliver no entries: nothing is recorded without commits."""


@dataclass
class World:
    catalogue: Catalogue
    graph: SqliteGraphStore
    vectors: EdgeVectorStore
    embedder: HashedWords = field(default_factory=lambda: HashedWords(DIMENSIONS))
    queue: HeldQueue = field(default_factory=HeldQueue)
    extractor: RuleExtractor = field(default_factory=RuleExtractor)

    def service(self, model: LanguageModel | None = None, *, patience_s: float = 0.0) -> CommunityService:
        return CommunityService(
            catalogue=self.catalogue,
            graph=self.graph,
            vectors=self.vectors,
            embedder=self.embedder,
            model=model or ExtractiveModel(),
            queue=self.queue,
            deliver=deliver_nothing,
            retire_after_s=0,
            patience_s=patience_s,
        )

    async def tenant(self, name: str) -> TenantId:
        return (await self.catalogue.tenants.create(name)).id

    async def add(self, tenant: TenantId, title: str, paragraphs: Sequence[str]) -> str:
        """Make a document visible with one chunk per paragraph, as ingestion does."""
        chunks = await hand_in(self.catalogue, tenant, title, paragraphs)
        document_id, version = chunks[0].document_id, chunks[0].version
        extractions = await self.extractor.extract(title, chunks)
        vectors = await self.embedder.embed(paragraphs)
        prepared = [PreparedChunk(*each) for each in zip(chunks, vectors, extractions, strict=True)]
        await self.catalogue.documents.save_prepared(tenant, document_id, version, prepared)
        knowledge = await Resolver(self.graph).resolve(tenant, document_id, version, title, extractions)
        await self.graph.write_document(tenant, knowledge)
        assert await self.catalogue.documents.publish(tenant, document_id, version)
        return document_id

    async def hide(self, tenant: TenantId, document_id: str) -> None:
        """Tombstone a document. Its purge has not run yet."""
        await self.catalogue.documents.tombstone(tenant, document_id, self.queue.enqueuer("delete_v1"))


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[World]:
    """Yield a world whose stores are in a folder."""
    catalogue = await Catalogue.open(f"sqlite:///{folder / 'catalogue.db'}")
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
    """Return a function that opens a world in a folder, for tests that need one per example."""
    return opened


@pytest.fixture
def story() -> Callable[[str], dict[str, list[str]]]:
    """Two themes, a tidal project and a museum, so that the graph has at least two communities."""

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
