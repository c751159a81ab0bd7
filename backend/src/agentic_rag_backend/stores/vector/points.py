"""Points as both engines store them, and the certain best points of a leg, which no engine decides.

Two things in the engine would make order and scores depend on more than the tenant's own points. First, it cuts a list at its
limit among equal scores in the order of its segments. The remedy: ask for more points until every omitted point is certainly
worse, or until `MAX_TIED` are compared, then order equal scores by id. Second, it adds up the terms of a BM25 score in an order
that depends on which terms were written first, by any tenant. The last bits of the sum (at most `_error_bound`) then differ
between two stores with the same content. The remedy: report BM25 scores to 12 binary digits. Where the last bits could turn the
rounding, add the score up again here, exactly, from the engine's scores of the single terms, which have no order.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, ScoredId, StoredPoint, TermWeights, Vector, VectorPoint
from agentic_rag_backend.stores.vector.bm25 import Bm25Parameters
from agentic_rag_backend.stores.vector.conditions import TAGS, tags_of

DENSE = "dense"
"""The name of a point's dense vector."""
SPARSE = "sparse"
"""The name of a point's BM25 vector."""
_NAMESPACE = uuid.UUID("9b0c7a3e-6a0f-5d0b-8a53-0f6f6f0e4c55")
_LAYOUT = "layout 1"
"""Raised when payloads change in a way that stored points would not fit."""
MAX_LIMIT = 10_000
DESCRIBED = ["id", "scope", "document_id", "version", "generation", TAGS]
"""The fields of a payload that `parse_payload` reads."""


def fingerprint_of(embedder_fingerprint: str, dimensions: int, bm25: Bm25Parameters) -> str:
    """Return the identity of all parameters that stored points depend on."""
    return f"{embedder_fingerprint}; {dimensions} x float32; {bm25.fingerprint}; {_LAYOUT}"


def checked_vectors(vectors: Sequence[Vector | None], dimensions: int) -> list[Vector | None]:
    """Return the vectors at unit length.

    The engine would accept NaN, and would apply a batch up to its first invalid vector.

    Raises:
        InvalidRequest: a vector has another length, or a value that is not finite.
    """
    arrays = [np.asarray(vector, dtype=np.float32) for vector in vectors if vector is not None]
    if not arrays:
        return [None] * len(vectors)
    for array in arrays:
        if array.shape != (dimensions,):
            raise InvalidRequest(f"vectors of this store have {dimensions} dimensions; got shape {array.shape}")
    matrix = np.stack(arrays)
    if not np.isfinite(matrix).all():
        raise InvalidRequest("vectors hold finite numbers; got NaN or infinity")
    scaled = iter(unit_length(matrix))
    return [None if vector is None else next(scaled) for vector in vectors]


def check_limit(limit: int) -> None:
    """Raise `InvalidRequest` if a search's limit is out of range."""
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidRequest(f"the limit of a search is 1 to {MAX_LIMIT}; got {limit}")


def scope_name(tenant: TenantId, kind: NodeKind, generation: int | None) -> str:
    """Return the scope of a search as one keyword. Two keywords would cost the engine five times as much."""
    return f"{tenant.value}/{kind.value}" if generation is None else f"{tenant.value}/{kind.value}/{generation}"


def point_id(tenant: TenantId, collection: Collection, id: str) -> str:
    """Return the engine's id of a point. Equal ids of two tenants give different points."""
    return str(uuid.uuid5(_NAMESPACE, f"{tenant.value}/{collection}/{id}"))


def payload_of(tenant: TenantId, point: VectorPoint, tags: Sequence[str]) -> dict[str, Any]:
    """Return the payload of a point."""
    payload: dict[str, Any] = {
        "tenant": tenant.value,
        "scope": [scope_name(tenant, point.kind, None)],
        "id": point.id,
        "version": point.version or 0,
        TAGS: list(tags),
    }
    if point.document_id is not None:
        payload["document_id"] = point.document_id
    if point.generation is not None:
        payload["generation"] = point.generation
        payload["scope"].append(scope_name(tenant, point.kind, point.generation))
    return payload


def parse_payload(payload: Mapping[str, Any]) -> StoredPoint:
    """Return the point for a payload."""
    return StoredPoint(
        id=str(payload["id"]),
        kind=str(payload["scope"][0]).rpartition("/")[2],
        document_id=payload.get("document_id"),
        version=int(payload.get("version") or 0),
        generation=payload.get("generation"),
        tags=frozenset(payload.get(TAGS, ())),
    )


def tags_of_points(points: Sequence[VectorPoint]) -> list[list[str]]:
    """Return the tags of each point. Chunks of a document mostly share one metadata object, which is read once."""
    tags_by_label: dict[tuple[object, ...], list[str]] = {}
    tags = []
    for point in points:
        source = (id(point.metadata), point.document_id, point.key, point.title)
        if source not in tags_by_label:
            tags_by_label[source] = tags_of(point.fields)
        tags.append(tags_by_label[source])
    return tags


def unit_length(vectors: Vector) -> Vector:
    """Return ``vectors`` (rows) scaled to length 1, computed in double precision; zeros stay zeros."""
    exact = vectors.astype(np.float64)
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    return (exact / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)


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
