"""The share of a tenant's graph that changed since the current generation was built, at the cost of the changes."""

from __future__ import annotations

from dataclasses import dataclass

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue, GenerationPointer
from agentic_rag_backend.stores.graph.base import KnowledgeStore

COUNTED = "graph_relationships"
"""The detail of a generation that holds the number of relationships in the graph when it was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Measures how much of the graph changed documents affect."""

    documents: DocumentCatalogue
    graph: KnowledgeStore

    async def changed_share(self, tenant: TenantId, pointer: GenerationPointer) -> float:
        """Return changed relationships ÷ earlier relationships, at least 0; 1.0 if that is not known.

        Changed relationships are those in documents that are new or changed since, plus the number by which the graph shrank.
        All relationships of an edited document count, so that the share is rather too high than too low.
        """
        before = pointer.details.get(COUNTED)
        visibility = await self.documents.visibility(tenant, since=pointer.built_from)
        if pointer.generation == 0 or visibility.whole or not isinstance(before, int) or before == 0:
            return 1.0
        fresh: set[str] = set()
        visible_documents = [document for document, version in visibility.versions.items() if version]
        if visible_documents:
            async for batch in self.graph.all_relationships(tenant, visible_documents):
                fresh.update(relationship.id for relationship in batch)
        relationship_count = (await self.graph.counts(tenant)).relationships
        return (len(fresh) + max(0, before - relationship_count)) / before
