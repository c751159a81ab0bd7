"""Removes store data of documents that the catalogue does not have, and repairs points of facts that differ from the graph."""

from __future__ import annotations

from collections.abc import Collection as Collected
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agentic_rag_backend.domain.graph import Relationship
from agentic_rag_backend.ingestion.reconciliation.removals import may_remove
from agentic_rag_backend.ingestion.reconciliation.report import Kind
from agentic_rag_backend.ingestion.reconciliation.rounds import Round
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, VectorPoint

ALL_VERSIONS = 2**31 - 1
_PAGE = 500


@dataclass(frozen=True, slots=True)
class OrphansRound:
    """Searches vectors and graph for documents that the catalogue does not know.

    A document's row is written before its other data and removed after it, and ids are never reused. So data of a document that
    the catalogue does not know is orphaned, whatever is in flight.
    """

    round: Round

    async def run(self) -> None:
        """Compare, and repair if requested. Documents come first, because mass removals need a person's confirmation."""
        tenant, stores = self.round.tenant, self.round.stores
        await self.round.progress("orphans", 0, 0)
        document_ids: frozenset[str] = frozenset()
        orphans: set[str] = set()
        async for points in stores.vectors.points(tenant, Collection.CHUNKS):
            await self._check_points([point.id for point in points if point.document_id is None])
            named_ids = {point.document_id for point in points if point.document_id is not None}
            unknown = await self._select_unknown_ids(named_ids - document_ids)
            document_ids = frozenset(named_ids - unknown)
            orphans |= unknown
            await self.round.progress("orphans", 0, 0)
        repairing = self._may_repair(Kind.CHUNK_VECTOR_ORPHANED, orphans)
        for document_id in sorted(orphans):
            await self._remove_vectors(document_id, repairing=repairing)
        orphans = set()
        async for versions in stores.graph.all_versions(tenant):
            orphans |= await self._select_unknown_ids({version.document_id for version in versions})
            await self.round.progress("orphans", 0, 0)
        repairing = self._may_repair(Kind.KNOWLEDGE_ORPHANED, orphans)
        for document_id in sorted(orphans):
            await self._remove_knowledge(document_id, repairing=repairing)

    def _may_repair(self, kind: Kind, orphans: Collected[str]) -> bool:
        report = self.round.report
        return may_remove(report, kind, len(orphans), report.documents + len(orphans))

    async def _select_unknown_ids(self, document_ids: Iterable[str]) -> set[str]:
        ids = sorted(document_ids)
        documents = self.round.stores.catalogue.documents
        known_ids = (
            {status.document.id for status in await documents.statuses(self.round.tenant, ids=ids, limit=_PAGE)} if ids else set()
        )
        return set(ids) - known_ids

    async def _check_points(self, ids: Sequence[str]) -> None:
        if not ids:
            return
        self.round.report.count_differences(Kind.CHUNK_VECTOR_ORPHANED, ids)
        if self.round.repair:
            removed_count = await self.round.stores.vectors.delete(self.round.tenant, Collection.CHUNKS, ids)
            self.round.report.count_repairs(Kind.CHUNK_VECTOR_ORPHANED, removed_count)
            self.round.changed = True

    async def _remove_vectors(self, document_id: str, *, repairing: bool) -> None:
        async with self.round.tenant_lock():
            if not await self._select_unknown_ids([document_id]):
                return
            vectors, tenant = self.round.stores.vectors, self.round.tenant
            async for points in vectors.points(tenant, Collection.CHUNKS, document_ids=[document_id]):
                self.round.report.count_differences(Kind.CHUNK_VECTOR_ORPHANED, [point.id for point in points])
            if repairing:
                removed_count = await vectors.delete_document(tenant, document_id, up_to_version=ALL_VERSIONS)
                self.round.report.count_repairs(Kind.CHUNK_VECTOR_ORPHANED, removed_count)
                await self.round.publish_repair(document_id, knowledge=False)

    async def _remove_knowledge(self, document_id: str, *, repairing: bool) -> None:
        async with self.round.tenant_lock():
            if not await self._select_unknown_ids([document_id]):
                return
            versions = [
                version
                async for batch in self.round.stores.graph.all_versions(self.round.tenant, [document_id])
                for version in batch
            ]
            self.round.report.count_differences(
                Kind.KNOWLEDGE_ORPHANED, [f"{document_id}@{version.version}" for version in versions]
            )
            if repairing and versions:
                # The range starts below version 0: orphaned data may have a version number that we never assign.
                least = min(0, *(version.version for version in versions)) - 1
                await self.round.stores.facts.remove_knowledge(
                    self.round.tenant, document_id, up_to_version=ALL_VERSIONS, above=least
                )
                self.round.report.count_repairs(Kind.KNOWLEDGE_ORPHANED, len(versions))
                await self.round.publish_repair(document_id, knowledge=True)


