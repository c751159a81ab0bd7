"""Points, filters and legs as requests to the Qdrant server. Every filter names the tenant, and no filter is empty."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from qdrant_client import models

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, TermWeights, Vector, VectorPoint
from agentic_rag_backend.stores.vector.conditions import TAGS, All, Condition, Identified, Some, Tagged
from agentic_rag_backend.stores.vector.points import DENSE, SPARSE, Ask, payload_of, point_id, scope_name

_BYTES_PER_NUMBER = 25
"""The longest JSON text of a float32, with its comma: -1.1754943508222875e-38."""
_BYTES_PER_TERM = _BYTES_PER_NUMBER + 11
_BYTES_PER_POINT = 160
"""Id, field names and brackets."""


def within(tenant: TenantId, *conditions: models.Condition) -> models.Filter:
    """Return the filter of every operation except searches: always the tenant, and the given conditions."""
    return models.Filter(must=[match("tenant", tenant.value), *conditions])


def match(field: str, value: str) -> models.FieldCondition:
    """Return the condition that ``field`` is, or holds, ``value``."""
    return models.FieldCondition(key=field, match=models.MatchValue(value=value))


def match_any(field: str, values: Sequence[str]) -> models.FieldCondition:
    """Return the condition that ``field`` is, or holds, one of ``values``."""
    return models.FieldCondition(key=field, match=models.MatchAny(any=list(values)))


def having_ids(tenant: TenantId, collection: Collection, ids: Iterable[str]) -> models.HasIdCondition:
    """Return the condition that a point is one of the tenant's ``ids``."""
    return models.HasIdCondition(has_id=sorted({point_id(tenant, collection, id) for id in ids}))


def scope_of(tenant: TenantId, kind: NodeKind, generation: int | None) -> models.Filter:
    """Return the filter for a search's scope. Its single keyword includes the tenant."""
    return models.Filter(must=[match("scope", scope_name(tenant, kind, generation))])


def condition_filter(condition: Condition, tenant: TenantId, collection: Collection) -> models.Filter:
    """Return ``condition`` as a filter; combine it with a filter that names the tenant."""

    def of(part: Condition) -> models.Filter:
        if isinstance(part, Tagged):
            is_single = len(part.tags) == 1
            return models.Filter(must=[match(TAGS, part.tags[0]) if is_single else match_any(TAGS, part.tags)])
        if isinstance(part, Identified):
            return models.Filter(must=[having_ids(tenant, collection, part.ids)])
        if isinstance(part, All):
            return models.Filter(must=[of(part_condition) for part_condition in part.parts])
        if isinstance(part, Some):
            return models.Filter(should=[of(part_condition) for part_condition in part.parts])
        return models.Filter(must_not=[of(part.part)])

    return of(condition)


@dataclass(frozen=True, slots=True)
class QdrantLeg:
    """A ranked list to find within ``filter``.

    ``corpus`` is the scope of document frequencies. Without it, one tenant's words would change another tenant's ranking.
    """

    query: Vector | TermWeights
    limit: int
    filter: models.Filter
    corpus: models.Filter


def query_request(ask: Ask[QdrantLeg]) -> models.QueryRequest:
    """Return the request for ``ask``. It has no outer stage, because the server ignores the corpus of an outer stage."""
    leg, query = ask.leg, ask.query
    only = [models.HasIdCondition(has_id=list(ask.among))] if ask.among else []
    filter = models.Filter(must=[leg.filter, *only]) if only else leg.filter
    if not isinstance(query, TermWeights):
        return models.QueryRequest(
            query=models.NearestQuery(nearest=query.tolist()), using=DENSE, filter=filter, limit=ask.limit, with_payload=["id"]
        )
    return models.QueryRequest(
        query=models.NearestQuery(nearest=_sparse(query)),
        using=SPARSE,
        filter=filter,
        params=models.SearchParams(idf=models.IdfCorpusParams(corpus=leg.corpus)),
        limit=ask.limit,
        with_payload=["id"] if ask.term is None else False,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A point with checked and computed vectors."""

    point: VectorPoint
    dense: Vector | None
    sparse: TermWeights | None
    tags: Sequence[str]

    def struct(self, tenant: TenantId, collection: Collection) -> models.PointStruct:
        """Return the point in the form of the request."""
        vectors: dict[str, Any] = {}
        if self.dense is not None:
            vectors[DENSE] = self.dense.tolist()
        if self.sparse is not None:
            vectors[SPARSE] = _sparse(self.sparse)
        payload = payload_of(tenant, self.point, self.tags)
        return models.PointStruct(id=point_id(tenant, collection, self.point.id), vector=vectors, payload=payload)

    def size_bytes(self, tenant: TenantId) -> int:
        """Return an upper bound of the length of the point's JSON text."""
        numbers = 0 if self.dense is None else len(self.dense) * _BYTES_PER_NUMBER
        terms = 0 if self.sparse is None else len(self.sparse.indices) * _BYTES_PER_TERM
        return _BYTES_PER_POINT + numbers + terms + len(json.dumps(payload_of(tenant, self.point, self.tags)))


def batches(points: Iterable[Prepared], tenant: TenantId, *, max_points: int, max_bytes: int) -> Iterator[list[Prepared]]:
    """Divide ``points``, in order, into lists of at most ``max_points`` and ``max_bytes``. A larger point gets its own list."""
    batch: list[Prepared] = []
    batch_size = 0
    for point in points:
        size = point.size_bytes(tenant)
        if batch and (len(batch) == max_points or batch_size + size > max_bytes):
            yield batch
            batch, batch_size = [], 0
        batch.append(point)
        batch_size += size
    if batch:
        yield batch


def _sparse(vector: TermWeights) -> models.SparseVector:
    return models.SparseVector(indices=list(vector.indices), values=list(vector.values))
