"""The embedded vector store: the Qdrant engine in this process, one shard a collection, all tenants in each.

What is measured and relied on (qdrant-edge 0.9):

- Every call holds the GIL, .05 to a few ms, so a thread pool would gain nothing: calls are made directly, and long writes
  give way to the loop between batches.
- A write is in the write-ahead log when it returns: kill -9 loses nothing; `flush` guards against a power loss.
- A shard that is never optimised answers by scanning the tenant's points (an index finds them), which is exact. Of 20,000
  points, 384 dimensions: a hybrid query takes 0.9 ms (CPU) in a tenant of 40, 2 ms in one of 2,000 and 5 ms in one of all,
  the dense leg 3.5 of them; reopening takes 0.2 s. Building HNSW graphs (``optimize``) freezes the process while it runs
  and pays off past some 20,000 points a tenant: this class never does it. It belongs on a flushed copy, in another
  process, to be swapped in.
- One keyword, the scope, stands for tenant, kind and generation in searches: two conditions cost five times one.
- Inverse document frequency over the whole shard would let one tenant's words change another's ranking; every sparse query
  names its corpus (`SearchParams.idf`), which the engine heeds because the queries have no outer stage.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from qdrant_edge import (
    CountRequest,
    EdgeShard,
    FieldCondition,
    HasIdCondition,
    IdfParams,
    MatchValue,
    Point,
    RangeFloat,
    ScrollRequest,
    SearchParams,
    UpdateOperation,
)
from qdrant_edge import Filter as EngineFilter

from agentic_rag_backend.domain.tenant import TenantId, require_tenant
from agentic_rag_backend.errors import InvalidRequest, StoreUnavailable
from agentic_rag_backend.stores.vector.base import (
    Collection,
    Legs,
    NodeKind,
    Vector,
    VectorPoint,
    VectorSearch,
    filterable,
)
from agentic_rag_backend.stores.vector.bm25 import Bm25Encoder, Bm25Parameters
from agentic_rag_backend.stores.vector.filters import TAGS, translate
from agentic_rag_backend.stores.vector.folder import engine_errors, lock, open_shards
from agentic_rag_backend.stores.vector.ranking import DENSE, SPARSE, Leg, run_legs, unit_length
from agentic_rag_backend.stores.vector.tags import tags_of
from agentic_rag_backend.stores.vector.vocabulary import Vocabulary

_LAYOUT = "layout 1"
"""Raised when payloads change in a way that stored points would not fit."""
_BATCH_POINTS = 64
"""Some 10 ms of work, all of which holds the loop."""
_PAGE_POINTS = 10_000
_MAX_LIMIT = 10_000
_NAMESPACE = uuid.UUID("9b0c7a3e-6a0f-5d0b-8a53-0f6f6f0e4c55")


class EdgeVectorStore:
    """`VectorStore` on ``qdrant_edge``; made by `open`, owned by one process, used from one event loop."""

    def __init__(
        self, shards: dict[Collection, EdgeShard], lock_descriptor: int, encoder: Bm25Encoder, about: tuple[str, int]
    ) -> None:
        self._shards = shards
        self._lock_descriptor = lock_descriptor
        self._encoder = encoder
        self._fingerprint, self._dimensions = about
        self._vocabularies = {collection: Vocabulary() for collection in Collection}

    @classmethod
    async def open(
        cls, folder: Path, *, dimensions: int, embedder_fingerprint: str, bm25: Bm25Parameters | None = None
    ) -> EdgeVectorStore:
        """Open the store in ``folder``, making it if it is not there.

        Args:
            dimensions: of the dense vectors.
            embedder_fingerprint: names what makes them; stored with them.
            bm25: what makes the sparse ones.

        Raises:
            StoreLocked: the folder is open already, here or in another process.
            ReindexRequired: it holds vectors of another embedder, dimension, datatype or BM25 parameters.
            StoreUnavailable: its files cannot be read.
        """
        parameters = bm25 or Bm25Parameters()
        fingerprint = f"{embedder_fingerprint}; {dimensions} x float32; {parameters.fingerprint}; {_LAYOUT}"
        encoder = Bm25Encoder(parameters)
        descriptor = lock(folder)
        try:
            shards = open_shards(folder, fingerprint, dimensions=dimensions)
        except BaseException:
            os.close(descriptor)
            raise
        return cls(shards, descriptor, encoder, (fingerprint, dimensions))

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    def terms(self, text: str) -> frozenset[int]:
        vector = self._encoder.query(text)
        return frozenset(vector.indices) if vector is not None else frozenset()

    async def upsert(self, tenant: TenantId, collection: Collection, points: Sequence[VectorPoint]) -> None:
        tenant = require_tenant(tenant)
        latest = list({point.id: point for point in points}.values())
        batches = [latest[start : start + _BATCH_POINTS] for start in range(0, len(latest), _BATCH_POINTS)]
        checked = []
        for batch in batches:
            checked.append((self._checked([point.dense for point in batch]), _tags_of_points(batch)))
            await asyncio.sleep(0)
        for batch, (dense, tags) in zip(batches, checked, strict=True):
            records = [self._point(tenant, collection, *parts) for parts in zip(batch, dense, tags, strict=True)]
            self._vocabularies[collection].add(tenant, set(chain.from_iterable(tags)))
            self._update(collection, UpdateOperation.upsert_points(records))
            await asyncio.sleep(0)

    async def search(self, tenant: TenantId, collection: Collection, searches: Sequence[VectorSearch]) -> list[Legs]:
        tenant = require_tenant(tenant)
        legs: dict[tuple[int, str], Leg] = {}
        for number, search in enumerate(searches):
            legs.update(((number, name), leg) for name, leg in self._legs(tenant, collection, search))
        with engine_errors("searching"):
            found = dict(zip(legs, run_legs(self._shard(collection), list(legs.values())), strict=True))
        return [
            Legs(dense=found.get((number, DENSE), ()), sparse=found.get((number, SPARSE), ())) for number in range(len(searches))
        ]

    async def vectors(self, tenant: TenantId, collection: Collection, ids: Sequence[str]) -> dict[str, Vector]:
        tenant = require_tenant(tenant)
        wanted = {_point_id(tenant, collection, id): id for id in ids}
        with engine_errors("reading vectors"):
            records = self._shard(collection).retrieve(list(wanted), with_payload=False, with_vector=[DENSE])
        return {
            wanted[str(record.id)]: np.asarray(record.vector[DENSE], dtype=np.float32)
            for record in records
            if isinstance(record.vector, dict) and DENSE in record.vector
        }

    async def update_metadata(
        self, tenant: TenantId, document_id: str, metadata: Mapping[str, Any], *, title: str, key: str | None
    ) -> None:
        tenant = require_tenant(tenant)
        tags = tags_of(filterable(metadata, document_id=document_id, key=key, title=title))
        self._vocabularies[Collection.CHUNKS].add(tenant, tags)
        chunks = _scope(tenant, _match("document_id", document_id))
        self._update(Collection.CHUNKS, UpdateOperation.set_payload_by_filter(chunks, {TAGS: tags}))

    async def delete(self, tenant: TenantId, collection: Collection, ids: Sequence[str]) -> int:
        tenant = require_tenant(tenant)
        if not ids:
            return 0
        return self._delete(collection, _scope(tenant, HasIdCondition({_point_id(tenant, collection, id) for id in ids})))

    async def delete_document(self, tenant: TenantId, document_id: str, *, up_to_version: int, keep: Sequence[str] = ()) -> int:
        tenant = require_tenant(tenant)
        doomed = _scope(
            tenant,
            _match("document_id", document_id),
            FieldCondition(key="version", range=RangeFloat(lte=up_to_version)),
        )
        if keep:
            kept = HasIdCondition({_point_id(tenant, Collection.CHUNKS, id) for id in keep})
            doomed = EngineFilter(must=[doomed], must_not=[kept])
        return self._delete(Collection.CHUNKS, doomed)

    async def delete_generations(self, tenant: TenantId, *, below: int) -> int:
        tenant = require_tenant(tenant)
        communities = _match("scope", _corpus_name(tenant, NodeKind.COMMUNITY, None))
        older = FieldCondition(key="generation", range=RangeFloat(lt=below))
        return self._delete(Collection.NODES, _scope(tenant, communities, older))

    async def delete_tenant(self, tenant: TenantId) -> int:
        tenant = require_tenant(tenant)
        deleted = sum(self._delete(collection, _scope(tenant)) for collection in Collection)
        for vocabulary in self._vocabularies.values():
            vocabulary.forget(tenant)
        return deleted

    async def count(self, tenant: TenantId, collection: Collection, *, document_id: str | None = None) -> int:
        tenant = require_tenant(tenant)
        return self._count(collection, _scope(tenant, *([_match("document_id", document_id)] if document_id is not None else [])))

    async def flush(self) -> None:
        for collection in Collection:
            with engine_errors("flushing"):
                self._shard(collection).flush()

    async def ping(self) -> None:
        for collection in Collection:
            with engine_errors("answering"):
                self._shard(collection).info()

    async def close(self) -> None:
        """Flush, close and give the folder back; closing twice is no error."""
        if not self._shards:
            return
        shards, self._shards = self._shards, {}
        try:
            for shard in shards.values():
                with engine_errors("closing"):
                    shard.flush()
                    shard.close()
        finally:
            os.close(self._lock_descriptor)

    # --- internals

    def _shard(self, collection: Collection) -> EdgeShard:
        if not self._shards:
            raise StoreUnavailable("the vector store is closed")
        return self._shards[Collection(collection)]

    def _update(self, collection: Collection, operation: UpdateOperation) -> None:
        shard = self._shard(collection)
        with engine_errors("writing"):
            shard.update(operation)

    def _count(self, collection: Collection, filter: EngineFilter) -> int:
        shard = self._shard(collection)
        with engine_errors("counting"):
            return shard.count(CountRequest(exact=True, filter=filter))

    def _delete(self, collection: Collection, doomed: EngineFilter) -> int:
        existing = self._count(collection, doomed)
        if existing:
            self._update(collection, UpdateOperation.delete_points_by_filter(doomed))
        return existing

    def _checked(self, vectors: Sequence[Vector | None]) -> list[Vector | None]:
        """Return the vectors at unit length; the engine would take NaN, and apply a batch up to its first bad vector."""
        given = [np.asarray(vector, dtype=np.float32) for vector in vectors if vector is not None]
        if not given:
            return [None] * len(vectors)
        for array in given:
            if array.shape != (self._dimensions,):
                raise InvalidRequest(f"vectors of this store have {self._dimensions} dimensions; got shape {array.shape}")
        matrix = np.stack(given)
        if not np.isfinite(matrix).all():
            raise InvalidRequest("vectors hold finite numbers; got NaN or infinity")
        scaled = iter(unit_length(matrix))
        return [None if vector is None else next(scaled) for vector in vectors]

    def _point(
        self, tenant: TenantId, collection: Collection, point: VectorPoint, dense: Vector | None, tags: Sequence[str]
    ) -> Point:
        vectors: dict[str, Any] = {}
        if dense is not None:
            vectors[DENSE] = dense.tolist()
        sparse = self._encoder.document(point.text)
        if sparse is not None:
            vectors[SPARSE] = sparse
        payload: dict[str, Any] = {
            "tenant": tenant.value,
            "scope": [_corpus_name(tenant, point.kind, None)],
            "id": point.id,
            "version": point.version or 0,
            TAGS: list(tags),
        }
        if point.document_id is not None:
            payload["document_id"] = point.document_id
        if point.generation is not None:
            payload["generation"] = point.generation
            payload["scope"].append(_corpus_name(tenant, point.kind, point.generation))
        return Point(_point_id(tenant, collection, point.id), vectors, payload)

    def _legs(self, tenant: TenantId, collection: Collection, search: VectorSearch) -> Iterator[tuple[str, Leg]]:
        if not 1 <= search.limit <= _MAX_LIMIT:
            raise InvalidRequest(f"the limit of a search is 1 to {_MAX_LIMIT}; got {search.limit}")
        (dense,) = self._checked([search.dense])
        sparse = self._encoder.query(search.text)
        corpus = EngineFilter(must=[_match("scope", _corpus_name(tenant, search.kind, search.generation))])
        scope = corpus
        if search.filter is not None:
            condition = translate(search.filter, lambda: self._values(tenant, collection))
            if condition is False:
                return
            if isinstance(condition, EngineFilter):
                scope = EngineFilter(must=[corpus, condition])
        if dense is not None:
            yield DENSE, Leg(dense, search.limit, scope, SearchParams())
        if sparse is not None:
            yield SPARSE, Leg(sparse, search.limit, scope, SearchParams(idf=IdfParams(corpus=corpus)))

    def _values(self, tenant: TenantId, collection: Collection) -> Mapping[str, Mapping[str, Any]]:
        return self._vocabularies[collection].values(tenant, lambda: self._stored_tags(tenant, collection))

    def _stored_tags(self, tenant: TenantId, collection: Collection) -> set[str]:
        tags: set[str] = set()
        offset = None
        while True:
            request = ScrollRequest(offset=offset, limit=_PAGE_POINTS, filter=_scope(tenant), with_payload=[TAGS])
            records, offset = self._shard(collection).scroll(request)
            for record in records:
                tags.update((record.payload or {}).get(TAGS, ()))
            if offset is None:
                return tags


def _match(field: str, value: str | int) -> FieldCondition:
    return FieldCondition(key=field, match=MatchValue(value))


def _scope(tenant: TenantId, *conditions: FieldCondition | HasIdCondition) -> EngineFilter:
    """Return the filter of everything but searches: the tenant always, and whatever else."""
    return EngineFilter(must=[_match("tenant", tenant.value), *conditions])


def _corpus_name(tenant: TenantId, kind: NodeKind, generation: int | None) -> str:
    """Name what a search is over: one keyword, since a conjunction of two costs the engine five times a single match."""
    return f"{tenant.value}/{kind.value}" if generation is None else f"{tenant.value}/{kind.value}/{generation}"


def _point_id(tenant: TenantId, collection: Collection, id: str) -> str:
    """Return the engine's id of a point; equal ids of two tenants are two points."""
    return str(uuid.uuid5(_NAMESPACE, f"{tenant.value}/{collection}/{id}"))


def _tags_of_points(points: Sequence[VectorPoint]) -> list[list[str]]:
    """Return the tags of each point; the chunks of a document mostly share one metadata object, which is read once."""
    seen: dict[tuple[object, ...], list[str]] = {}
    tags = []
    for point in points:
        source = (id(point.metadata), point.document_id, point.key, point.title)
        if source not in seen:
            seen[source] = tags_of(point.fields)
        tags.append(seen[source])
    return tags
