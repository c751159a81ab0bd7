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

    async def list_missing_communities(self, tenant: TenantId, communities: Sequence[Community]) -> list[Community]:
        """Return the searchable communities of ``communities``, of one generation, that have no point."""
        missing_communities: list[Community] = []
        for start in range(0, len(communities), _BATCH):
            batch = [
                community for community in communities[start : start + _BATCH] if len(community.entity_ids) >= MIN_SEARCHABLE
            ]
            points = {community_point_id(community.id, community.generation): community for community in batch}
            pages = self.vectors.points(tenant, Collection.NODES, ids=list(points))
            there = {point.id async for page in pages for point in page}
            missing_communities += [community for id, community in points.items() if id not in there]
        return missing_communities

    async def restore(
        self,
        tenant: TenantId,
        communities: Sequence[Community],
        summaries_by_fingerprint: Mapping[str, CommunitySummary] | None = None,
    ) -> list[str]:
        """Write the points of ``communities`` and return their ids. Communities without a summary are left out.

        Args:
            summaries_by_fingerprint: the summaries to write; None: the recorded ones.
        """
        point_ids: list[str] = []
        for start in range(0, len(communities), _BATCH):
            batch = communities[start : start + _BATCH]
            summaries = summaries_by_fingerprint or await self.communities.summaries(
                tenant, [community.fingerprint for community in batch]
            )
            summarised = [community for community in batch if community.fingerprint in summaries]
            if not summarised:
                continue
            dense = await self.embedder.embed([embedded_text(summaries[community.fingerprint]) for community in summarised])
            points = [
                VectorPoint(
                    id=community_point_id(community.id, community.generation),
                    kind=NodeKind.COMMUNITY,
                    dense=vector,
                    text=searchable_text(summaries[community.fingerprint]),
                    generation=community.generation,
                )
                for community, vector in zip(summarised, dense, strict=True)
            ]
            await self.vectors.upsert(tenant, Collection.NODES, points)
            point_ids += [point.id for point in points]
        return point_ids
