"""Community views: each community joined with its summary and with the current visibility of its passages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from agentic_rag_backend.communities.theme_index import of_one_generation
from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import Community, CommunitySummary, Finding, Support
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.visible.summaries import all_supports, passages_behind, visible_sources, visible_summary
from agentic_rag_backend.stores.catalogue.base import CommunityCatalogue, DocumentCatalogue, GenerationPointer
from agentic_rag_backend.stores.graph.base import CommunityStore


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityView:
    """The visible part of a community.

    ``findings`` hold only statements whose passages are all visible. ``summary`` is empty and ``withheld`` is true while a
    passage behind the prose is not visible. ``name`` and ``keywords`` hold only words of visible passages. If no name is left,
    the name is the community's id. ``sources`` are the visible passages behind prose and findings. ``written_by`` is the model
    that wrote the summary.
    """

    id: str
    name: str
    summary: str
    keywords: tuple[str, ...]
    findings: tuple[Finding, ...]
    entity_count: int
    level: int
    parent_id: str | None
    generation: int
    rating: float
    sources: tuple[Support, ...]
    stale: bool
    withheld: bool
    written_by: str


def visible_view(
    community: Community, summary: CommunitySummary, visible: Mapping[str, VisibleChunk], *, stale: bool
) -> CommunityView | None:
    """Return the visible view of a community, or None if no passage behind it is visible any more.

    Args:
        visible: by id, the chunks that the catalogue shows now.
    """
    sources, complete = visible_sources(summary, visible)
    if not sources:
        return None
    visible_part = visible_summary(summary, visible)
    return CommunityView(
        id=community.id,
        name=visible_part.name or f"Theme {community.id[:8]}",
        summary=visible_part.summary,
        keywords=visible_part.keyword_texts,
        findings=visible_part.findings,
        entity_count=community.entity_count,
        level=community.level,
        parent_id=community.parent_id,
        generation=community.generation,
        rating=visible_part.rating,
        sources=sources,
        stale=stale or not complete,
        withheld=not visible_part.summary,
        written_by=visible_part.model,
    )


@dataclass(frozen=True, slots=True)
class JudgedCommunity:
    """The visible part of a community, with the passages that decide about it.

    Attributes:
        view: None if no passage behind the community is visible, or if it has no summary.
        chunk_ids: the passages on which any part of the summary rests, visible or not.
        versions: the versions of the visible ones, by document.
    """

    id: str
    view: CommunityView | None
    chunk_ids: frozenset[str] = frozenset()
    versions: Mapping[str, int] = field(default_factory=dict)


class CommunityReader:
    """Reads the current generation as a whole, never parts of two generations."""

    def __init__(self, *, documents: DocumentCatalogue, communities: CommunityCatalogue, graph: CommunityStore) -> None:
        self._documents = documents
        self._communities = communities
        self._graph = graph

    async def read(
        self, tenant: TenantId, *, level: int | None = None, ids: Sequence[str] | None = None
    ) -> tuple[GenerationPointer, list[Community]]:
        """Return the pointer and its communities; read again if the generation was replaced in between."""
        return await of_one_generation(
            lambda: self._communities.pointer(tenant),
            lambda generation: self._graph.communities(tenant, generation, level=level, ids=ids),
        )

    async def make_views(
        self, tenant: TenantId, pointer: GenerationPointer, communities: Sequence[Community]
    ) -> list[CommunityView]:
        """Return the visible views of ``communities``, in their order; communities without a visible passage are left out."""
        return [
            judged_community.view
            for judged_community in await self.judge_communities(tenant, pointer, communities)
            if judged_community.view is not None
        ]

    async def judge_communities(
        self,
        tenant: TenantId,
        pointer: GenerationPointer,
        communities: Sequence[Community],
        *,
        passes: Callable[[VisibleChunk], bool] = lambda _: True,
    ) -> list[JudgedCommunity]:
        """Return the visible part of every one of ``communities``, in their order.

        A passage that does not pass counts as invisible.
        """
        if not communities:
            return []
        summaries = await self._communities.summaries(tenant, [community.fingerprint for community in communities])
        visible = await passages_behind(self._documents, tenant, summaries.values(), passes)
        return [
            _judge_community(community, summaries.get(community.fingerprint), visible, stale=pointer.stale)
            for community in communities
        ]


def _judge_community(
    community: Community, summary: CommunitySummary | None, visible: Mapping[str, VisibleChunk], *, stale: bool
) -> JudgedCommunity:
    if summary is None:
        return JudgedCommunity(community.id, None)
    chunk_ids = frozenset(support.chunk_id for support in all_supports(summary))
    chunks = [visible[id].chunk for id in chunk_ids & visible.keys()]
    versions = {chunk.document_id: chunk.version for chunk in chunks}
    return JudgedCommunity(community.id, visible_view(community, summary, visible, stale=stale), chunk_ids, versions)
