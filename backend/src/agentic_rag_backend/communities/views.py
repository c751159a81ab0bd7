"""Show communities: each joined with its summary and with what is visible now."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from agentic_rag_backend.communities.visibility import supporting_chunks, visible_summary
from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import Community, CommunitySummary, Finding, Support
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.base import CommunityCatalogue, CommunityPointer, DocumentCatalogue
from agentic_rag_backend.stores.graph.base import CommunityStore

_ATTEMPTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityView:
    """A community as a reader may see it.

    ``findings`` hold only statements all of whose passages are visible. ``summary`` and ``keywords`` are empty, and
    ``withheld`` true, while the prose rests on a passage that is not. ``sources`` are the visible passages behind it all.
    ``written_by`` is the model that wrote the summary.
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
    community: Community, summary: CommunitySummary, shown: Mapping[str, int], *, stale: bool
) -> CommunityView | None:
    """Return what of a community may be shown, or None where no passage behind it is visible any more.

    Args:
        shown: version by chunk id, for the chunks that the catalogue shows now.
    """
    behind = dict.fromkeys([*summary.sources, *(source for finding in summary.findings for source in finding.sources)])
    sources = tuple(replace(each, version=shown[each.chunk_id]) for each in behind if each.chunk_id in shown)
    if not sources:
        return None
    visible = visible_summary(summary, shown)
    return CommunityView(
        id=community.id,
        name=visible.name,
        summary=visible.summary,
        keywords=visible.keywords,
        findings=visible.findings,
        entity_count=community.entity_count,
        level=community.level,
        parent_id=community.parent_id,
        generation=community.generation,
        rating=visible.rating,
        sources=sources,
        stale=stale or len(sources) < len(behind),
        withheld=not visible.summary,
        written_by=visible.model,
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
        visible = await self._documents.hydrate(tenant, supporting_chunks(summaries.values()))
        shown = {id: found.chunk.version for id, found in visible.items() if passes(found)}
        views = []
        for each in communities:
            summary = summaries.get(each.fingerprint)
            view = None if summary is None else visible_view(each, summary, shown, stale=pointer.stale)
            if view is not None:
                views.append(view)
        return views
