"""Streams a tenant's visible graph: entities, then relationships, a batch at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime

import numpy as np

from agentic_rag_backend.domain.tenant import Tenant
from agentic_rag_backend.knowledge.graph_files.base import ExportedEntity, GraphWriter
from agentic_rag_backend.knowledge.graph_files.graphml import GraphmlWriter
from agentic_rag_backend.knowledge.graph_files.node_link import NodeLinkWriter
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.knowledge.visible.fact_reader import FactReader
from agentic_rag_backend.knowledge.visible.facts import edge_of
from agentic_rag_backend.stores.graph.base import KnowledgeStore

_ENTITIES_PER_BATCH = 200

WRITERS: dict[str, type[GraphWriter]] = {"graphml": GraphmlWriter, "json": NodeLinkWriter}
"""The formats by name."""


class GraphExport:
    """Writes the graph that a tenant may see.

    Args:
        graphs: the tenants' graphs in memory.
        graph: the record of relationships.
    """

    def __init__(self, graphs: TenantGraphs, graph: KnowledgeStore, facts: FactReader) -> None:
        self._graphs = graphs
        self._store = graph
        self._facts = facts

    async def stream(self, tenant: Tenant, format: str, *, as_of: datetime | None = None) -> AsyncGenerator[str, None]:
        """Yield the parts of a file in a format of `WRITERS`. Entities and relationships are ordered by id.

        A document that changes during the export may appear in its older or its newer version, or without relationships.

        Args:
            as_of: only relationships that held at this time; None: now.

        Raises:
            StoreUnavailable: the graph store or the catalogue did not answer.
        """
        graph = await self._graphs.graph(tenant)
        writer = WRITERS[format]()
        yield writer.begin()
        numbers = await asyncio.to_thread(_by_id, graph)
        for start in range(0, len(numbers), _ENTITIES_PER_BATCH):
            yield writer.entities(_export_entity(graph, numbers[start : start + _ENTITIES_PER_BATCH]))
        yield writer.between()
        moment = as_of or datetime.now(UTC)
        async with aclosing(self._store.all_relationships(tenant.id)) as batches:  # type: ignore[type-var]
            async for batch in batches:
                facts = await self._facts.read(tenant.id, graph, [edge_of(part) for part in batch], moment=moment)
                if facts:
                    yield writer.facts(list(facts.values()))
        yield writer.end()


def _by_id(graph: TenantGraph) -> Sequence[int]:
    numbers: list[int] = np.flatnonzero(graph.document_frequency > 0).tolist()
    return sorted(numbers, key=graph.entity_texts.ids.__getitem__)


def _export_entity(graph: TenantGraph, numbers: Sequence[int]) -> list[ExportedEntity]:
    return [ExportedEntity(graph.entity(number), int(graph.document_frequency[number])) for number in numbers]
