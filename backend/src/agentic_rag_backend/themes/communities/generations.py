"""Generations of communities in the stores: write, restore, and remove statements of deleted documents."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentic_rag_backend.domain.graph import Community, CommunitySummary, Label, community_point_id
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.knowledge.visible.summaries import passages_behind, visible_summary
from agentic_rag_backend.language.sentences import split_sentences
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.stores.catalogue.documents.document_catalogue import DocumentCatalogue
from agentic_rag_backend.stores.catalogue.summaries.generations import CommunityCatalogue, GenerationPointer
from agentic_rag_backend.stores.graph.base import CommunityStore, GraphStore
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, Vector, VectorPoint, VectorStore
from agentic_rag_backend.telemetry.logs import get_logger
from agentic_rag_backend.themes.communities.detection.community_plan import PlannedCommunity

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


LEFT = "left"
"""Prompt version of a summary that scrubbing reduced: no prompt wrote it, so no rebuild reuses it as its own summary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityScrubber:
    """Removes from communities, in catalogue and vectors, all statements that visible passages no longer support.

    A community keeps its other findings, and gets its prose again when it is rebuilt.
    """

    documents: DocumentCatalogue
    graph: GraphStore
    restorer: Restorer

    async def resting_on(self, tenant: TenantId, document_id: str) -> int:
        """Return of how many communities the summaries rest on passages of a document."""
        return len({community.fingerprint for community in await self._resting_on(tenant, document_id)})

    async def scrub(self, tenant: TenantId, document_id: str) -> None:
        """Remove the statements that rest on a document whose passages are not visible any more. Repeatable.

        A concurrent rebuild that had read them may record them again; its generation is stale from the start.
        """
        # Readers see the summary written last.
        affected = {community.fingerprint: community for community in await self._resting_on(tenant, document_id)}
        if not affected:
            return
        communities = self.restorer.communities
        generation = (await communities.pointer(tenant)).generation
        current = await self.graph.communities(tenant, generation) if generation else []
        visible = await passages_behind(self.documents, tenant, affected.values())
        scrubbed_summaries = [_without_document(visible_summary(summary, visible), document_id) for summary in affected.values()]
        # Points before records: after an interruption, the records identify the remaining work.
        searched = [
            community
            for community in current
            if community.fingerprint in affected and len(community.entity_ids) >= MIN_SEARCHABLE
        ]
        await self.restorer.restore(tenant, searched, {summary.fingerprint: summary for summary in scrubbed_summaries})
        await communities.replace_summaries(tenant, scrubbed_summaries)

    async def _resting_on(self, tenant: TenantId, document_id: str) -> list[CommunitySummary]:
        return await self.restorer.communities.summaries_resting_on(tenant, document_id)


def _without_document(summary: CommunitySummary, document_id: str) -> CommunitySummary:
    """Return the visible part of a summary, without the document's passages among its sources."""

    def keep_sources(label: Label) -> Label:
        return replace(label, sources=tuple(source for source in label.sources if source.document_id != document_id))

    return replace(
        summary,
        prompt_version=LEFT,
        title=None if summary.title is None else keep_sources(summary.title),
        names=tuple(map(keep_sources, summary.names)),
        keywords=tuple(map(keep_sources, summary.keywords)),
        sources=summary.sources if summary.summary else (),
    )
