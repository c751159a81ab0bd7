"""Dense and sparse search: one leg of the vector store, hydrated, with one refill where hydration dropped too much."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from agentic_rag_backend.domain.query import Hit, Query, Retrieval, Trace
from agentic_rag_backend.retrieval.base import Stores
from agentic_rag_backend.retrieval.graph_cache import TenantGraphs
from agentic_rag_backend.retrieval.hops import cover
from agentic_rag_backend.retrieval.hydration import entities_of, shown_graph, visible_chunks
from agentic_rag_backend.retrieval.relevance import relevance
from agentic_rag_backend.stores.vector.base import Collection, Legs, NodeKind, ScoredId, Vector, VectorSearch

OVER_FETCH = 10
"""Extra candidates, for those that the catalogue no longer shows."""
REFILL_FACTOR = 4
MAX_LEG = 10_000


class SingleLeg:
    """Answers with one leg: ``dense`` (cosine of embeddings) or ``sparse`` (BM25)."""

    def __init__(self, stores: Stores, graphs: TenantGraphs, *, dense: bool) -> None:
        self._stores = stores
        self._graphs = graphs
        self._dense = dense
        self.name = "dense" if dense else "sparse"

    async def retrieve(self, query: Query) -> Retrieval:
        """Return the best chunks of the leg. ``score`` is the cosine, or BM25 divided by the leg's best."""
        started = time.perf_counter()
        hits, failures = await self._fill(query)
        elapsed = (time.perf_counter() - started) * 1000
        return Retrieval(
            hits=hits,
            relevance=self._relevance(query, hits),
            trace=Trace(
                strategy=self.name,
                methods_used=(self.name,),
                fallback_used=bool(failures),
                fallback_reason="; ".join(failures) or None,
                failures=failures,
                processing_time_ms={"retrieval": elapsed},
            ),
        )

    async def _fill(self, query: Query) -> tuple[tuple[Hit, ...], tuple[str, ...]]:
        """Return the hits, and what they had to be shown without."""
        wanted = query.limit + OVER_FETCH
        leg = await self._leg(query, wanted)
        visible = await visible_chunks(self._stores.documents, query, [item.id for item in leg])
        if len(visible) < query.limit and len(leg) == wanted:
            leg = await self._leg(query, min(wanted * REFILL_FACTOR, MAX_LEG))
            visible = await visible_chunks(self._stores.documents, query, [item.id for item in leg])
        shown = [item for item in leg if item.id in visible][: query.limit]
        graph, failures = await shown_graph(self._graphs, query)
        best = max((item.score for item in leg), default=1.0)
        hits = tuple(
            Hit(
                visible=visible[item.id],
                score=max(0.0, min(1.0, item.score if self._dense else item.score / best)),
                scores={self.name: item.score},
                entities=entities_of(graph, item.id),
            )
            for item in shown
        )
        return hits, failures

    async def _leg(self, query: Query, limit: int) -> Sequence[ScoredId]:
        vector = await self._stores.encoder.encode(query.tenant_id, query.text) if self._dense else None
        search = VectorSearch(
            kind=NodeKind.CHUNK,
            dense=vector,
            text=None if self._dense else query.text,
            limit=limit,
            filter=query.filters,
        )
        legs = (await self._stores.vectors.search(query.tenant_id, Collection.CHUNKS, [search]))[0]
        return legs.dense if self._dense else legs.sparse

    def _relevance(self, query: Query, hits: Sequence[Hit]) -> float:
        cosine = hits[0].scores[self.name] if self._dense and hits else 0.0
        return relevance(cosine, best_coverage(self._stores, query.text, {hit.id: hit.visible.chunk.text for hit in hits}))


def best_coverage(stores: Stores, question: str, texts: Mapping[str, str]) -> float:
    """Return the largest share of the question's term weight that one of the texts holds (see `hops.cover`)."""
    passages = {number: stores.vectors.terms(text) for number, text in enumerate(texts.values())}
    coverage = cover(stores.vectors.terms(question), passages)
    return max((coverage.of(held) for held in coverage.held.values()), default=0.0)


async def chunk_legs(stores: Stores, query: Query, limit: int) -> tuple[Vector, Legs]:
    """Return the question's vector and both legs over the tenant's chunks, ``limit`` each."""
    vector = await stores.encoder.encode(query.tenant_id, query.text)
    search = VectorSearch(kind=NodeKind.CHUNK, dense=vector, text=query.text, limit=limit, filter=query.filters)
    return vector, (await stores.vectors.search(query.tenant_id, Collection.CHUNKS, [search]))[0]
