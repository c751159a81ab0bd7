"""Repairs the current generation of communities in the stores: finds missing points and writes them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentic_rag_backend.communities.generations.publication import MIN_SEARCHABLE, embedded_text, searchable_text
from agentic_rag_backend.domain.graph import Community, CommunitySummary, community_point_id
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.stores.catalogue.base import CommunityCatalogue
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, VectorPoint, VectorStore

_BATCH = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Restorer:
    """Writes points of communities whose summaries are on record."""

    communities: CommunityCatalogue
    vectors: VectorStore
    embedder: Embedder

    async def list_missing_communities(self, tenant: TenantId, held: Sequence[Community]) -> list[Community]:
        """Return the searchable communities of ``held``, of one generation, that have no point."""
        found: list[Community] = []
        for first in range(0, len(held), _BATCH):
            batch = [each for each in held[first : first + _BATCH] if len(each.entity_ids) >= MIN_SEARCHABLE]
            points = {community_point_id(each.id, each.generation): each for each in batch}
            pages = self.vectors.points(tenant, Collection.NODES, ids=list(points))
            there = {point.id async for page in pages for point in page}
            found += [each for id, each in points.items() if id not in there]
        return found

    async def restore(
        self,
        tenant: TenantId,
        missing: Sequence[Community],
        summaries_by_fingerprint: Mapping[str, CommunitySummary] | None = None,
    ) -> list[str]:
        """Write the points of ``missing`` and return their ids. Communities without a summary are left out.

        Args:
            summaries_by_fingerprint: the summaries to write; None: the recorded ones.
        """
        written: list[str] = []
        for first in range(0, len(missing), _BATCH):
            batch = missing[first : first + _BATCH]
            summaries = summaries_by_fingerprint or await self.communities.summaries(tenant, [each.fingerprint for each in batch])
            summarised = [each for each in batch if each.fingerprint in summaries]
            if not summarised:
                continue
            dense = await self.embedder.embed([embedded_text(summaries[each.fingerprint]) for each in summarised])
            points = [
                VectorPoint(
                    id=community_point_id(each.id, each.generation),
                    kind=NodeKind.COMMUNITY,
                    dense=vector,
                    text=searchable_text(summaries[each.fingerprint]),
                    generation=each.generation,
                )
                for each, vector in zip(summarised, dense, strict=True)
            ]
            await self.vectors.upsert(tenant, Collection.NODES, points)
            written += [point.id for point in points]
        return written
