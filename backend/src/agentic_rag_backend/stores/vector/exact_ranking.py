"""The certain best points of a leg and their scores, independent of the engine; this module decides, the caller queries.

Two things in the engine would make order and scores depend on more than the tenant's own points. First, it cuts a list at its
limit among equal scores in the order of its segments. The remedy: ask for more points until every omitted point is certainly
worse, or until `MAX_TIED` are compared, then order equal scores by id. Second, it adds up the terms of a BM25 score in an order
that depends on which terms were written first, by any tenant. The last bits of the sum (at most `_error_bound`) then differ
between two stores with the same content. The remedy: report BM25 scores to 12 binary digits. Where the last bits could turn the
rounding, add the score up again here, exactly, from the engine's scores of the single terms, which have no order.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.stores.vector.base import ScoredId, TermWeights, Vector

_OVER_FETCH = 16
MAX_TIED = 4_096
"""Points of one leg that are compared. If more have the same score, the engine chooses among them: a tenant whose million facts
are all alike must not decide what a question costs."""
_DIGITS = 1 << 12
_UNIT_ROUNDOFF = 2.0**-24

Scores = NDArray[np.float64]


class Ranked(Protocol):
    """A ranked list to find. ``query`` is a dense vector, or the distinct terms of a question."""

    @property
    def query(self) -> Vector | TermWeights: ...
    @property
    def limit(self) -> int: ...


class EngineHit(Protocol):
    """A point as an engine returns it; its payload holds ``id``, unless the query requested only scores."""

    @property
    def id(self) -> Any: ...
    @property
    def score(self) -> float: ...
    @property
    def payload(self) -> Mapping[str, Any] | None: ...


LegT = TypeVar("LegT", bound=Ranked)


@dataclass(frozen=True, slots=True)
class Ask(Generic[LegT]):
    """A query to the engine: the best ``limit`` points of a leg with the payload's ``id``.

    With ``among``, only the score of each of these points for one ``term`` (id and weight).
    """

    leg: LegT
    limit: int
    term: tuple[int, float] | None = None
    among: tuple[Any, ...] = ()

    @property
    def query(self) -> Vector | TermWeights:
        """The vector to rank by."""
        return self.leg.query if self.term is None else TermWeights([self.term[0]], [self.term[1]])


Settling = Generator[list[Ask[LegT]], Sequence[Sequence[EngineHit]], list[tuple[ScoredId, ...]]]
"""Yields the queries of one batch, receives the lists of hits in order, returns the best points of every leg."""


def settle(legs: Sequence[LegT]) -> Settling[LegT]:
    """Return the best points of every leg, best first, ties by id."""
    settled: dict[int, Sequence[EngineHit]] = {}
    pending = {number: leg.limit + _OVER_FETCH for number, leg in enumerate(legs)}
    while pending:
        answers = yield [Ask(legs[number], fetch) for number, fetch in pending.items()]
        unsettled = {}
        for (number, fetch), hits in zip(pending.items(), answers, strict=True):
            limit = max(MAX_TIED, legs[number].limit + _OVER_FETCH)
            if len(hits) < fetch or fetch == limit or _is_settled(legs[number], hits):
                settled[number] = hits
            else:
                unsettled[number] = min(fetch * 4, limit)
        pending = unsettled
    summed = yield from _sum_terms({number: (legs[number], hits) for number, hits in settled.items()})
    return [_rank_points(leg, settled[number], summed.get(number, {})) for number, leg in enumerate(legs)]


def _error_bound(leg: Ranked, scores: Scores) -> Scores:
    """Bound how far the engine's scores are from the exact sums of n terms: (n - 1) unit roundoffs of them to the first order.

    Higham, "Accuracy and Stability of Numerical Algorithms" (2002), section 4.2; terms are positive. The n-th covers the
    higher orders up to 2,900 terms, more than a query of 8,000 characters holds.
    """
    return scores * (len(leg.query.indices) * _UNIT_ROUNDOFF if isinstance(leg.query, TermWeights) else 0.0)


def _is_settled(leg: Ranked, hits: Sequence[EngineHit]) -> bool:
    """Return whether the worst fetched hit, and so every hit not fetched, is certainly worse than the last hit wanted."""
    scores = np.array([hits[-1].score, hits[leg.limit - 1].score])
    error = _error_bound(leg, scores)
    low, high = _round_scores(leg, scores + error * [1.0, -1.0])
    return bool(low < high)


def _round_scores(leg: Ranked, scores: Scores) -> Scores:
    if not isinstance(leg.query, TermWeights):
        return scores
    mantissa, exponent = np.frexp(scores)
    return np.ldexp(np.round(mantissa * _DIGITS) / _DIGITS, exponent)


def _are_ambiguous(leg: Ranked, scores: Scores) -> NDArray[np.bool_]:
    error = _error_bound(leg, scores)
    return np.asarray(_round_scores(leg, scores - error) != _round_scores(leg, scores + error))


def _sum_terms(
    settled: Mapping[int, tuple[LegT, Sequence[EngineHit]]],
) -> Generator[list[Ask[LegT]], Sequence[Sequence[EngineHit]], dict[int, dict[Any, float]]]:
    """Return the exact sums of the scores of single terms for the hits, by number of leg, whose rounding is in doubt."""
    requests: list[tuple[int, Ask[LegT]]] = []
    for number, (leg, hits) in settled.items():
        if not isinstance(leg.query, TermWeights):
            continue
        ambiguous = _are_ambiguous(leg, _compute_scores(hits))
        if doubtful := tuple(hits[position].id for position in np.flatnonzero(ambiguous).tolist()):
            terms = zip(leg.query.indices, leg.query.values, strict=True)
            requests.extend((number, Ask(leg, len(doubtful), term, doubtful)) for term in terms)
    if not requests:
        return {}
    answers = yield [ask for _, ask in requests]
    parts: dict[int, dict[Any, list[float]]] = {}
    for (number, _), hits in zip(requests, answers, strict=True):
        for hit in hits:
            parts.setdefault(number, {}).setdefault(hit.id, []).append(hit.score)
    return {number: {id: math.fsum(scores) for id, scores in sums.items()} for number, sums in parts.items()}


def _rank_points(leg: Ranked, hits: Sequence[EngineHit], sums: Mapping[Any, float]) -> tuple[ScoredId, ...]:
    scores = _compute_scores(hits)
    if sums:
        # Only with sums: the embedded engine creates the id of a hit at each access.
        scores = np.array([sums.get(hit.id, hit.score) for hit in hits])
    ids = [str((hit.payload or {})["id"]) for hit in hits]
    ranking = sorted(zip((-_round_scores(leg, scores)).tolist(), ids, strict=True))
    return tuple(ScoredId(id, -negative) for negative, id in ranking[: leg.limit])


def _compute_scores(hits: Sequence[EngineHit]) -> Scores:
    return np.array([hit.score for hit in hits], dtype=np.float64)
