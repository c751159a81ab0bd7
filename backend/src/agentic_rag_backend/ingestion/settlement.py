"""Settles names: if a document, or an edit of the graph, changes which entity a name means, other documents that use it follow.

A commit, or a removal, records the names whose meaning it may change. Then the relay delivers them, between the commits of the
tenant: `Settlement.name` finds the documents in which a name means another entity than it should, and `Settlement.document`
resolves the names of such a document again. In the end, the graph does not depend on the order of the documents. Both are
idempotent, and a process that is killed leaves the rest in the outbox.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import NotFound
from agentic_rag_backend.ingestion.fact_points import FactPoints
from agentic_rag_backend.knowledge.extraction.fields import with_fields
from agentic_rag_backend.knowledge.identity.decisions import entity_id
from agentic_rag_backend.knowledge.identity.edits import entities_of
from agentic_rag_backend.knowledge.resolution.resolver import Resolver
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue, GraphEditCatalogue, TenantDirectory
from agentic_rag_backend.stores.catalogue.ports.outbox import Outbox, Topic
from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Settlement:
    """Delivers the recorded names, under the tenant's commit lock."""

    documents: DocumentCatalogue
    tenants: TenantDirectory
    outbox: Outbox
    edits: GraphEditCatalogue
    resolver: Resolver
    facts: FactPoints

    async def name(self, tenant: TenantId, name: str) -> None:
        """Record every document in which a normalised name means another entity than it should."""
        edits = await self.resolver.edits(tenant)
        outdated = await self.resolver.identities.outdated(tenant, name, edits)
        await self.outbox.add_all(tenant, Topic.KNOWLEDGE, outdated)

    async def edit(self, tenant: TenantId, number: str) -> None:
        """Record every document that an edit of the graph changes, whether it is in effect or was undone.

        The names that it takes apart follow, because other documents may use them as aliases.
        """
        try:
            edit = await self.edits.edit(tenant, int(number))
        except NotFound:
            return  # the tenant was removed
        names = [*edit.draft.names, *edit.draft.kept_names]
        entities = [*entities_of(edit.draft), *(entity_id(tenant, name) for name in names)]
        await self.outbox.add_all(tenant, Topic.KNOWLEDGE, await self.facts.graph.documents_naming(tenant, entities))
        await self.outbox.add_all(tenant, Topic.NAMES, names)

    async def document(self, tenant: TenantId, document_id: str) -> None:
        """Resolve the names of a document's visible version again, and write its knowledge anew. Others are left alone."""
        try:
            document = await self.documents.document(tenant, document_id)
            version = document.current_version
            if version == 0:
                return
            ready = await self.documents.ready(tenant, document_id, version)
        except NotFound:
            return  # its deletion removes everything
        prepared = {item.chunk.id: item.extraction for item in ready.prepared}
        order = (await self.documents.visible_chunk_ids(tenant, [document_id])).get(document_id, [])
        if not set(order) <= prepared.keys():
            _log.warning("names_not_settled", tenant=tenant.value, document=document_id, reason="results are missing")
            return
        ontology = await self.tenants.ontology(tenant) if document.metadata else None
        extractions = with_fields([prepared[chunk] for chunk in order], document.metadata, ontology)
        await self.facts.replace(tenant, await self.resolver.resolve(tenant, document_id, version, document.title, extractions))
        await self.documents.record_repair(tenant, document_id, knowledge=True)
