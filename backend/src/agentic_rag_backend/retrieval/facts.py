"""Relationships that bear on a question: those of the graph leg, else by BM25 over their sentences.

Each is shown only with a visible chunk that says it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Set

import structlog

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import Relationship
from agentic_rag_backend.domain.query import FactHit, Query
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.retrieval.base import Stores
from agentic_rag_backend.retrieval.graph_leg import LegAnswer
from agentic_rag_backend.retrieval.hydration import visible_chunks
from agentic_rag_backend.retrieval.scoring.fusion import min_max
from agentic_rag_backend.retrieval.tenant_graph.graph import TenantGraph
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, VectorSearch

_log = structlog.get_logger(__name__)

FACT_CANDIDATES = 20
FACT_LIMIT = 10
NEAR = 10
"""Chunks, the best of the question whatever its limit, that make a fact near."""
NEAR_BONUS = 0.25
"""Added to a fact that one of them says."""


class Facts:
    """The relationship leg of the low level."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    async def ask_leg(self, query: Query) -> LegAnswer:
        """Ask the graph leg; where there is no engine, nothing waits for the question's vector."""
        if self._stores.leg.engine is None:
            return LegAnswer()
        return await self._stores.leg.ask(query, await self._stores.encoder.encode(query.tenant_id, query.text))

    async def find_or_tell(
        self, query: Query, graph: TenantGraph, near: Set[str], known: Mapping[str, VisibleChunk], answer: LegAnswer
    ) -> tuple[tuple[FactHit, ...], str | None]:
        """Return what `find` does, or none and why: passages are an answer without them."""
        try:
            return await self.find(query, graph, near, known, answer), None
        except StoreUnavailable as error:
            _log.warning("facts_left_out", tenant_id=query.tenant_id.value, code=error.code, reason=error.message)
            return (), f"facts are left out: {error.code}"

    async def find(
        self, query: Query, graph: TenantGraph, near: Set[str], known: Mapping[str, VisibleChunk], answer: LegAnswer
    ) -> tuple[FactHit, ...]:
        """Return at most `FACT_LIMIT` facts, best first.

        Args:
            near: ids of the best chunks, at most `NEAR`.
            known: chunks that were hydrated for this query already.
        """
        scores = await self._scores(query, answer)
        if not scores:
            return ()
        relationships, sentences = await asyncio.gather(
            self._stores.graph.relationships(query.tenant_id, list(scores)),
            self._stores.graph.fact_sentences(query.tenant_id, list(scores)),
        )
        unknown = sorted({sentence.support.chunk_id for sentence in sentences} - set(known))
        visible = {**known, **(await visible_chunks(self._stores.documents, query, unknown) if unknown else {})}
        said = {
            (sentence.relationship_id, sentence.support.chunk_id): sentence.fact
            for sentence in sentences
            if sentence.support.chunk_id in visible
            and visible[sentence.support.chunk_id].chunk.version == sentence.support.version
        }
        found = [
            fact
            for id, relationship in relationships.items()
            if (fact := _fact(graph, relationship, scores[id], said, near)) is not None
        ]
        found.sort(key=lambda fact: (-fact.score, fact.id))
        return tuple(found[:FACT_LIMIT])

    async def _scores(self, query: Query, answer: LegAnswer) -> Mapping[str, float]:
        """Return candidates by id with scores in [0, 1]."""
        if answer.findings is not None:
            best = max((item.score for item in answer.findings.relationships), default=1.0)
            return {item.id: item.score / best for item in answer.findings.relationships}
        search = VectorSearch(kind=NodeKind.FACT, text=query.text, limit=FACT_CANDIDATES)
        legs = (await self._stores.vectors.search(query.tenant_id, Collection.NODES, [search]))[0]
        return min_max(legs.sparse)


def _fact(
    graph: TenantGraph, relationship: Relationship, score: float, said: dict[tuple[str, str], str], near: Set[str]
) -> FactHit | None:
    source = graph.entity_index.get(relationship.source_id)
    target = graph.entity_index.get(relationship.target_id)
    chunk_ids = sorted(
        (support.chunk_id for support in relationship.supports if (relationship.id, support.chunk_id) in said),
        key=lambda id: (id not in near, id),
    )
    if source is None or target is None or not chunk_ids:
        return None
    chunk_id = chunk_ids[0]
    document_id = next(support.document_id for support in relationship.supports if support.chunk_id == chunk_id)
    return FactHit(
        id=relationship.id,
        source=graph.entity(source),
        relation=relationship.relation,
        target=graph.entity(target),
        fact=said[(relationship.id, chunk_id)],
        chunk_id=chunk_id,
        document_id=document_id,
        score=min(1.0, (1 - NEAR_BONUS) * score + (NEAR_BONUS if chunk_id in near else 0.0)),
    )
