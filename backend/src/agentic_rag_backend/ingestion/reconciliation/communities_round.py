"""Reconciliation of community generations: only the current generation may exist, and it must be complete."""

from __future__ import annotations

from dataclasses import dataclass

from agentic_rag_backend.domain.job import JobKind, JobState
from agentic_rag_backend.ingestion.reconciliation.report import Kind
from agentic_rag_backend.ingestion.reconciliation.rounds import Round
from agentic_rag_backend.stores.catalogue.base import GenerationPointer
from agentic_rag_backend.stores.vector.base import Collection, NodeKind
from agentic_rag_backend.themes.communities.generations import Restorer


@dataclass(frozen=True, slots=True)
class CommunitiesRound:
    """Compares graph and vectors with the pointer to the current generation.

    A rebuild writes a generation under an unused number next to the current one. Each check first reads the data, then verifies
    that no rebuild is unfinished. The data therefore belongs to finished rebuilds. The pointer is read last and names the
    generation that is current.
    """

    round: Round

    async def run(self) -> None:
        """Compare, and repair if requested. If a rebuild is unfinished, the tenant is left to the next round."""
        await self.round.progress("communities", 0, 0)
        await self._orphaned_generations()
        await self._orphaned_points()
        await self._check_missing_communities()

    async def _read_pointer(self) -> GenerationPointer | None:
        """Return the pointer. None if a rebuild is unfinished."""
        tenant, catalogue = self.round.tenant, self.round.stores.catalogue
        for state in (JobState.QUEUED, JobState.RUNNING):
            if (await catalogue.jobs.jobs(tenant, limit=1, state=state, kind=JobKind.REBUILD)).items:
                return None
        return await catalogue.communities.pointer(tenant)

    async def _orphaned_generations(self) -> None:
        tenant, graph, report = self.round.tenant, self.round.stores.graph, self.round.report
        generations = await graph.generations(tenant)
        pointer = await self._read_pointer()
        orphans = [] if pointer is None else [generation for generation in generations if generation != pointer.generation]
        report.count_differences(Kind.COMMUNITY_ORPHANED, [f"generation {generation}" for generation in orphans])
        if self.round.repair:
            for generation in orphans:
                await graph.write_communities(tenant, generation, [])
            report.count_repairs(Kind.COMMUNITY_ORPHANED, len(orphans))

    async def _orphaned_points(self) -> None:
        tenant, vectors, report = self.round.tenant, self.round.stores.vectors, self.round.report
        async for points in vectors.points(tenant, Collection.NODES, kind=NodeKind.COMMUNITY):
            pointer = await self._read_pointer()
            if pointer is None:
                return
            orphans = [point.id for point in points if point.generation != pointer.generation]
            report.count_differences(Kind.COMMUNITY_VECTOR_ORPHANED, orphans)
            if self.round.repair and orphans:
                removed_count = await vectors.delete(tenant, Collection.NODES, orphans)
                report.count_repairs(Kind.COMMUNITY_VECTOR_ORPHANED, removed_count)
                self.round.changed = True
            await self.round.progress("communities", 0, 0)

    async def _check_missing_communities(self) -> None:
        tenant, stores, report = self.round.tenant, self.round.stores, self.round.report
        pointer = await self._read_pointer()
        if pointer is None or pointer.generation == 0:
            return
        communities = await stores.graph.communities(tenant, pointer.generation)
        restorer = Restorer(communities=stores.catalogue.communities, vectors=stores.vectors, embedder=stores.embedder)
        missing_communities = await restorer.list_missing_communities(tenant, communities)
        again = await self._read_pointer()
        if again is None or again.generation != pointer.generation:
            report.count_skips(Kind.COMMUNITY_VECTOR_MISSING, len(missing_communities))
            return
        lost = max(0, int(pointer.details.get("communities", 0)) - len(communities))
        report.count_differences(Kind.COMMUNITY_MISSING, [f"generation {pointer.generation}"] * lost)
        report.count_differences(Kind.COMMUNITY_VECTOR_MISSING, [community.id for community in missing_communities])
        if not self.round.repair:
            return
        restored_ids = await restorer.restore(tenant, missing_communities)
        report.count_repairs(Kind.COMMUNITY_VECTOR_MISSING, len(restored_ids))
        self.round.changed |= bool(restored_ids)
        now = await self._read_pointer()
        if restored_ids and (now is None or now.generation != pointer.generation):
            await stores.vectors.delete(tenant, Collection.NODES, restored_ids)  # their generation was replaced in the meantime
        if lost or len(restored_ids) < len(missing_communities):
            report.record_job((await self.round.services.rebuild(tenant)).id)
            report.count_repairs(Kind.COMMUNITY_MISSING, lost)
            report.count_repairs(Kind.COMMUNITY_VECTOR_MISSING, len(missing_communities) - len(restored_ids))