@dataclass(frozen=True, slots=True)
class FactsRound:
    """Compares the points of facts with the graph's relationships."""

    round: Round

    async def run(self) -> None:
        """Compare, and repair if requested."""
        tenant, stores = self.round.tenant, self.round.stores
        await self.round.progress("facts", 0, 0)
        async for relationships in stores.graph.all_relationships(tenant):
            ids_without_point = await self._select_without_points([relationship.id for relationship in relationships])
            if ids_without_point:
                await self._write_points(sorted(ids_without_point))
            await self.round.progress("facts", 0, 0)
        async for points in stores.vectors.points(tenant, Collection.NODES, kind=NodeKind.FACT):
            ids = [point.id for point in points]
            relationships_by_id = await stores.graph.relationships(tenant, ids)
            orphans = [id for id in ids if id not in relationships_by_id]
            if orphans:
                await self._remove_points(orphans)
            await self.round.progress("facts", 0, 0)

    async def _select_without_points(self, ids: Sequence[str]) -> set[str]:
        points = self.round.stores.vectors.points(self.round.tenant, Collection.NODES, ids=ids)
        return set(ids) - {point.id async for page in points for point in page}

    async def _write_points(self, suspected: Sequence[str]) -> None:
        tenant, stores, report = self.round.tenant, self.round.stores, self.round.report
        async with self.round.tenant_lock():
            relationships = await stores.graph.relationships(tenant, await self._sort_without_points(suspected))
            relationships_without_point = [
                relationship for relationship in relationships.values() if not await self._has_running_support(relationship)
            ]
            report.count_skips(Kind.FACT_VECTOR_MISSING, len(suspected) - len(relationships_without_point))
            if not relationships_without_point:
                return
            report.count_differences(Kind.FACT_VECTOR_MISSING, [relationship.id for relationship in relationships_without_point])
            if self.round.repair:
                facts = [
                    VectorPoint(id=relationship.id, kind=NodeKind.FACT, text=relationship.fact)
                    for relationship in relationships_without_point
                ]
                await stores.vectors.upsert(tenant, Collection.NODES, facts)
                report.count_repairs(Kind.FACT_VECTOR_MISSING, len(facts))
                await self.round.publish_repair(relationships_without_point[0].supports[0].document_id, knowledge=False)

    async def _sort_without_points(self, ids: Sequence[str]) -> list[str]:
        return sorted(await self._select_without_points(ids))

    async def _has_running_support(self, relationship: Relationship) -> bool:
        """Return whether only documents with running jobs support it. Their jobs write its point."""
        ids = sorted({support.document_id for support in relationship.supports})
        documents = self.round.stores.catalogue.documents
        statuses = await documents.statuses(self.round.tenant, ids=ids[:_PAGE], limit=_PAGE)
        return bool(statuses) and all(status.in_flight for status in statuses)

    async def _remove_points(self, suspected: Sequence[str]) -> None:
        tenant, stores, report = self.round.tenant, self.round.stores, self.round.report
        async with self.round.tenant_lock():
            relationships = await stores.graph.relationships(tenant, suspected)
            without_points = await self._select_without_points(suspected)
            orphans = [id for id in suspected if id not in relationships and id not in without_points]
            report.count_skips(Kind.FACT_VECTOR_ORPHANED, len(suspected) - len(orphans))
            if not orphans:
                return
            report.count_differences(Kind.FACT_VECTOR_ORPHANED, orphans)
            if self.round.repair:
                report.count_repairs(Kind.FACT_VECTOR_ORPHANED, await stores.vectors.delete(tenant, Collection.NODES, orphans))
                self.round.changed = True
