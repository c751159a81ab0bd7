"""Runs legs in the embedded engine. `exact_ranking` decides which hits are the best, and their scores."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from qdrant_edge import EdgeShard, HasIdCondition, Query, QueryBatchRequest, QueryRequest, ScoredPoint, SearchParams, SparseVector
from qdrant_edge import Filter as EngineFilter

from agentic_rag_backend.stores.vector.base import ScoredId, TermWeights, Vector
from agentic_rag_backend.stores.vector.exact_ranking import Ask, settle
from agentic_rag_backend.stores.vector.points import DENSE, SPARSE

_QUERIES_PER_TURN = 64
"""Queries to the engine between two turns of the event loop. A question of 1,500 different words can cost one for each word."""


@dataclass(frozen=True, slots=True)
class EdgeLeg:
    """A ranked list to find. ``query`` is a dense vector, or the distinct terms of a question."""

    query: Vector | TermWeights
    limit: int
    filter: EngineFilter
    params: SearchParams


async def run_legs(engine: Callable[[], EdgeShard], legs: Sequence[EdgeLeg]) -> list[tuple[ScoredId, ...]]:
    """Return the best points of every leg, best first, ties by id.

    Args:
        engine: returns the shard's engine, which another can replace between two turns of the event loop.
    """
    settling = settle(legs)
    try:
        queries = next(settling)
        while True:
            # One filter for all terms of a leg: making it takes longer than the search.
            among = {id(ask.leg): ask for ask in queries if ask.among}
            filters = {key: _only(ask) for key, ask in among.items()}
            hits: list[list[ScoredPoint]] = []
            for start in range(0, len(queries), _QUERIES_PER_TURN):
                if start:
                    await asyncio.sleep(0)
                requests = [_request(ask, filters.get(id(ask.leg))) for ask in queries[start : start + _QUERIES_PER_TURN]]
                hits += engine().query_batch(QueryBatchRequest(requests))
            queries = settling.send(hits)
    except StopIteration as finished:
        rankings: list[tuple[ScoredId, ...]] = finished.value
        return rankings


def _only(ask: Ask[EdgeLeg]) -> EngineFilter:
    return EngineFilter(must=[ask.leg.filter, HasIdCondition(set(ask.among))])


def _request(ask: Ask[EdgeLeg], only: EngineFilter | None) -> QueryRequest:
    leg, query = ask.leg, ask.query
    if isinstance(query, TermWeights):
        neighbours = Query.Nearest(SparseVector(list(query.indices), list(query.values)), using=SPARSE)
    else:
        neighbours = Query.Nearest(query.tolist(), using=DENSE)
    if only is None:
        return QueryRequest(limit=ask.limit, query=neighbours, filter=leg.filter, params=leg.params, with_payload=["id"])
    return QueryRequest(limit=ask.limit, query=neighbours, filter=only, params=leg.params)
