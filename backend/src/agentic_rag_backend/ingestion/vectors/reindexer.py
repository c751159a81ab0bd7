"""Rewrites every vector from catalogue and graph, into a store of another fingerprint or over the existing vectors.

No language model is called. The embedder is not called either if it made the recorded results. Otherwise each passage is
embedded once and recorded, so that an interrupted run does not repeat any work.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from agentic_rag_backend.documents.chunking.passages import passage_text
from agentic_rag_backend.domain.document import Chunk, Failure
from agentic_rag_backend.domain.graph import community_point_id
from agentic_rag_backend.domain.tenant import TenantId, TenantState
from agentic_rag_backend.ingestion.prepare.computation import Computation, recipe_of
from agentic_rag_backend.ingestion.questions.asking import embed_questions, is_current
from agentic_rag_backend.ingestion.vectors.chunk_points import PointFields
from agentic_rag_backend.knowledge.extraction.base import Origin
from agentic_rag_backend.language.times import document_date
from agentic_rag_backend.stores.catalogue.base import Catalogue, DocumentHeader, DocumentRecord, PreparedChunk, TransferCatalogue
from agentic_rag_backend.stores.graph.base import GraphStore
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, VectorPoint, VectorStore
from agentic_rag_backend.themes.communities.generations import Restorer
from agentic_rag_backend.themes.raptor.tree_publication import NodePoints, TreeScrubber

Progress = Callable[[str, int, int], Awaitable[None]]
_GROUP_CHUNKS = 64
_PAGE = 200
_ATTEMPTS = 20
"""Limit of passes over documents that changed meanwhile. The reconciler repairs later differences."""


@dataclass(slots=True)
class Reindexed:
    """Numbers of points written and texts embedded."""

    tenants: int = 0
    documents: int = 0
    chunks: int = 0
    questions: int = 0
    facts: int = 0
    communities: int = 0
    tree_nodes: int = 0
    embedded: int = 0


@dataclass(slots=True, kw_only=True)
class Reindexer:
    """Rewrites every tenant's points.

    Args:
        vectors: the store to write.
        embedder_before: fingerprint of the embedder of the recorded vectors; None if it is the current one.
    """

    catalogue: Catalogue
    transfer: TransferCatalogue
    graph: GraphStore
    vectors: VectorStore
    computation: Computation
    embedder_before: str | None
    done: Reindexed = field(default_factory=Reindexed)

    async def run(self, progress: Progress) -> Reindexed:
        """Rewrite all points. Idempotent."""
        cursor: str | None = None
        while True:
            page = await self.catalogue.tenants.tenants(limit=_PAGE, cursor=cursor)
            for tenant in page.items:
                if tenant.state in (TenantState.ACTIVE, TenantState.SUSPENDED):
                    await self._rewrite_tenant(tenant.id, progress)
                    await self.catalogue.documents.record_repair(tenant.id, None, knowledge=False)
                    self.done.tenants += 1
            cursor = page.next_cursor
            if cursor is None:
                await self.vectors.flush()
                return self.done

    async def _rewrite_tenant(self, tenant: TenantId, progress: Progress) -> None:
        headers_written: dict[str, DocumentHeader] = {}
        for _ in range(_ATTEMPTS):
            before = (await self.transfer.snapshot(tenant)).tenant.state_version
            headers = await self.transfer.headers(tenant)
            for document_id in headers_written.keys() - headers.keys():
                await self.vectors.delete_document(tenant, document_id, up_to_version=headers_written.pop(document_id).version)
            for number, (document_id, header) in enumerate(headers.items()):
                if headers_written.get(document_id) != header:
                    await progress(f"documents of {tenant}", number, len(headers))
                    record = await self.transfer.record(tenant, document_id)
                    if record is not None:
                        await self._rewrite_document(tenant, record)
                        headers_written[document_id] = record.header
            await progress(f"facts of {tenant}", len(headers), len(headers))
            await self._rewrite_facts(tenant)
            await self._rewrite_communities(tenant)
            await self._rewrite_tree(tenant)
            if (await self.transfer.snapshot(tenant)).tenant.state_version == before:
                return

    async def _rewrite_document(self, tenant: TenantId, record: DocumentRecord) -> None:
        prepared = await self._renew_results(tenant, record)
        points = chunk_points(replace(record, prepared=tuple(prepared)))
        keep = [point.id for point in points]
        await self.vectors.delete_document(tenant, record.id, up_to_version=record.version, keep=keep)
        await self.vectors.upsert(tenant, Collection.CHUNKS, points)
        self.done.documents += 1
        self.done.chunks += len(prepared)
        self.done.questions += len(points) - len(prepared)

    async def _renew_results(self, tenant: TenantId, record: DocumentRecord) -> list[PreparedChunk]:
        """Return and record the results of every chunk, with vectors of this embedder."""
        origin = Origin(tenant, record.id, document_date("", record.metadata))
        ontology = await self.catalogue.tenants.ontology(tenant)
        computation = self.computation.make_computation(record.options.extraction, ontology, origin=origin)
        recorded_chunks = {item.chunk.id: item for item in record.prepared}
        missing_chunks = [chunk for chunk in record.chunks if chunk.id not in recorded_chunks]
        for start in range(0, len(missing_chunks), _GROUP_CHUNKS):
            group = missing_chunks[start : start + _GROUP_CHUNKS]
            recipes = [computation.make_recipe(record.title, chunk) for chunk in group]
            recorded_chunks.update((item.chunk.id, item) for item in await computation.compute(record.title, group, recipes))
            self.done.embedded += len(group)
        if self.embedder_before is not None:
            stale = [item for item in recorded_chunks.values() if not _is_current(computation, record.title, item)]
            for start in range(0, len(stale), _GROUP_CHUNKS):
                renewed = await self._embed_stale(computation, record.title, stale[start : start + _GROUP_CHUNKS])
                await self.transfer.revector(tenant, record.id, record.version, renewed)
                recorded_chunks.update((item.chunk.id, item) for item in renewed)
            with_questions = [
                item
                for item in recorded_chunks.values()
                if item.questions is not None and not is_current(self.computation, item.questions)
            ]
            for start in range(0, len(with_questions), _GROUP_CHUNKS):
                renewed = await self._with_embedded_questions(with_questions[start : start + _GROUP_CHUNKS])
                await self.transfer.revector(tenant, record.id, record.version, renewed)
                recorded_chunks.update((item.chunk.id, item) for item in renewed)
        return [recorded_chunks[chunk.id] for chunk in record.chunks]

    async def _embed_stale(self, computation: Computation, title: str, stale: Sequence[PreparedChunk]) -> list[PreparedChunk]:
        vectors = await computation.embed([passage_text(title, item.chunk) for item in stale])
        self.done.embedded += len(stale)
        renewed = []
        for item, vector in zip(stale, vectors, strict=True):
            recipe = self._choose_recipe(computation, title, item.chunk, item.recipe)
            if isinstance(vector, np.ndarray):
                renewed.append(replace(item, vector=vector, failure=None, recipe=recipe))
            else:
                failure = Failure("embed", vector.code, vector.message, item.chunk.id)
                renewed.append(replace(item, vector=None, failure=failure, recipe=None))
        return renewed

    async def _with_embedded_questions(self, prepared_chunks: Sequence[PreparedChunk]) -> list[PreparedChunk]:
        questions = await embed_questions(
            self.computation, [item.questions for item in prepared_chunks if item.questions is not None]
        )
        self.done.embedded += sum(len(chunk_questions.items) for chunk_questions in questions)
        return [
            replace(item, questions=chunk_questions) for item, chunk_questions in zip(prepared_chunks, questions, strict=True)
        ]

    def _choose_recipe(self, computation: Computation, title: str, chunk: Chunk, recipe: str | None) -> str | None:
        """Return the recipe with this embedder if all other inputs of the result are unchanged."""
        is_unchanged = recipe == recipe_of(self.embedder_before or "", computation.extractor.version, title, chunk)
        return computation.make_recipe(title, chunk) if is_unchanged else None

    async def _rewrite_facts(self, tenant: TenantId) -> None:
        facts = 0
        async for relationships in self.graph.all_relationships(tenant):
            points = [
                VectorPoint(id=relationship.id, kind=NodeKind.FACT, text=relationship.fact) for relationship in relationships
            ]
            await self.vectors.upsert(tenant, Collection.NODES, points)
            facts += len(points)
        self.done.facts += facts

    async def _rewrite_communities(self, tenant: TenantId) -> None:
        pointer = await self.catalogue.communities.pointer(tenant)
        if pointer.generation == 0:
            return
        communities = await self.graph.communities(tenant, pointer.generation)
        restorer = Restorer(communities=self.catalogue.communities, vectors=self.vectors, embedder=self.computation.embedder)
        missing_communities = await restorer.list_missing_communities(tenant, communities)
        restored_ids = await restorer.restore(tenant, missing_communities)
        self.done.communities += len(communities)
        self.done.embedded += len(restored_ids)
        points = {community_point_id(community.id, community.generation) for community in communities}
        stray = [
            point.id
            async for page in self.vectors.points(tenant, Collection.NODES, kind=NodeKind.COMMUNITY)
            for point in page
            if point.id not in points
        ]
        if stray:
            await self.vectors.delete(tenant, Collection.NODES, stray)

    async def _rewrite_tree(self, tenant: TenantId) -> None:
        trees = self.catalogue.trees
        scrubber = TreeScrubber(self.catalogue.documents, trees, NodePoints(self.vectors, self.computation.embedder))
        pointer = await trees.pointer(tenant)
        nodes = await trees.nodes(tenant, pointer.generation) if pointer.generation else []
        restored_ids = await scrubber.restore(tenant, await scrubber.list_missing_nodes(tenant, nodes))
        await scrubber.points.keep_points(tenant, {node.point_id(tenant) for node in nodes})
        self.done.tree_nodes += len(nodes)
        self.done.embedded += len(restored_ids)


def chunk_points(record: DocumentRecord) -> list[VectorPoint]:
    """Return the points of a document's chunks and of their synthetic questions."""
    key = None if record.key == record.content_hash else record.key
    fields = PointFields(document_id=record.id, version=record.version, key=key, title=record.title, metadata=record.metadata)
    return fields.make_points(record.prepared)


def _is_current(computation: Computation, title: str, item: PreparedChunk) -> bool:
    return item.recipe is not None and item.recipe == computation.make_recipe(title, item.chunk)
