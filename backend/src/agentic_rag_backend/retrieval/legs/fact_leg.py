"""Relationships for a question, found by the graph leg, or by BM25 over their sentences if there is no graph leg.

A relationship is shown only with a visible chunk that states it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import GraphEdge, StatedFact
from agentic_rag_backend.domain.query import FactHit, Query
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.knowledge.visible.facts import VisibleFact, edge_of
from agentic_rag_backend.retrieval.base import LegAnswer, Stores
from agentic_rag_backend.retrieval.passages.hydration import passes
from agentic_rag_backend.retrieval.scoring import min_max
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, VectorSearch
from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)

FACT_CANDIDATES = 20
FACT_LIMIT = 10
NEAR = 10
"""Number of best chunks whose facts are near. It does not depend on the limit."""
NEAR_BONUS = 0.25
"""Added to the score of a fact that one of them states."""


@dataclass(frozen=True, slots=True)
class FactCandidates:
    """Relationships found for a question, before a visible passage is known for each.

    Attributes:
        answer: the answer of the graph leg.
        scores: scores in [0, 1] by id.
        failure: a warning if the search failed. Then there are no relationships.
    """

    answer: LegAnswer
    scores: Mapping[str, float] = field(default_factory=dict)
    edges: Sequence[GraphEdge] = ()
    failure: str | None = None


class Facts:
    """The relationship leg of the low level."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._reader = stores.facts

    async def candidates(self, query: Query) -> FactCandidates:
        """Return the relationships that may answer a question. Without an engine, the question is not embedded.

        They do not depend on the passages, so both are searched at the same time. A failure is a part of the result.
        """
        answer = LegAnswer()
        if self._stores.leg.engine is not None:
            answer = await self._stores.leg.ask(query, await self._stores.encoder.of(query))
        try:
            scores = await self._scores(query, answer)
            relationships = await self._stores.graph.relationships(query.tenant_id, list(scores)) if scores else {}
        except StoreUnavailable as error:
            return FactCandidates(answer, failure=_left_out(query, error))
        return FactCandidates(answer, scores, [edge_of(relationship) for relationship in relationships.values()])

    async def choose(
        self, query: Query, graph: TenantGraph, nearby: Set[str], chunks: Mapping[str, VisibleChunk], candidates: FactCandidates
    ) -> tuple[tuple[FactHit, ...], str | None]:
        """Return at most `FACT_LIMIT` facts that hold at the query's moment, best first, and None.

        If a store does not answer, return no facts and a warning: results contain passages even without facts.

        Args:
            nearby: ids of the best chunks, at most `NEAR`.
            chunks: chunks that were hydrated for this query already.
        """
        if candidates.failure is not None or not candidates.edges:
            return (), candidates.failure
        try:
            facts = await self._reader.read(
                query.tenant_id, graph, candidates.edges, moment=query.moment, known=chunks, passes=partial(passes, query)
            )
        except StoreUnavailable as error:
            return (), _left_out(query, error)
        hits = [_fact(fact, candidates.scores[id], nearby) for id, fact in facts.items()]
        hits.sort(key=lambda fact: (-fact.score, fact.id))
        return tuple(hits[:FACT_LIMIT]), None

    async def _scores(self, query: Query, answer: LegAnswer) -> Mapping[str, float]:
        """Return candidates by id with scores in [0, 1]."""
        if answer.findings is not None:
            best = max((item.score for item in answer.findings.relationships), default=1.0)
            return {item.id: item.score / best for item in answer.findings.relationships}
        search = VectorSearch(kind=NodeKind.FACT, text=query.text, limit=FACT_CANDIDATES)
        legs = (await self._stores.vectors.search(query.tenant_id, Collection.NODES, [search]))[0]
        return min_max(legs.sparse)


def _left_out(query: Query, error: StoreUnavailable) -> str:
    _log.warning("facts_left_out", tenant_id=query.tenant_id.value, code=error.code, reason=error.message)
    return f"facts are left out: {error.code}"


def _fact(visible: VisibleFact, score: float, near_chunks: Set[str]) -> FactHit:
    passage = min(
        visible.passages,
        key=lambda candidate: (_only_ends(candidate), candidate.support.chunk_id not in near_chunks, candidate.support.chunk_id),
    )
    return FactHit(
        id=visible.id,
        source=visible.source,
        relation=visible.relation,
        target=visible.target,
        fact=passage.fact,
        chunk_id=passage.support.chunk_id,
        document_id=passage.support.document_id,
        score=min(1.0, (1 - NEAR_BONUS) * score + (NEAR_BONUS if passage.support.chunk_id in near_chunks else 0.0)),
        weight=visible.weight,
        valid_at=visible.valid_at,
        invalid_at=visible.invalid_at,
        created_at=visible.created_at,
        expired_at=visible.expired_at,
    )


def _only_ends(fact: StatedFact) -> bool:
    """Return whether a passage gives an end and no beginning: another passage states the fact better."""
    return fact.valid_at is None and fact.invalid_at is not None
