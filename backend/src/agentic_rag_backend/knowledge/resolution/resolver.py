"""Turns the extractions of a document version into knowledge. The steps whose cost a document decides run off the event loop."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from agentic_rag_backend.domain.graph import DocumentKnowledge, Extraction
from agentic_rag_backend.domain.tenant import TenantId, require_tenant
from agentic_rag_backend.knowledge.identity.edits import NO_EDITS, Edits
from agentic_rag_backend.knowledge.identity.identities import Identities
from agentic_rag_backend.knowledge.offload import Offload, run_in_place
from agentic_rag_backend.knowledge.resolution.assembly import ResolvedVersion, build_knowledge
from agentic_rag_backend.knowledge.resolution.groups import names_of_document
from agentic_rag_backend.knowledge.resolution.limits import NameLimits
from agentic_rag_backend.stores.catalogue.base import GraphEditCatalogue
from agentic_rag_backend.stores.graph.base import KnowledgeStore

_TENANTS_READ = 256
"""Tenants whose edits are kept in memory."""


class Resolver:
    """Turns a document's extractions into knowledge with ids.

    Args:
        store: the graph. It is only read.
        edits: the edits of graphs. None: there are none.
        limits: bounds of what is read from one document.
        offload: runs the steps without reads.
    """

    def __init__(
        self,
        store: KnowledgeStore,
        edits: GraphEditCatalogue | None = None,
        *,
        limits: NameLimits | None = None,
        offload: Offload = run_in_place,
    ) -> None:
        self.identities = Identities(store, offload)
        self._edits = edits
        self._limits = limits or NameLimits()
        self._offload = offload
        self._read: OrderedDict[TenantId, tuple[int, Edits]] = OrderedDict()

    async def edits(self, tenant: TenantId) -> Edits:
        """Return the edits of a tenant's graph that are in effect. They are read again only after they changed."""
        if self._edits is None:
            return NO_EDITS
        changes, cached = await self._edits.changes(tenant), self._read.get(tenant)
        if cached is None or cached[0] != changes:
            # An edit that comes between the two reads is read once more.
            cached = self._read[tenant] = (changes, Edits(await self._edits.in_effect(tenant)))
        self._read.move_to_end(tenant)
        if len(self._read) > _TENANTS_READ:
            self._read.popitem(last=False)
        return cached[1]

    async def resolve(
        self, tenant: TenantId, document_id: str, version: int, title: str, extractions: Sequence[Extraction]
    ) -> DocumentKnowledge:
        """Return the knowledge of version ``version`` of the document, with every name resolved to an entity id.

        Raises:
            ResourceLimit: resolving its names takes too much time or memory.
        """
        require_tenant(tenant)
        edits = await self.edits(tenant)
        items = sum(map(_count_items, extractions))
        names = await self._offload(names_of_document, extractions, self._limits, edits, items=items)
        assigned = await self.identities.assign(tenant, document_id, names, edits)
        resolved = ResolvedVersion(tenant, document_id, version, title, assigned.ids, assigned.unsettled)
        return await self._offload(build_knowledge, resolved, extractions, self._limits, edits, items=items)


def _count_items(extraction: Extraction) -> int:
    """Return how many names, statements and aliases an extraction has."""
    statements = len(extraction.relationships) + len(extraction.descriptions)
    return len(extraction.mentions) + 2 * (statements + len(extraction.aliases))
