"""Show communities: each joined with its summary and with what is visible now."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from agentic_rag_backend.communities.visibility import further_chunks, supporting_chunks, visible_summary
from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import Community, CommunitySummary, Finding, Support
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.base import CommunityCatalogue, CommunityPointer, DocumentCatalogue
from agentic_rag_backend.stores.graph.base import CommunityStore

_ATTEMPTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityView:
    """A community as a reader may see it.

    ``findings`` hold only statements all of whose passages are visible. ``summary`` is empty, and ``withheld`` true, while the
    prose rests on a passage that is not. ``name`` and ``keywords`` hold only what a visible passage says; a community of which
    no name is left is called by its id. ``sources`` are the visible passages behind prose and findings. ``written_by`` is the
    model that wrote the summary.
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
    """Return what of a community may be shown, or None where no passage behind it is visible any more.

    Args:
        visible: by id, the chunks that the catalogue shows now.
    """
    behind = dict.fromkeys([*summary.sources, *(source for finding in summary.findings for source in finding.sources)])
    there = (each for each in behind if each.chunk_id in visible)
    sources = tuple(replace(each, version=visible[each.chunk_id].chunk.version) for each in there)
    if not sources:
        return None
    shown = visible_summary(summary, visible)
    return CommunityView(
        id=community.id,
        name=shown.name or f"Theme {community.id[:8]}",
        summary=shown.summary,
        keywords=shown.keyword_texts,
        findings=shown.findings,
        entity_count=community.entity_count,
        level=community.level,
        parent_id=community.parent_id,
        generation=community.generation,
        rating=shown.rating,
        sources=sources,
        stale=stale or len(sources) < len(behind),
        withheld=not shown.summary,
        written_by=shown.model,
    )


class CommunityReader:
    """Reads the current generation, whole: never half of one and half of the next."""

    def __init__(self, *, documents: DocumentCatalogue, communities: CommunityCatalogue, graph: CommunityStore) -> None:
        self._documents = documents
        self._communities = communities
        self._graph = graph

    async def read(
        self, tenant: TenantId, *, level: int | None = None, ids: Sequence[str] | None = None
    ) -> tuple[CommunityPointer, list[Community]]:
        """Return the pointer and its communities; read again if the generation was replaced in between."""
        pointer = await self._communities.pointer(tenant)
        for _ in range(_ATTEMPTS):
            if pointer.generation == 0:
                return pointer, []
            found = await self._graph.communities(tenant, pointer.generation, level=level, ids=ids)
            again = await self._communities.pointer(tenant)
            if again.generation == pointer.generation:
                return again, found
            pointer = again
        return pointer, found

    async def views(
        self,
        tenant: TenantId,
        pointer: CommunityPointer,
        communities: Sequence[Community],
        *,
        passes: Callable[[VisibleChunk], bool] = lambda _: True,
    ) -> list[CommunityView]:
        """Return what of ``communities`` may be shown, in their order; those without a visible passage are left out.

        A passage that does not pass counts as one that is not visible.
        """
        if not communities:
            return []
        summaries = await self._communities.summaries(tenant, [each.fingerprint for each in communities])
        visible = await self._visible(tenant, supporting_chunks(summaries.values()), passes)
        visible |= await self._visible(tenant, further_chunks(summaries.values(), visible), passes)
        views = []
        for each in communities:
            summary = summaries.get(each.fingerprint)
            view = None if summary is None else visible_view(each, summary, visible, stale=pointer.stale)
            if view is not None:
                views.append(view)
        return views

    async def _visible(
        self, tenant: TenantId, ids: Sequence[str], passes: Callable[[VisibleChunk], bool]
    ) -> dict[str, VisibleChunk]:
        found = await self._documents.hydrate(tenant, ids) if ids else {}
        return {id: chunk for id, chunk in found.items() if passes(chunk)}
