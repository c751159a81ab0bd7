"""Legs whose order and scores depend on nothing but the tenant's own points.

Two things in the engine would break that. It cuts a list at its limit among equals in the order of its segments: we fetch
past the limit until whatever was left out is certainly worse, then order equals by id. And it adds up the terms of a BM25
score in an order that depends on which terms were written first, by any tenant, so that the last bits of the sum (never
more than `_error`) differ between two stores with the same content. So BM25 scores are reported to 12 binary digits;
where the last bits could turn the rounding, the score is added up again here, exactly, from the engine's scores of the
single terms, which have no order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from qdrant_edge import EdgeShard, HasIdCondition, Query, QueryBatchRequest, QueryRequest, SearchParams, SparseVector
from qdrant_edge import Filter as EngineFilter
from qdrant_edge import ScoredPoint as EngineHit

from agentic_rag_backend.stores.vector.base import ScoredId, Vector

PointId = int | UUID | str
DENSE = "dense"
SPARSE = "sparse"
_OVER_FETCH = 16
_DIGITS = 1 << 12
_UNIT_ROUNDOFF = 2.0**-24


@dataclass(frozen=True, slots=True)
class Leg:
    """One ranked list to be found: ``query`` is a dense vector, or the distinct terms of a question."""

    query: Vector | SparseVector
    limit: int
    filter: EngineFilter
    params: SearchParams

    def request(self, limit: int) -> QueryRequest:
        """Return the engine's query for the best ``limit`` points."""
        if isinstance(self.query, SparseVector):
            nearest = Query.Nearest(self.query, using=SPARSE)
        else:
            nearest = Query.Nearest(self.query.tolist(), using=DENSE)
        return QueryRequest(limit=limit, query=nearest, filter=self.filter, params=self.params, with_payload=["id"])


def run_legs(shard: EdgeShard, legs: Sequence[Leg]) -> list[tuple[ScoredId, ...]]:
    """Return the best points of every leg, best first and ties by id."""
    results: list[tuple[ScoredId, ...]] = [()] * len(legs)
    pending = {number: leg.limit + _OVER_FETCH for number, leg in enumerate(legs)}
    while pending:
        requests = [legs[number].request(fetch) for number, fetch in pending.items()]
        unsettled = {}
        for (number, fetch), hits in zip(pending.items(), shard.query_batch(QueryBatchRequest(requests)), strict=True):
            if len(hits) < fetch or _settled(legs[number], hits):
                results[number] = _ranked(shard, legs[number], hits)
            else:
                unsettled[number] = fetch * 4
        pending = unsettled
    return results


def _error(leg: Leg, score: float) -> float:
    """Bound how far the engine's score is from the exact sum of its n terms: (n - 1) unit roundoffs of it to the first order.

    Higham, "Accuracy and Stability of Numerical Algorithms" (2002), section 4.2; terms are positive. The n-th covers the
    higher orders up to 2,900 terms, more than a query of 8,000 characters holds.
    """
    return len(leg.query.indices) * _UNIT_ROUNDOFF * score if isinstance(leg.query, SparseVector) else 0.0


def _settled(leg: Leg, hits: Sequence[EngineHit]) -> bool:
    """Tell whether the worst hit fetched, and so anything not fetched, is certainly worse than the last one wanted."""
    last, wanted = hits[-1].score, hits[leg.limit - 1].score
    return _rounded(leg, last + _error(leg, last)) < _rounded(leg, wanted - _error(leg, wanted))


def _rounded(leg: Leg, score: float) -> float:
    if not isinstance(leg.query, SparseVector):
        return score
    mantissa, exponent = math.frexp(score)
    return math.ldexp(round(mantissa * _DIGITS) / _DIGITS, exponent)


def _ranked(shard: EdgeShard, leg: Leg, hits: Sequence[EngineHit]) -> tuple[ScoredId, ...]:
    scores = {}
    ambiguous = []
    for hit in hits:
        error = _error(leg, hit.score)
        scores[hit.id] = _rounded(leg, hit.score - error)
        if scores[hit.id] != _rounded(leg, hit.score + error):
            ambiguous.append(hit.id)
    if ambiguous and isinstance(leg.query, SparseVector):
        scores.update((id, _rounded(leg, score)) for id, score in _summed(shard, leg, leg.query, ambiguous))
    found = [ScoredId(str((hit.payload or {})["id"]), scores[hit.id]) for hit in hits]
    found.sort(key=lambda scored: (-scored.score, scored.id))
    return tuple(found[: leg.limit])


def _summed(shard: EdgeShard, leg: Leg, query: SparseVector, ids: Sequence[PointId]) -> Iterable[tuple[PointId, float]]:
    """Return the exact sums of the points' scores for every single term."""
    only = EngineFilter(must=[leg.filter, HasIdCondition(set(ids))])
    requests = [
        QueryRequest(
            limit=len(ids),
            query=Query.Nearest(SparseVector([term], [weight]), using=SPARSE),
            filter=only,
            params=leg.params,
        )
        for term, weight in zip(query.indices, query.values, strict=True)
    ]
    parts: dict[PointId, list[float]] = {id: [] for id in ids}
    for hits in shard.query_batch(QueryBatchRequest(requests)):
        for hit in hits:
            parts[hit.id].append(hit.score)
    return [(id, math.fsum(scores)) for id, scores in parts.items()]


def unit_length(vectors: Vector) -> Vector:
    """Return ``vectors`` (rows) scaled to length 1, computed in double precision; zeros stay zeros."""
    exact = vectors.astype(np.float64)
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    return (exact / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
