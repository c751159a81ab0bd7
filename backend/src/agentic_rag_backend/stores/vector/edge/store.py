"""The embedded vector store: the Qdrant engine in this process, one shard a collection, all tenants in each.

The design relies on these measurements (qdrant-edge 0.9):

- Every call holds the GIL, .05 to a few ms, so a thread pool would gain nothing: calls are made directly, and long writes
  yield to the event loop between batches.
- A write is in the write-ahead log when it returns: kill -9 loses nothing. The engine reads the log again at opening, in every
  state of the other files. So writing the log to the disk guards against a power loss, and the engine's own flush can wait
  (`Shard.secure`).
- A shard that is never optimised answers by scanning the tenant's points (an index finds them), which is exact. Of 20,000
  points, 384 dimensions: a hybrid query takes 0.9 ms (CPU) in a tenant of 40, 2 ms in one of 2,000 and 5 ms in one of all,
  the dense leg 3.5 of them; reopening takes 0.2 s. Building HNSW graphs (``optimize``) freezes the process while it runs
  and pays off past some 20,000 points a tenant: `upkeep` builds them on a copy, in another process, and swaps that in.
- The engine holds points outside an index in memory, except their dense vectors and payloads: 3 kB for a chunk, half of it
  its words. In an index they are files (`Layout.config`). Closing a shard frees that memory, and glibc keeps it until asked.
- One keyword, the scope, combines tenant, kind and generation in searches: two conditions cost five times one.
- Inverse document frequency over the whole shard would let one tenant's words change another's ranking. Every sparse query
  names its corpus (`SearchParams.idf`), which the engine heeds because the queries have no outer stage.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from qdrant_edge import (
    FacetRequest,
    FieldCondition,
    HasIdCondition,
    IdfParams,
    MatchAny,
    Point,
    RangeFloat,
    ScrollRequest,
    SearchParams,
    SparseVector,
)
from qdrant_edge import Filter as EngineFilter

from agentic_rag_backend.domain.filters import filterable_fields
from agentic_rag_backend.domain.tenant import Access, TenantId, require_tenant
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.stores.vector.base import (
    OF_DOCUMENTS,
    Collection,
    IndexStatus,
    Legs,
    NodeKind,
    StoredPoint,
    Vector,
    VectorPoint,
    VectorSearch,
)
from agentic_rag_backend.stores.vector.bm25 import Bm25Encoder, Bm25Parameters
from agentic_rag_backend.stores.vector.conditions import TAGS, Vocabulary, tags_of
from agentic_rag_backend.stores.vector.edge.edge_engine import Layout, Translation, engine_errors, having_ids, match, within
from agentic_rag_backend.stores.vector.edge.edge_ranking import IN_NOTHING, EdgeLeg, InverseFrequencies, run_legs
from agentic_rag_backend.stores.vector.edge.folder import close_shards, lock, open_shards
from agentic_rag_backend.stores.vector.edge.shard import Shard
from agentic_rag_backend.stores.vector.edge.upkeep import NO_UPKEEP, IndexUpkeep, UpkeepOptions
from agentic_rag_backend.stores.vector.points import (
    DENSE,
    DESCRIBED,
    SPARSE,
    check_limit,
    checked_vectors,
    fingerprint_of,
    parse_payload,
    payload_of,
    point_id,
    scope_name,
    tags_of_points,
)

_BATCH_POINTS = 8
"""About 1 ms of work, which blocks the event loop. Writing 64 at once takes as long for each point (measured)."""
_PAGE_POINTS = 10_000
_LISTED_POINTS = 500
"""About 5 ms of reading payloads, which blocks the event loop."""
_MAX_TENANTS = 1_000_000


class EdgeVectorStore:
    """`VectorStore` on ``qdrant_edge``. Created by `open`, owned by one process, used from one event loop."""

    def __init__(
        self,
        shards: dict[Collection, Shard],
        upkeep: IndexUpkeep,
        *,
        lock_descriptor: int,
        encoder: Bm25Encoder,
        fingerprint: str,
    ) -> None:
        self.upkeep = upkeep
        self._shards = shards
        self._lock_descriptor = lock_descriptor
        self._encoder = encoder
        self._fingerprint = fingerprint
        self._dimensions = upkeep.layout.dimensions
        self._vocabularies = {collection: Vocabulary() for collection in Collection}
        self._frequencies = {collection: InverseFrequencies() for collection in Collection}

    @classmethod
    async def open(
        cls,
        folder: Path,
        *,
        dimensions: int,
        embedder_fingerprint: str,
        bm25: Bm25Parameters | None = None,
        upkeep: UpkeepOptions = NO_UPKEEP,
    ) -> EdgeVectorStore:
        """Open the store in ``folder``; create it if it does not exist.

        Args:
            dimensions: length of the dense vectors.
            embedder_fingerprint: identity of the embedder; stored with the vectors.
            bm25: parameters of the sparse vectors.
            upkeep: when an index is built.

        Raises:
            StoreLocked: the folder is open already, here or in another process.
            ReindexRequired: it holds vectors of another embedder, dimension, datatype or BM25 parameters.
            StoreUnavailable: its files cannot be read.
        """
        parameters = bm25 or Bm25Parameters()
        fingerprint = fingerprint_of(embedder_fingerprint, dimensions, parameters)
        encoder = Bm25Encoder(parameters)
        descriptor = lock(folder)
        try:
            layout = Layout(dimensions, upkeep.min_points) if upkeep.min_points else Layout(dimensions)
            shards = open_shards(folder, fingerprint, layout)
        except BaseException:
            os.close(descriptor)
            raise
        store = cls(
            shards, IndexUpkeep(shards, layout, upkeep), lock_descriptor=descriptor, encoder=encoder, fingerprint=fingerprint
        )
        store.upkeep.start()
        return store

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    def terms(self, text: str) -> frozenset[int]:
        return self._encoder.terms(text)

    async def upsert(self, tenant: TenantId, collection: Collection, points: Sequence[VectorPoint]) -> None:
        tenant = require_tenant(tenant)
        latest = list({point.id: point for point in points}.values())
        batches = [latest[start : start + _BATCH_POINTS] for start in range(0, len(latest), _BATCH_POINTS)]
        checked = []
        for batch in batches:
            checked.append((checked_vectors([point.dense for point in batch], self._dimensions), tags_of_points(batch)))
            await asyncio.sleep(0)
        for batch, (dense, tags) in zip(batches, checked, strict=True):
            records = [self._point(tenant, collection, *parts) for parts in zip(batch, dense, tags, strict=True)]
            shard = await self._writable(collection)
            self._vocabularies[collection].add(tenant, set(chain.from_iterable(tags)))
            self._frequencies[collection].forget_tenant(tenant)
            shard.upsert(records)
            await asyncio.sleep(0)

    async def search(self, tenant: TenantId, collection: Collection, searches: Sequence[VectorSearch]) -> list[Legs]:
        access, tenant = require_tenant(tenant).access, tenant.whole
        legs: dict[tuple[int, str], EdgeLeg] = {}
        for number, search in enumerate(searches):
            legs.update(((number, name), leg) for name, leg in self._legs(tenant, collection, search, access))
        with engine_errors("searching"):
            rankings = dict(zip(legs, await run_legs(lambda: self._shard(collection).engine, list(legs.values())), strict=True))
        return [
            Legs(dense=rankings.get((number, DENSE), ()), sparse=rankings.get((number, SPARSE), ()))
            for number in range(len(searches))
        ]

    async def vectors(self, tenant: TenantId, collection: Collection, ids: Sequence[str]) -> dict[str, Vector]:
        tenant = require_tenant(tenant)
        ids_by_point = {point_id(tenant, collection, id): id for id in ids}
        with engine_errors("reading vectors"):
            records = self._shard(collection).engine.retrieve(list(ids_by_point), with_payload=False, with_vector=[DENSE])
        return {
            ids_by_point[str(record.id)]: np.asarray(record.vector[DENSE], dtype=np.float32)
            for record in records
            if isinstance(record.vector, dict) and DENSE in record.vector
        }

    async def update_metadata(
        self,
        tenant: TenantId,
        document_id: str,
        metadata: Mapping[str, Any],
        *,
        title: str,
        key: str | None,
        up_to_version: int,
    ) -> None:
        tenant = require_tenant(tenant)
        tags = tags_of(filterable_fields(metadata, document_id=document_id, key=key, title=title))
        shard = await self._writable(Collection.CHUNKS)
        self._vocabularies[Collection.CHUNKS].add(tenant, tags)
        shard.set_payload(_of_versions(tenant, document_id, up_to_version), {TAGS: tags})

    async def delete(self, tenant: TenantId, collection: Collection, ids: Sequence[str]) -> int:
        tenant = require_tenant(tenant)
        if not ids:
            return 0
        return await self._delete(tenant, collection, within(tenant, having_ids(tenant, collection, ids)))

    async def delete_document(self, tenant: TenantId, document_id: str, *, up_to_version: int, keep: Sequence[str] = ()) -> int:
        tenant = require_tenant(tenant)
        doomed = _of_versions(tenant, document_id, up_to_version)
        if keep:
            kept_points = having_ids(tenant, Collection.CHUNKS, keep)
            doomed = EngineFilter(must=[doomed], must_not=[kept_points])
        return await self._delete(tenant, Collection.CHUNKS, doomed)

    async def delete_generations(self, tenant: TenantId, *, below: int) -> int:
        tenant = require_tenant(tenant)
        communities = match("scope", scope_name(tenant, NodeKind.COMMUNITY, None))
        older = FieldCondition(key="generation", range=RangeFloat(lt=below))
        return await self._delete(tenant, Collection.NODES, within(tenant, communities, older))

    async def delete_tenant(self, tenant: TenantId) -> int:
        tenant = require_tenant(tenant)
        deleted = sum([await self._delete(tenant, collection, within(tenant)) for collection in Collection])
        for collection in Collection:
            self._vocabularies[collection].forget(tenant)
            self._frequencies[collection].forget(tenant)
        return deleted

    async def count(self, tenant: TenantId, collection: Collection, *, document_id: str | None = None) -> int:
        tenant = require_tenant(tenant)
        condition = [match("document_id", document_id)] if document_id is not None else []
        return self._shard(collection).count(within(tenant, *condition))

    def points(
        self,
        tenant: TenantId,
        collection: Collection,
        *,
        kind: NodeKind | None = None,
        document_ids: Sequence[str] | None = None,
        ids: Sequence[str] | None = None,
    ) -> AsyncIterator[list[StoredPoint]]:
        tenant = require_tenant(tenant)
        conditions: list[FieldCondition | HasIdCondition] = []
        if kind is not None:
            conditions.append(match("scope", scope_name(tenant, kind, None)))
        if document_ids is not None:
            conditions.append(FieldCondition(key="document_id", match=MatchAny(list(document_ids))))
        if ids is not None:
            conditions.append(having_ids(tenant, collection, ids))
        nothing = (document_ids is not None and not document_ids) or (ids is not None and not ids)
        return self._pages(collection, None if nothing else within(tenant, *conditions))

    async def tenants(self) -> list[TenantId]:
        tenants_found: set[TenantId] = set()
        for collection in Collection:
            with engine_errors("listing tenants"):
                request = FacetRequest(key="tenant", limit=_MAX_TENANTS, exact=True)
                tenants_of_facet = [TenantId(str(hit.value)) for hit in self._shard(collection).engine.facet(request).hits]
            for tenant in tenants_of_facet:  # the engine also lists tenants whose points are all deleted
                if tenant not in tenants_found and self._shard(collection).count(within(tenant)):
                    tenants_found.add(tenant)
                await asyncio.sleep(0)
        return sorted(tenants_found)

    async def indexes(self) -> list[IndexStatus]:
        await self.ping()
        return self.upkeep.status()

    async def flush(self) -> None:
        for collection in Collection:
            await (await self._writable(collection)).secure()

    async def ping(self) -> None:
        for collection in Collection:
            shard = self._shard(collection)
            shard.require_room()
            with engine_errors("answering"):
                shard.engine.info()

    async def close(self) -> None:
        """Flush, close and release the folder. Idempotent."""
        if not self._shards:
            return
        shards, self._shards = self._shards, {}
        try:
            await self.upkeep.stop()
            close_shards(shards)
        finally:
            os.close(self._lock_descriptor)

    # --- internals

    def _shard(self, collection: Collection) -> Shard:
        if not self._shards:
            raise StoreUnavailable("the vector store is closed")
        return self._shards[Collection(collection)]

    async def _writable(self, collection: Collection) -> Shard:
        await self._shard(collection).writable()
        return self._shard(collection)

    async def _delete(self, tenant: TenantId, collection: Collection, doomed: EngineFilter) -> int:
        shard = await self._writable(collection)
        self._frequencies[collection].forget_tenant(tenant)
        return shard.delete(doomed)

    def _point(
        self, tenant: TenantId, collection: Collection, point: VectorPoint, dense: Vector | None, tags: Sequence[str]
    ) -> Point:
        vectors: dict[str, Any] = {}
        if dense is not None:
            vectors[DENSE] = dense.tolist()
        sparse = self._encoder.document(point.text, point.language)
        if sparse is not None:
            vectors[SPARSE] = SparseVector(list(sparse.indices), list(sparse.values))
        return Point(point_id(tenant, collection, point.id), vectors, payload_of(tenant, point, tags))

    def _legs(
        self, tenant: TenantId, collection: Collection, search: VectorSearch, access: Access | None
    ) -> Iterator[tuple[str, EdgeLeg]]:
        check_limit(search.limit)
        (dense,) = checked_vectors([search.dense], self._dimensions)
        sparse = self._encoder.query(search.text)
        name = scope_name(tenant, search.kind, search.generation)
        corpus = EngineFilter(must=[match("scope", name)])
        translation = Translation(tenant, collection, lambda: self._values(tenant, collection))
        if access is not None and search.kind in OF_DOCUMENTS:
            readable = translation.of(access.filter, search.kind)
            if readable is False:
                return
            if isinstance(readable, EngineFilter):
                corpus = EngineFilter(must=[corpus, readable])
        scope = corpus
        if search.filter is not None:
            condition = translation.of(search.filter, search.kind)
            if condition is False:
                return
            if isinstance(condition, EngineFilter):
                scope = EngineFilter(must=[corpus, condition])
        if dense is not None:
            yield DENSE, EdgeLeg(dense, search.limit, scope, SearchParams())
        if sparse is not None:
            weighed = None
            if access is None:
                with engine_errors("searching"):
                    weighed = self._frequencies[collection].weigh(self._shard(collection).engine, tenant, name, corpus, sparse)
            params = IN_NOTHING if weighed is not None else SearchParams(idf=IdfParams(corpus=corpus))
            yield SPARSE, EdgeLeg(weighed or sparse, search.limit, scope, params)

    def _values(self, tenant: TenantId, collection: Collection) -> Mapping[str, Mapping[str, Any]]:
        return self._vocabularies[collection].values(tenant, lambda: self._stored_tags(tenant, collection))

    async def _pages(self, collection: Collection, filter: EngineFilter | None) -> AsyncIterator[list[StoredPoint]]:
        offset = None
        while filter is not None:
            with engine_errors("listing"):
                request = ScrollRequest(offset=offset, limit=_LISTED_POINTS, filter=filter, with_payload=DESCRIBED)
                records, offset = self._shard(collection).engine.scroll(request)
            if records:
                yield [parse_payload(record.payload or {}) for record in records]
            if offset is None:
                return
            await asyncio.sleep(0)

    def _stored_tags(self, tenant: TenantId, collection: Collection) -> set[str]:
        tags: set[str] = set()
        offset = None
        while True:
            request = ScrollRequest(offset=offset, limit=_PAGE_POINTS, filter=within(tenant), with_payload=[TAGS])
            records, offset = self._shard(collection).engine.scroll(request)
            for record in records:
                tags.update((record.payload or {}).get(TAGS, ()))
            if offset is None:
                return tags


def _of_versions(tenant: TenantId, document_id: str, up_to_version: int) -> EngineFilter:
    """Select the document's chunks whose version ≤ ``up_to_version``."""
    version = FieldCondition(key="version", range=RangeFloat(lte=up_to_version))
    return within(tenant, match("document_id", document_id), version)
