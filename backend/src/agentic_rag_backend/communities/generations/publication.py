"""Write a new generation of communities while the current one stays in use, then make the new one current."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentic_rag_backend.communities.detection.community_plan import PlannedCommunity
from agentic_rag_backend.domain.graph import CommunitySummary, community_point_id
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.language.sentences import split_sentences
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.stores.catalogue.base import CommunityCatalogue, GenerationPointer
from agentic_rag_backend.stores.graph.base import CommunityStore
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, Vector, VectorPoint, VectorStore
from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)

_BATCH = 32
MIN_SEARCHABLE = 3
"""Communities with fewer members are not indexed: a single entity is found as an entity, a pair as a fact."""
_EMBEDDED_SENTENCES = 2
_EMBEDDED_CHARACTERS = 320
"""Characters of the prose that are embedded with name and keywords; longer text takes longer and hardly finds more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationDraft:
    """A generation before it is written.

    ``summaries`` are by fingerprint; ``rewritten`` are the ids of communities with new summaries; ``built_from`` is the
    state_version the graph was read at.
    """

    planned: Sequence[PlannedCommunity]
    summaries: Mapping[str, CommunitySummary]
    rewritten: frozenset[str]
    built_from: int
    details: Mapping[str, Any]


class Publisher:
    """Publishes a generation.

    Args:
        retire_after_s: seconds the old generation stays after the flip, for readers that have begun with it.
    """

    def __init__(
        self,
        *,
        communities: CommunityCatalogue,
        graph: CommunityStore,
        vectors: VectorStore,
        embedder: Embedder,
        retire_after_s: float = 1.0,
    ) -> None:
        self._communities = communities
        self._graph = graph
        self._vectors = vectors
        self._embedder = embedder
        self._retire_after_s = retire_after_s

    async def publish(
        self,
        tenant: TenantId,
        draft: GenerationDraft,
        *,
        previous: GenerationPointer,
        report: Callable[[str, int, int], Awaitable[None]],
    ) -> int:
        """Return the generation that is now current. A failure before the flip leaves the old generation and nothing new."""
        planned = draft.planned
        searchable = [community for community in planned if len(community.members) >= MIN_SEARCHABLE]
        generation = await self._communities.next_generation(tenant)
        point_ids: list[str] = []
        try:
            await self._graph.write_communities(
                tenant, generation, [community.make_community(generation) for community in planned]
            )
            kept_vectors = await self._kept_vectors(tenant, draft, previous)
            for start in range(0, len(searchable), _BATCH):
                await report("embed", start, len(searchable))
                batch = searchable[start : start + _BATCH]
                points = await self._make_points(batch, draft.summaries, kept_vectors, generation)
                point_ids += [point.id for point in points]
                await self._vectors.upsert(tenant, Collection.NODES, points)
            await report("publish", len(searchable), len(searchable))
            await self._vectors.flush()
            await self._communities.publish(tenant, generation, built_from=draft.built_from, details=draft.details)
        except BaseException:
            await asyncio.shield(self._withdraw_generation(tenant, generation, point_ids))
            raise
        await self._retire_later(tenant, generation, [community.fingerprint for community in planned])
        return generation

    async def _kept_vectors(self, tenant: TenantId, draft: GenerationDraft, previous: GenerationPointer) -> dict[str, Vector]:
        """Return the vectors of communities with the same embedded text as in the current generation."""
        if previous.generation == 0 or previous.details.get("written_under") != draft.details.get("written_under"):
            return {}
        old = {community.fingerprint: community.id for community in await self._graph.communities(tenant, previous.generation)}
        unchanged_points = {
            community.id: old[community.fingerprint]
            for community in draft.planned
            if community.fingerprint in old and community.id not in draft.rewritten
        }
        points = {community_point_id(before, previous.generation): id for id, before in unchanged_points.items()}
        vectors = await self._vectors.vectors(tenant, Collection.NODES, list(points))
        return {points[point]: vector for point, vector in vectors.items()}

    async def _make_points(
        self,
        batch: Sequence[PlannedCommunity],
        summaries: Mapping[str, CommunitySummary],
        kept_vectors: Mapping[str, Vector],
        generation: int,
    ) -> list[VectorPoint]:
        texts = {community.id: searchable_text(summaries[community.fingerprint]) for community in batch}
        brief = {community.id: embedded_text(summaries[community.fingerprint]) for community in batch}
        fresh = [id for id in texts if id not in kept_vectors]
        vectors = dict(kept_vectors)
        if fresh:
            embedded = await self._embedder.embed([brief[id] for id in fresh])
            vectors |= dict(zip(fresh, embedded, strict=True))
        return [
            VectorPoint(
                id=community_point_id(id, generation),
                kind=NodeKind.COMMUNITY,
                dense=vectors[id],
                text=text,
                generation=generation,
            )
            for id, text in texts.items()
        ]

    async def _withdraw_generation(self, tenant: TenantId, generation: int, points: Sequence[str]) -> None:
        """Remove the data of a generation that did not become current; the next rebuild removes the rest."""
        try:
            if (await self._communities.pointer(tenant)).generation == generation:
                return
            await self._graph.write_communities(tenant, generation, [])
            if points:
                await self._vectors.delete(tenant, Collection.NODES, points)
        except AgenticRagError as error:
            _log.warning("community_generation_left", tenant=str(tenant), generation=generation, reason=error.message)

    async def _retire_later(self, tenant: TenantId, generation: int, fingerprints: Sequence[str]) -> None:
        await asyncio.sleep(self._retire_after_s)
        await self._drop_older(tenant, generation, fingerprints)

    async def remove_leftovers(self, tenant: TenantId, generation: int) -> None:
        """Remove leftovers of a rebuild that was killed after its generation had become current, long before this."""
        communities = await self._graph.communities(tenant, generation)
        await self._drop_older(tenant, generation, [community.fingerprint for community in communities])

    async def _drop_older(self, tenant: TenantId, generation: int, fingerprints: Sequence[str]) -> None:
        await self._vectors.delete_generations(tenant, below=generation)
        await self._graph.delete_generations(tenant, below=generation)
        await self._communities.drop_summaries(tenant, keep=fingerprints)


def embedded_text(summary: CommunitySummary) -> str:
    """Return the text for the vector of a community: names, title, keywords and the first two sentences, cut at a word."""
    prose = " ".join(sentence.text for sentence in split_sentences(summary.summary)[:_EMBEDDED_SENTENCES])
    if len(prose) > _EMBEDDED_CHARACTERS:
        prose = prose[:_EMBEDDED_CHARACTERS].rpartition(" ")[0]
    names_text = ", ".join(label.text for label in summary.names) if summary.title is not None else ""
    return f"{names_text}{'. ' if names_text else ''}{summary.name}. {', '.join(summary.keyword_texts)}. {prose}"


def searchable_text(summary: CommunitySummary) -> str:
    """Return the words that a community is found by: name, prose and keywords."""
    return f"{summary.name}. {summary.summary} {', '.join(summary.keyword_texts)}"
