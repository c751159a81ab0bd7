"""Resolves negative constraints with the tenant's graph: the passages of avoided entities, and the filter without them."""

from __future__ import annotations

from collections.abc import Sequence

from agentic_rag_backend.domain.filters import ChunkSet, Comparison, Filter, LinkCondition, Not
from agentic_rag_backend.domain.graph import normalise_name
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.visible.name_bearers import BearerReader, namesakes
from agentic_rag_backend.retrieval.agentic.constraints import Avoided, NegativeConstraint
from agentic_rag_backend.retrieval.agentic.plan import narrow_filter
from agentic_rag_backend.retrieval.caching.reuse import forbid_reuse
from agentic_rag_backend.retrieval.passages.linked_chunks import LinkedChunks


class ConstraintResolver:
    """Finds the passages that mention avoided entities, and the documents about them.

    Args:
        links: finds passages by entity.
        graphs: the tenants' graphs.
        bearers: tells apart the documents of entities that share a name.
    """

    def __init__(self, links: LinkedChunks, graphs: TenantGraphs, bearers: BearerReader) -> None:
        self._links = links
        self._graphs = graphs
        self._bearers = bearers

    async def resolve_constraints(
        self, query: Query, constraints: Sequence[NegativeConstraint]
    ) -> tuple[list[Avoided], list[str]]:
        """Return the constraints with their passages, and notes about those that have no effect.

        Raises:
            StoreUnavailable: the graph, which a constraint of the request needs, cannot be read.
        """
        exclusions: list[Avoided] = []
        notes: list[str] = []
        for constraint in constraints:
            if constraint.kind != "entity":
                exclusions.append(Avoided(constraint))
                continue
            try:
                chunks = await self._links.resolve(query.tenant, LinkCondition("entity", "in", (constraint.value,)))
                documents = await self._documents(query, constraint.value)
            except StoreUnavailable as error:
                if constraint.source == "request":
                    raise
                forbid_reuse()
                notes.append(f"a negative constraint was dropped: {error.code}")
                continue
            if isinstance(chunks, ChunkSet) and chunks.ids:
                exclusions.append(Avoided(constraint, chunks.ids, documents))
            else:
                notes.append(f"negative_constraints: no visible passage mentions the entity {constraint.value[:60]!r}")
        return exclusions, notes

    async def _documents(self, query: Query, value: str) -> frozenset[str]:
        """Return the documents about the entity of an id, and about no other entity of its name."""
        graph = await self._graphs.graph(query.tenant)
        number = graph.find_mentioned_number(value)
        if number is None:
            return frozenset()
        name = normalise_name(graph.entity(number).name)
        numbers = namesakes(graph, name)
        if len(numbers) < 2:
            return frozenset()
        bearers = (await self._bearers.read(query.tenant_id, graph, {name: numbers})).get(name, ())
        other_documents = frozenset[str]().union(*(bearer.documents for bearer in bearers if bearer.number != number))
        return frozenset[str]().union(*(bearer.documents for bearer in bearers if bearer.number == number)) - other_documents

    async def filter(self, query: Query, plan: Filter | None) -> Filter | None:
        """Return the filter of a plan without links, in addition to the query's own filter.

        Raises:
            StoreUnavailable: the graph cannot be read.
        """
        return narrow_filter(query.filters, await self._links.resolve(query.tenant, plan))


def without(narrowing: Filter | None, avoided: Sequence[Avoided]) -> Filter | None:
    """Return the filter without what avoided entities have, so that searches find other passages in their place."""
    chunks = frozenset[str]().union(*(constraint.chunks for constraint in avoided))
    documents = frozenset[str]().union(*(constraint.documents for constraint in avoided))
    if chunks:
        narrowing = narrow_filter(narrowing, Not(ChunkSet(chunks, LinkCondition("entity", "in"))))
    return narrow_filter(narrowing, Comparison("document_id", "nin", tuple(sorted(documents)))) if documents else narrowing
