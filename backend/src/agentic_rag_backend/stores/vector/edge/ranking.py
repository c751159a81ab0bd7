"""Runs legs in the embedded engine. `exact_ranking` decides which hits are the best, and their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qdrant_edge import EdgeShard, HasIdCondition, Query, QueryBatchRequest, QueryRequest, SearchParams, SparseVector
from qdrant_edge import Filter as EngineFilter

from agentic_rag_backend.stores.vector.base import ScoredId, TermWeights, Vector
from agentic_rag_backend.stores.vector.exact_ranking import Ask, settle
from agentic_rag_backend.stores.vector.points import DENSE, SPARSE


@dataclass(frozen=True, slots=True)
class EdgeLeg:
    """A ranked list to find. ``query`` is a dense vector, or the distinct terms of a question."""

    query: Vector | TermWeights
    limit: int
    filter: EngineFilter
    params: SearchParams


def run_legs(shard: EdgeShard, legs: Sequence[EdgeLeg]) -> list[tuple[ScoredId, ...]]:
    """Return the best points of every leg, best first, ties by id."""
    settling = settle(legs)
    try:
        asked = next(settling)
        while True:
            # One filter for all terms of a leg: making it takes longer than the search.
            among = {id(ask.leg): ask for ask in asked if ask.among}
            filters = {key: _only(ask) for key, ask in among.items()}
            requests = [_request(ask, filters.get(id(ask.leg))) for ask in asked]
            asked = settling.send(shard.query_batch(QueryBatchRequest(requests)))
    except StopIteration as finished:
        found: list[tuple[ScoredId, ...]] = finished.value
        return found


def _only(ask: Ask[EdgeLeg]) -> EngineFilter:
    return EngineFilter(must=[ask.leg.filter, HasIdCondition(set(ask.among))])


def _request(ask: Ask[EdgeLeg], only: EngineFilter | None) -> QueryRequest:
    leg, query = ask.leg, ask.query
    if isinstance(query, TermWeights):
        nearest = Query.Nearest(SparseVector(list(query.indices), list(query.values)), using=SPARSE)
    else:
        nearest = Query.Nearest(query.tolist(), using=DENSE)
    if only is None:
        return QueryRequest(limit=ask.limit, query=nearest, filter=leg.filter, params=leg.params, with_payload=["id"])
    return QueryRequest(limit=ask.limit, query=nearest, filter=only, params=leg.params)
