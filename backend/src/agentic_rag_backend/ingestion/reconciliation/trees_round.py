"""Reconciliation of trees over passages: only the current tree may exist, and each of its nodes needs its vector."""

from __future__ import annotations

from dataclasses import dataclass

from agentic_rag_backend.domain.job import JobKind, JobState
from agentic_rag_backend.ingestion.reconciliation.report import Kind
from agentic_rag_backend.ingestion.reconciliation.rounds import Round
from agentic_rag_backend.stores.catalogue.base import GenerationPointer
from agentic_rag_backend.stores.vector.base import Collection, NodeKind
from agentic_rag_backend.themes.raptor.tree_publication import NodePoints, TreeScrubber


@dataclass(frozen=True, slots=True)
class TreesRound:
    """Compares the vectors with the nodes of the current tree.

    A build writes vectors under new ids before the rows that refer to them. Each check first reads the data, then verifies that
    no
    build is unfinished. The data therefore belongs to finished builds. Pointer and rows are read last and show what is in use.
    """

    round: Round

    async def run(self) -> None:
        """Compare, and repair if requested. If a build is unfinished, the tenant is left to the next round."""
        await self.round.progress("tree", 0, 0)
        await self._orphaned_generations()
        await self._orphaned_points()
        await self._check_missing_nodes()

    async def _read_pointer(self) -> GenerationPointer | None:
        """Return the pointer. None if a build is unfinished."""
        tenant, catalogue = self.round.tenant, self.round.stores.catalogue
        for state in (JobState.QUEUED, JobState.RUNNING):
            if (await catalogue.jobs.jobs(tenant, limit=1, state=state, kind=JobKind.RAPTOR)).items:
                return None
        return await catalogue.trees.pointer(tenant)

    async def _orphaned_generations(self) -> None:
        tenant, trees, report = self.round.tenant, self.round.stores.catalogue.trees, self.round.report
        generations = await trees.generations(tenant)
        pointer = await self._read_pointer()
        orphans = [] if pointer is None else [generation for generation in generations if generation != pointer.generation]
        report.count_differences(Kind.TREE_ORPHANED, [f"generation {generation}" for generation in orphans])
        if self.round.repair and orphans and pointer is not None:
            await trees.delete_generations(tenant, keep=pointer.generation)
            report.count_repairs(Kind.TREE_ORPHANED, len(orphans))

    async def _orphaned_points(self) -> None:
        tenant, stores, report = self.round.tenant, self.round.stores, self.round.report
        async for points in stores.vectors.points(tenant, Collection.NODES, kind=NodeKind.RAPTOR):
            pointer = await self._read_pointer()
            if pointer is None:
                return
            ids = [point.id for point in points]
            used = await stores.catalogue.trees.nodes(tenant, pointer.generation, point_ids=ids)
            orphans = sorted(set(ids) - {node.point_id(tenant) for node in used})
            report.count_differences(Kind.TREE_VECTOR_ORPHANED, orphans)
            if self.round.repair and orphans:
                report.count_repairs(Kind.TREE_VECTOR_ORPHANED, await stores.vectors.delete(tenant, Collection.NODES, orphans))
                self.round.changed = True
            await self.round.progress("tree", 0, 0)

    async def _check_missing_nodes(self) -> None:
        tenant, stores, report = self.round.tenant, self.round.stores, self.round.report
        pointer = await self._read_pointer()
        if pointer is None or pointer.generation == 0:
            return
        trees = stores.catalogue.trees
        scrubber = TreeScrubber(stores.catalogue.documents, trees, NodePoints(stores.vectors, stores.embedder))
        missing_nodes = await scrubber.list_missing_nodes(tenant, await trees.nodes(tenant, pointer.generation))
        again = await self._read_pointer()
        if again != pointer:
            report.count_skips(Kind.TREE_VECTOR_MISSING, len(missing_nodes))
            return
        report.count_differences(Kind.TREE_VECTOR_MISSING, [node.id for node in missing_nodes])
        if self.round.repair:
            restored_ids = await scrubber.restore(tenant, missing_nodes)
            report.count_repairs(Kind.TREE_VECTOR_MISSING, len(restored_ids))
            self.round.changed |= bool(restored_ids)
