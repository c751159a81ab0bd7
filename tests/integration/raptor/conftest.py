"""Passages with vectors on the real embedded stores, without the other parts of ingestion."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from theme_doubles import HashedWords, HeldQueue

from agentic_rag_backend.domain.job import Job
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.models.llm.base import ExtractiveModel, LanguageModel
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, StoredPoint
from agentic_rag_backend.stores.vector.edge.store import EdgeVectorStore
from agentic_rag_backend.themes.communities.summaries.summary_writing import Summariser
from agentic_rag_backend.themes.raptor.build_options import BuildOptions, TreeOptions
from agentic_rag_backend.themes.raptor.service import RaptorService, RaptorStores
from agentic_rag_backend.themes.raptor.tree_publication import NodePoints, TreeScrubber
from agentic_rag_testing.stores.passages import show

DIMENSIONS = 64
THEMES = ("harbour", "museum", "orchard", "railway", "glacier", "theatre")


async def deliver_nothing(_: TenantId, __: float) -> None:
    """Deliver no entries: nothing is recorded without commits."""


@dataclass
class World:
    catalogue: Catalogue
    vectors: EdgeVectorStore
    embedder: HashedWords = field(default_factory=lambda: HashedWords(DIMENSIONS))
    queue: HeldQueue = field(default_factory=HeldQueue)

    def service(self, model: LanguageModel | None = None, **options: Any) -> RaptorService:
        stores = RaptorStores(catalogue=self.catalogue, vectors=self.vectors, embedder=self.embedder, queue=self.queue)  # type: ignore[arg-type]
        summariser = Summariser(model or ExtractiveModel(), prompt="tree_summary")
        shape = TreeOptions(**{"cluster_size": 4, **options})
        return RaptorService(
            stores, summariser=summariser, deliver=deliver_nothing, options=shape, retire_after_s=0, patience_s=0
        )

    async def tenant(self, name: str) -> TenantId:
        return (await self.catalogue.tenants.create(name)).id

    async def add(self, tenant: TenantId, title: str, paragraphs: Sequence[str]) -> str:
        """Make a document visible with one chunk per paragraph. The same title again is its next version."""
        rows = await self.embedder.embed(paragraphs)
        return await show(self.catalogue, self.vectors, tenant, (title, paragraphs), rows)

    async def fill(self, tenant: TenantId, *, each: int = 8, order: int = 1) -> dict[str, str]:
        """Submit a document for each theme, in either order."""
        return {theme: await self.add(tenant, theme, story(theme, each)) for theme in THEMES[::order]}

    async def remove(self, tenant: TenantId, document_id: str) -> None:
        """Delete a document as its delete job does, as far as trees are concerned."""
        await self.catalogue.documents.tombstone(tenant, document_id, self.queue.enqueuer("delete_v1"))
        await self.vectors.delete_document(tenant, document_id, up_to_version=99)
        await self.scrubber.scrub(tenant, document_id)
        await self.catalogue.documents.purge(tenant, document_id, up_to_version=99)

    @property
    def scrubber(self) -> TreeScrubber:
        return TreeScrubber(self.catalogue.documents, self.catalogue.trees, NodePoints(self.vectors, self.embedder))

    async def build(self, service: RaptorService, tenant: TenantId, **options: Any) -> Job:
        """Run a build and return the ended job."""
        job = await service.request_build(tenant, BuildOptions(**options))
        await service.build(tenant, job.id, job.attempt)
        return await self.catalogue.jobs.job(tenant, job.id)

    async def points(self, tenant: TenantId) -> list[StoredPoint]:
        pages = self.vectors.points(tenant, Collection.NODES, kind=NodeKind.RAPTOR)
        return [point async for page in pages for point in page]


def story(theme: str, count: int) -> list[str]:
    """Return passages that share the theme's words and differ in others."""
    return [
        f"The {theme} keeper of {theme} hill counted {theme} lanterns{number} beside the {theme} gate. "
        f"Nobody at the {theme} remembered the {theme} winter{number} of that year."
        for number in range(count)
    ]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    catalogue = await Catalogue.open(f"sqlite:///{tmp_path / 'catalogue.db'}")
    await catalogue.migrate()
    vectors = await EdgeVectorStore.open(
        tmp_path / "vectors", dimensions=DIMENSIONS, embedder_fingerprint=HashedWords.fingerprint
    )
    yield World(catalogue, vectors)
    await vectors.close()
    await catalogue.close()
