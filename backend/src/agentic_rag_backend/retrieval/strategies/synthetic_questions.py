"""Question search: finds chunks by the synthetic questions that they answer ("reverse HyDE", doc2query).

A user's question and a synthetic question have the same form, unlike a question and a passage. Chunks without synthetic questions
are not found. If a search finds no synthetic question, the results are those of another search, and the trace says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agentic_rag_backend.domain.document import MAX_QUESTIONS_PER_CHUNK, VisibleChunk
from agentic_rag_backend.domain.query import Hit, Query, Retrieval, Trace
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.retrieval.base import Retriever, Stores
from agentic_rag_backend.retrieval.legs import QUESTION, QuestionLeg, only_valid, question_leg
from agentic_rag_backend.retrieval.passages.hydration import entities_of, in_time, passes, shown_graph, time_detail
from agentic_rag_backend.retrieval.passages.passage_features import measured_relevance
from agentic_rag_backend.retrieval.scoring import MEASURED
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, ScoredId, VectorSearch

OVER_FETCH = 10
"""Extra chunks, to replace chunks that may not be shown."""
REFILL_FACTOR = 4
MAX_QUESTIONS = 10_000
NO_QUESTIONS = "no visible document has synthetic questions: the results are those of hybrid"
NONE_FOUND = "no chunk that passes the filters has synthetic questions: the results are those of hybrid"


class QuestionRetriever:
    """Searches the synthetic questions of chunks by embedding.

    Args:
        otherwise: finds the results if no synthetic question is found.
    """

    def __init__(self, stores: Stores, graphs: TenantGraphs, otherwise: Retriever) -> None:
        self._stores = stores
        self._graphs = graphs
        self._otherwise = otherwise

    async def retrieve(self, query: Query) -> Retrieval:
        """Return the chunks of the nearest questions. ``score`` is the cosine of a chunk's nearest question."""
        leg, visible = await self._best(query.with_candidates(MEASURED))
        if not visible:
            return await self._without_questions(query)
        graph, failures = await shown_graph(self._graphs, query)
        hits = tuple(
            Hit(
                visible=visible[item.id],
                score=max(0.0, min(1.0, item.score)),
                scores={QUESTION: item.score},
                entities=entities_of(graph, item.id),
                matched_question=leg.matched[item.id],
            )
            for item in leg.chunks
            if item.id in visible
        )
        return Retrieval(
            hits=hits,
            relevance=await measured_relevance(self._stores, query, hits),
            trace=Trace(strategy=QUESTION, methods_used=(QUESTION,), failures=failures, details=time_detail(query)),
        )

    async def _best(self, query: Query) -> tuple[QuestionLeg, Mapping[str, VisibleChunk]]:
        """Return the chunks of the nearest questions, best first, and the content of those that may be shown."""
        filter, limit = query.filters, (query.candidates + OVER_FETCH) * MAX_QUESTIONS_PER_CHUNK
        while True:
            search = VectorSearch(kind=NodeKind.QUESTION, dense=await self._stores.encoder.of(query), limit=limit, filter=filter)
            legs = (await self._stores.vectors.search(query.tenant_id, Collection.CHUNKS, [search]))[0]
            leg = await question_leg(self._stores.questions, query, legs.dense, least=-1.0)
            chunks = await self._stores.documents.hydrate(query.tenant_id, [item.id for item in leg.chunks])
            visible = {id: chunk for id, chunk in chunks.items() if passes(query, chunk)}
            if filter is query.filters and not all(in_time(query, chunk) for chunk in chunks.values()):
                filter = only_valid(query)
            elif len(visible) >= query.candidates or len(legs.dense) < limit or limit == MAX_QUESTIONS:
                return leg, _first(leg.chunks, visible, query.candidates)
            else:
                limit = min(limit * REFILL_FACTOR, MAX_QUESTIONS)

    async def _without_questions(self, query: Query) -> Retrieval:
        # The counts are of all documents of the tenant, whatever the caller may read.
        has_questions = query.tenant_id.access is None and (await self._stores.documents.counts(query.tenant_id))["questions"]
        reason = NONE_FOUND if has_questions else NO_QUESTIONS
        retrieval = await self._otherwise.retrieve(query)
        trace = replace(retrieval.trace, strategy=QUESTION, fallbacks=(*retrieval.trace.fallbacks, reason))
        return replace(retrieval, trace=trace)


def _first(order: Sequence[ScoredId], visible: Mapping[str, VisibleChunk], count: int) -> dict[str, VisibleChunk]:
    return {id: visible[id] for id in [item.id for item in order if item.id in visible][:count]}
