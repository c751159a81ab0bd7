"""Dense and sparse search: one leg of the vector store. More candidates are read if hydration drops too many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.filters import Filter
from agentic_rag_backend.domain.query import Hit, Query, Retrieval, Trace
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.models.embedding.calibration import BUNDLED_CALIBRATION
from agentic_rag_backend.retrieval.base import Stores
from agentic_rag_backend.retrieval.legs import only_valid
from agentic_rag_backend.retrieval.passages.hydration import entities_of, in_time, passes, shown_graph, time_detail
from agentic_rag_backend.retrieval.scoring import MEASURED, best_coverage, relevance
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, ScoredId, VectorSearch

OVER_FETCH = 10
"""Extra candidates, to replace candidates that the catalogue no longer shows."""
REFILL_FACTOR = 4
MAX_LEG = 10_000


class SingleLeg:
    """Searches with one leg: ``dense`` (cosine of embeddings) or ``sparse`` (BM25)."""

    def __init__(self, stores: Stores, graphs: TenantGraphs, *, dense: bool) -> None:
        self._stores = stores
        self._graphs = graphs
        self._dense = dense
        self.name = "dense" if dense else "sparse"

    async def retrieve(self, query: Query) -> Retrieval:
        """Return the best chunks of the leg. ``score`` is the cosine, or BM25 divided by the leg's best score."""
        hits, failures = await self._fill(query.with_candidates(MEASURED))
        return Retrieval(
            hits=hits,
            relevance=await self._relevance(query, hits[:MEASURED]),
            trace=Trace(
                strategy=self.name,
                methods_used=(self.name,),
                failures=failures,
                details=time_detail(query),
            ),
        )

    async def _fill(self, query: Query) -> tuple[tuple[Hit, ...], tuple[str, ...]]:
        """Return the hits, and the reasons why parts of them are missing."""
        leg, items, visible = await self._best(query)
        graph, failures = await shown_graph(self._graphs, query)
        best = max((item.score for item in leg), default=1.0)
        hits = tuple(
            Hit(
                visible=visible[item.id],
                score=max(0.0, min(1.0, item.score if self._dense else item.score / best)),
                scores={self.name: item.score},
                entities=entities_of(graph, item.id),
            )
            for item in items
        )
        return hits, failures

    async def _best(self, query: Query) -> tuple[Sequence[ScoredId], Sequence[ScoredId], Mapping[str, VisibleChunk]]:
        """Return the leg, the first visible chunks of it, and their content."""
        filter, limit = query.filters, query.candidates + OVER_FETCH
        while True:
            leg = await self._leg(query, filter, limit)
            chunks = await self._stores.documents.hydrate(query.tenant_id, [item.id for item in leg])
            visible = {id: chunk for id, chunk in chunks.items() if passes(query, chunk)}
            items = [item for item in leg if item.id in visible][: query.candidates]
            if filter is query.filters and not all(in_time(query, chunk) for chunk in chunks.values()):
                filter = only_valid(query)
            elif len(items) == query.candidates or len(leg) < limit or limit == MAX_LEG:
                return leg, items, visible
            else:
                limit = min(limit * REFILL_FACTOR, MAX_LEG)

    async def _leg(self, query: Query, filter: Filter | None, limit: int) -> Sequence[ScoredId]:
        vector = await self._stores.encoder.of(query) if self._dense else None
        search = VectorSearch(
            kind=NodeKind.CHUNK,
            dense=vector,
            text=None if self._dense else query.text,
            limit=limit,
            filter=filter,
        )
        legs = (await self._stores.vectors.search(query.tenant_id, Collection.CHUNKS, [search]))[0]
        return legs.dense if self._dense else legs.sparse

    async def _relevance(self, query: Query, hits: Sequence[Hit]) -> float:
        coverage = best_coverage(self._stores.vectors.terms, query.text, [hit.visible.chunk.text for hit in hits])
        if not (self._dense and hits):  # words need no embedder, which may not answer
            return relevance(0.0, coverage, BUNDLED_CALIBRATION)
        return relevance(hits[0].scores[self.name], coverage, await self._stores.calibration())
