"""Remove the words of a document from communities at once, before the communities are rebuilt."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agentic_rag_backend.communities.generations.publication import MIN_SEARCHABLE
from agentic_rag_backend.communities.generations.restoration import Restorer
from agentic_rag_backend.domain.graph import CommunitySummary, Label
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.visible.summaries import passages_behind, visible_summary
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue
from agentic_rag_backend.stores.graph.base import GraphStore

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
