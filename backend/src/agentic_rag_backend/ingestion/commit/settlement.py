"""Settles names: if a document, or an edit of the graph, changes which entity a name means, other documents that use it follow.

A commit, or a removal, records the names whose meaning it may change. `Settlement.record_name` finds the documents in which a
name means another entity than it should, and `Settlement.rewrite_document` resolves the names of such a document again. In the
end, the graph does not depend on the order of the documents. Both are idempotent, and a process that is killed leaves the rest in
the outbox.

A commit settles the names that it recorded before its documents become visible (`Settlement.settle_names`). The relay delivers
what removals and edits record, and what a commit could not settle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from agentic_rag_backend.domain.document import DocumentVersion
from agentic_rag_backend.domain.graph import Extraction
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError, NotFound
from agentic_rag_backend.ingestion.vectors.fact_points import FactPoints
from agentic_rag_backend.jobs.coordination.tenant_locks import confirm_lock
from agentic_rag_backend.knowledge.extraction.fields import with_fields
from agentic_rag_backend.knowledge.identity.decisions import entity_id
from agentic_rag_backend.knowledge.identity.edits import entities_of
from agentic_rag_backend.knowledge.resolution.resolver import Resolver
from agentic_rag_backend.stores.catalogue.base import (
    DocumentCatalogue,
    GraphEditCatalogue,
    Outbox,
    OutboxEntry,
    TenantDirectory,
    Topic,
)
from agentic_rag_backend.telemetry.logs import get_logger

SETTLED_WITHIN_S = 30.0
"""Seconds after which a commit leaves the rest of the names to the relay, so that it does not keep other documents waiting."""
_PAGE = 100

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

    async def record_name(self, tenant: TenantId, name: str) -> None:
        """Record every document in which a normalised name means another entity than it should."""
        edits = await self.resolver.edits(tenant)
        outdated = await self.resolver.identities.outdated(tenant, name, edits)
        await self.outbox.add_all(tenant, Topic.KNOWLEDGE, outdated)

    async def record_edit(self, tenant: TenantId, number: str) -> None:
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

    async def rewrite_document(self, tenant: TenantId, document_id: str) -> None:
        """Resolve the names of a document's visible version again, and write its knowledge again. Other versions stay."""
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
        extractions = [prepared[chunk] for chunk in order]
        await self._write_knowledge(tenant, replace(ready.version, title=document.title, metadata=document.metadata), extractions)
        await self.documents.record_repair(tenant, document_id, knowledge=True)

    async def settle_names(self, tenant: TenantId, versions: Mapping[str, int], flush: Callable[[], Awaitable[None]]) -> None:
        """Settle the recorded names of a tenant, within a limited time. The caller has the lock of the tenant's commits.

        Names that cannot be settled now stay recorded for the relay, so that they delay no document.

        Args:
            versions: by document, the version that the caller has written and has not published yet.
            flush: makes writes durable. It is called before entries are removed.
        """
        until = asyncio.get_running_loop().time() + SETTLED_WITHIN_S
        for topic in (Topic.NAMES, Topic.KNOWLEDGE):
            try:
                while entries := await self.outbox.pending(tenant, limit=_PAGE, topics=[topic]):
                    handled = [entry for entry in entries if await self._handle_entry(tenant, entry, versions)]
                    if handled and topic is Topic.KNOWLEDGE:
                        await flush()
                    await self.outbox.delivered(tenant, handled)
                    if len(handled) < len(entries) or asyncio.get_running_loop().time() > until:
                        _log.warning("names_left_to_relay", tenant=tenant.value, topic=topic.value)
                        break
            except AgenticRagError as error:
                _log.warning("names_left_to_relay", tenant=tenant.value, topic=topic.value, code=error.code, reason=error.message)

    async def _handle_entry(self, tenant: TenantId, entry: OutboxEntry, versions: Mapping[str, int]) -> bool:
        """Deliver an entry. Return False if it failed."""
        try:
            await confirm_lock()
            if entry.topic is Topic.NAMES:
                await self.record_name(tenant, entry.subject)
            else:
                await self.rewrite_document(tenant, entry.subject)
                await self._written_document(tenant, entry.subject, versions.get(entry.subject, 0))
        except Exception:  # noqa: BLE001
            # A fault in the names of one document must not stop the commit of the others.
            _log.exception("entry_not_delivered", tenant=tenant.value, topic=entry.topic.value)
            return False
        return True

    async def _written_document(self, tenant: TenantId, document_id: str, version: int) -> None:
        """Resolve the names of a version again that is written and not visible yet."""
        try:
            ready = await self.documents.ready(tenant, document_id, version) if version else None
        except NotFound:
            return
        if ready is not None and ready.document.current_version < version:
            await self._write_knowledge(tenant, ready.version, [item.extraction for item in ready.prepared])

    async def _write_knowledge(self, tenant: TenantId, version: DocumentVersion, extractions: Sequence[Extraction]) -> None:
        ontology = await self.tenants.ontology(tenant) if version.metadata else None
        extractions = with_fields(extractions, version.metadata, ontology)
        resolved = await self.resolver.resolve(tenant, version.document_id, version.version, version.title, extractions)
        await self.facts.replace_knowledge(tenant, resolved)
