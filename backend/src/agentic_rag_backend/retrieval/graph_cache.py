"""Tenants' graphs in memory: loaded when first needed, one load at a time, the least recently used dropped by bytes."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from agentic_rag_backend.domain.graph import Entity, Mention
from agentic_rag_backend.domain.tenant import Tenant, TenantId
from agentic_rag_backend.retrieval.tenant_graph import TenantGraph, build_tenant_graph
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue
from agentic_rag_backend.stores.graph.base import GraphStore


class TenantGraphs:
    """The graph of a tenant at its ``state_version``; an older one is never served.

    Args:
        max_bytes: memory for all graphs; the newest is kept even if it alone is larger.
    """

    def __init__(self, graph: GraphStore, documents: DocumentCatalogue, *, max_bytes: int) -> None:
        self._graph = graph
        self._documents = documents
        self._max_bytes = max_bytes
        self._held: OrderedDict[TenantId, tuple[int, dict[str, int], TenantGraph]] = OrderedDict()
        self._loading: dict[tuple[TenantId, int], asyncio.Task[TenantGraph]] = {}

    async def graph(self, tenant: Tenant) -> TenantGraph:
        """Return the tenant's graph, visible knowledge only.

        Raises:
            StoreUnavailable: the graph store or the catalogue did not answer.
        """
        held = self._held.get(tenant.id)
        if held is not None and held[0] >= tenant.state_version:
            self._held.move_to_end(tenant.id)
            return held[2]
        key = (tenant.id, tenant.state_version)
        task = self._loading.get(key)
        if task is None:
            task = asyncio.create_task(self._load(tenant))
            self._loading[key] = task
            task.add_done_callback(lambda done: self._ended(key, done))
        return await asyncio.shield(task)

    def _ended(self, key: tuple[TenantId, int], task: asyncio.Task[TenantGraph]) -> None:
        self._loading.pop(key, None)
        if not task.cancelled():
            task.exception()  # Looked at, so that a failure whose askers have all gone is not reported as forgotten.

    async def _load(self, tenant: Tenant) -> TenantGraph:
        visible = await self._documents.visible_versions(tenant.id)
        held = self._held.get(tenant.id)
        if held is not None and held[1] == visible:
            # Something else changed (a flag, a generation of communities): the knowledge did not.
            graph = held[2]
        else:
            entities: list[Entity] = []
            async for entity_batch in self._graph.all_entities(tenant.id):
                entities.extend(entity_batch)
            mentions: list[Mention] = []
            async for mention_batch in self._graph.all_mentions(tenant.id):
                mentions.extend(mention_batch)
            graph = await asyncio.to_thread(build_tenant_graph, entities, mentions, visible)
        self._keep(tenant, visible, graph)
        return graph

    def _keep(self, tenant: Tenant, visible: dict[str, int], graph: TenantGraph) -> None:
        held = self._held.get(tenant.id)
        if held is None or held[0] <= tenant.state_version:
            self._held[tenant.id] = (tenant.state_version, visible, graph)
            self._held.move_to_end(tenant.id)
        while len(self._held) > 1 and self.size_bytes > self._max_bytes:
            self._held.popitem(last=False)

    def forget(self, tenant: TenantId) -> None:
        """Drop a deleted tenant's graph."""
        self._held.pop(tenant, None)

    @property
    def size_bytes(self) -> int:
        """Memory held by all graphs."""
        return sum(graph.size_bytes for _, _, graph in self._held.values())
