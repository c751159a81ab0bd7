"""The vector store of the server profile: a Qdrant server, two collections, all tenants in each, any number of processes.

The points equal the embedded store's: same ids, payloads, vectors and scopes, so that ranks are equal. The differences:

- A write returns when it is applied (``wait``). The server has then also written its log to the disk, so `flush` has
  nothing left to do, and every process reads the write.
- Comparisons by order or substring need a field's distinct values. Other processes write values too, so each such search asks
  the server for them: one request, whose answer grows with the tenant's distinct values.
- Several searches are one request; a second one follows only where ties or last bits are in doubt (`points`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from qdrant_client import AsyncQdrantClient, models

from agentic_rag_backend.domain.filters import filterable_fields
from agentic_rag_backend.domain.tenant import Access, TenantId, require_tenant
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.stores.ownership import Owner
from agentic_rag_backend.stores.vector.base import (
    OF_DOCUMENTS,
    Collection,
    IndexState,
    IndexStatus,
    Legs,
    NodeKind,
    ScoredId,
    StoredPoint,
    Vector,
    VectorPoint,
    VectorSearch,
)
from agentic_rag_backend.stores.vector.bm25 import Bm25Encoder, Bm25Parameters
from agentic_rag_backend.stores.vector.conditions import TAGS, FieldValues, read_tag, reads_values, select, tags_of
from agentic_rag_backend.stores.vector.points import (
    DENSE,
    DESCRIBED,
    SPARSE,
    check_limit,
    checked_vectors,
    fingerprint_of,
    parse_payload,
    point_id,
    scope_name,
    settle,
    tags_of_points,
)
from agentic_rag_backend.stores.vector.qdrant.point_ownership import claim, require_owner
from agentic_rag_backend.stores.vector.qdrant.server import (
    QdrantServer,
    activate_collections,
    open_collections,
    require_supported_version,
)
from agentic_rag_backend.stores.vector.qdrant.server_requests import (
    Prepared,
    QdrantLeg,
    batches,
    condition_filter,
    having_ids,
    match,
    match_any,
    query_request,
    scope_of,
    within,
)

_BATCH_BYTES = 8_000_000
"""The server refuses bodies over 32 MB."""
_BATCH_POINTS = 64
"""About 25 ms for building the request at 384 dimensions, which blocks the event loop."""
_LISTED_POINTS = 500
_READ_VECTORS = 500
_NAMED_IDS = 10_000
_FIRST_VALUES = 10_000
_OF_NOBODY = "agentic_rag"


class QdrantVectorStore:
    """`VectorStore` on a Qdrant server. Created by `open`, used from one event loop."""

    def __init__(
        self,
        server: QdrantServer,
        names: Mapping[Collection, str],
        *,
        encoder: Bm25Encoder,
        fingerprint: str,
        dimensions: int,
        owner: Owner | None = None,
    ) -> None:
        self._server = server
        self._owner = owner
        self._client = server.client
        self._names = names
        self._encoder = encoder
        self._fingerprint = fingerprint
        self._dimensions = dimensions

    @classmethod
    async def open(
        cls,
        client: AsyncQdrantClient,
        *,
        dimensions: int,
        embedder_fingerprint: str,
        bm25: Bm25Parameters | None = None,
        owner: Owner | None = None,
        timeout_s: float = 10.0,
        building: bool = False,
    ) -> QdrantVectorStore:
        """Open the collections of this fingerprint and create missing ones. Closing the store closes the client.

        Args:
            client: see `qdrant_server.connect`.
            dimensions: length of the dense vectors.
            embedder_fingerprint: identity of the embedder; stored with the vectors.
            bm25: parameters of the sparse vectors.
            owner: the deployment that must own the collections, whose name is their prefix; None: no owner.
            timeout_s: time limit of a call in seconds, including retries. Writing many points takes many calls.
            building: open the collections under construction (see `take_over`).

        Raises:
            ReindexRequired: the server holds vectors of another embedder, dimension, datatype or BM25 parameters.
            ConfigurationError: the server is too old, or the collections belong to another deployment.
            StoreUnavailable: the server does not answer.
        """
        parameters = bm25 or Bm25Parameters()
        fingerprint = fingerprint_of(embedder_fingerprint, dimensions, parameters)
        server = QdrantServer(client, timeout_s=timeout_s)
        try:
            encoder = Bm25Encoder(parameters)
            await require_supported_version(server)
            if owner is not None:  # before anything is created, or existing vectors are taken for ours
                await claim(server, _prefix(owner), owner)
            mark = owner.mark() if owner is not None else {}
            names = await open_collections(
                server, _prefix(owner), mark, fingerprint=fingerprint, dimensions=dimensions, building=building
            )
            if owner is not None:  # another deployment may have just created them
                await require_owner(server, names.values(), owner)
        except BaseException:
            await server.close()
            raise
        return cls(server, names, encoder=encoder, fingerprint=fingerprint, dimensions=dimensions, owner=owner)

    async def take_over(self) -> None:
        """Put the new collections into use, and remove the collections of other fingerprints. Repeatable."""
        if self._owner is not None:
            await claim(self._server, _prefix(self._owner), self._owner)
        await activate_collections(self._server, _prefix(self._owner), self._fingerprint)

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    def terms(self, text: str) -> frozenset[int]:
        return self._encoder.terms(text)

    async def upsert(self, tenant: TenantId, collection: Collection, points: Sequence[VectorPoint]) -> None:
        tenant = require_tenant(tenant)
        latest = list({point.id: point for point in points}.values())
        dense = checked_vectors([point.dense for point in latest], self._dimensions)
        tags = tags_of_points(latest)
        prepared = (
            Prepared(point=point, dense=vector, sparse=self._encoder.document(point.text, point.language), tags=of_point)
            for point, vector, of_point in zip(latest, dense, tags, strict=True)
        )
        name = self._names[Collection(collection)]
        for batch in batches(prepared, tenant, max_points=_BATCH_POINTS, max_bytes=_BATCH_BYTES):
            structs = [vector_point.struct(tenant, collection) for vector_point in batch]
            await self._server.write("writing", self._client.upsert, name, structs, wait=True)

    async def search(self, tenant: TenantId, collection: Collection, searches: Sequence[VectorSearch]) -> list[Legs]:
        access, tenant = require_tenant(tenant).access, tenant.whole
        values: FieldValues = {}
        filters = [search.filter for search in searches] + [access.filter if access is not None else None]
        if any(filter is not None and reads_values(filter) for filter in filters):
            values = await self._values(tenant, collection)
        legs: dict[tuple[int, str], QdrantLeg] = {}
        for number, search in enumerate(searches):
            legs.update(((number, name), leg) for name, leg in self._legs(tenant, collection, search, values, access))
        rankings = dict(zip(legs, await self._rank_leg(collection, list(legs.values())), strict=True))
        return [
            Legs(dense=rankings.get((number, DENSE), ()), sparse=rankings.get((number, SPARSE), ()))
            for number in range(len(searches))
        ]

    async def vectors(self, tenant: TenantId, collection: Collection, ids: Sequence[str]) -> dict[str, Vector]:
        tenant = require_tenant(tenant)
        ids_by_point = {point_id(tenant, collection, id): id for id in ids}
        vectors_of: dict[str, Vector] = {}
        for page in _page_through(list(ids_by_point.values()), _READ_VECTORS):
            chosen = within(tenant, having_ids(tenant, collection, page))
            records, _ = await self._scroll_points(collection, chosen, limit=len(page), vectors=[DENSE])
            for record in records:
                if isinstance(record.vector, dict) and DENSE in record.vector:
                    vectors_of[ids_by_point[str(record.id)]] = np.asarray(record.vector[DENSE], dtype=np.float32)
        return vectors_of

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
        chunks = _of_versions(tenant, document_id, up_to_version)
        name = self._names[Collection.CHUNKS]
        await self._server.write("writing", self._client.set_payload, name, {TAGS: tags}, points=chunks, wait=True)

    async def delete(self, tenant: TenantId, collection: Collection, ids: Sequence[str]) -> int:
        tenant = require_tenant(tenant)
        deleted = 0
        for page in _page_through(list(dict.fromkeys(ids)), _NAMED_IDS):
            deleted += await self._delete_points(collection, within(tenant, having_ids(tenant, collection, page)))
        return deleted

    async def delete_document(self, tenant: TenantId, document_id: str, *, up_to_version: int, keep: Sequence[str] = ()) -> int:
        tenant = require_tenant(tenant)
        doomed = _of_versions(tenant, document_id, up_to_version)
        if keep:
            doomed.must_not = [having_ids(tenant, Collection.CHUNKS, keep)]
        return await self._delete_points(Collection.CHUNKS, doomed)

    async def delete_generations(self, tenant: TenantId, *, below: int) -> int:
        tenant = require_tenant(tenant)
        communities = match("scope", scope_name(tenant, NodeKind.COMMUNITY, None))
        older = models.FieldCondition(key="generation", range=models.Range(lt=below))
        return await self._delete_points(Collection.NODES, within(tenant, communities, older))

    async def delete_tenant(self, tenant: TenantId) -> int:
        tenant = require_tenant(tenant)
        return sum([await self._delete_points(collection, within(tenant)) for collection in Collection])

    async def count(self, tenant: TenantId, collection: Collection, *, document_id: str | None = None) -> int:
        tenant = require_tenant(tenant)
        condition = [match("document_id", document_id)] if document_id is not None else []
        return await self._count_points(collection, within(tenant, *condition))

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
        conditions: list[models.Condition] = []
        if kind is not None:
            conditions.append(match("scope", scope_name(tenant, kind, None)))
        if document_ids is not None:
            conditions.append(match_any("document_id", document_ids))
        if ids is not None:
            conditions.append(having_ids(tenant, collection, ids))
        nothing = (document_ids is not None and not document_ids) or (ids is not None and not ids)
        return self._pages(collection, None if nothing else within(tenant, *conditions))

    async def tenants(self) -> list[TenantId]:
        if self._owner is not None:  # the caller may remove the listed tenants as unknown
            await require_owner(self._server, self._names.values(), self._owner)
        tenants_found: set[TenantId] = set()
        for collection in Collection:
            tenants_found.update(TenantId(value) for value in await self._distinct(collection, "tenant", None))
        return sorted(tenants_found)

    async def indexes(self) -> list[IndexStatus]:
        return [_read_status(collection, await self._about(collection)) for collection in Collection]

    async def flush(self) -> None:
        """Check that the server answers. Confirmed writes are already on its disk."""
        await self.ping()

    async def ping(self) -> None:
        for collection in Collection:
            if (await self._about(collection)).status is models.CollectionStatus.RED:
                raise StoreUnavailable(f"the vector store's collection {self._names[collection]} is damaged")

    async def close(self) -> None:
        await self._server.close()

    # --- internals

    def _legs(
        self, tenant: TenantId, collection: Collection, search: VectorSearch, values: FieldValues, access: Access | None
    ) -> Iterator[tuple[str, QdrantLeg]]:
        check_limit(search.limit)
        (dense,) = checked_vectors([search.dense], self._dimensions)
        sparse = self._encoder.query(search.text)
        corpus = scope_of(tenant, search.kind, search.generation)
        if access is not None and search.kind in OF_DOCUMENTS:
            readable = select(access.filter, lambda: values, search.kind)
            if readable is False:
                return
            if not isinstance(readable, bool):
                corpus = models.Filter(must=[corpus, condition_filter(readable, tenant, collection)])
        scope = corpus
        if search.filter is not None:
            selection = select(search.filter, lambda: values, search.kind)
            if selection is False:
                return
            if not isinstance(selection, bool):
                scope = models.Filter(must=[corpus, condition_filter(selection, tenant, collection)])
        if dense is not None:
            yield DENSE, QdrantLeg(dense, search.limit, scope, corpus)
        if sparse is not None:
            yield SPARSE, QdrantLeg(sparse, search.limit, scope, corpus)

    async def _rank_leg(self, collection: Collection, legs: Sequence[QdrantLeg]) -> list[tuple[ScoredId, ...]]:
        name = self._names[Collection(collection)]
        settling = settle(legs)
        try:
            queries = next(settling)
            while True:
                requests = [query_request(ask) for ask in queries]
                answers = await self._server.call("searching", self._client.query_batch_points, name, requests)
                queries = settling.send([_single_precision(answer.points) for answer in answers])
        except StopIteration as finished:
            rankings: list[tuple[ScoredId, ...]] = finished.value
            return rankings

    async def _values(self, tenant: TenantId, collection: Collection) -> FieldValues:
        values: dict[str, dict[str, Any]] = {}
        for tag in await self._distinct(collection, TAGS, within(tenant)):
            field, value = read_tag(tag)
            if value:
                values.setdefault(field, {})[tag] = value[0]
        return values

    async def _distinct(self, collection: Collection, field: str, filter: models.Filter | None) -> list[str]:
        """Return all values of a field."""
        name = self._names[collection]
        limit = _FIRST_VALUES
        while True:
            answer = await self._server.call(
                "listing values", self._client.facet, name, field, facet_filter=filter, limit=limit, exact=True
            )
            if len(answer.hits) < limit:
                return [str(hit.value) for hit in answer.hits if hit.count]
            limit *= 8

    async def _about(self, collection: Collection) -> models.CollectionInfo:
        name = self._names[collection]
        return await self._server.call("answering", self._client.get_collection, name)

    async def _count_points(self, collection: Collection, filter: models.Filter) -> int:
        name = self._names[Collection(collection)]
        return (await self._server.call("counting", self._client.count, name, filter, exact=True)).count

    async def _delete_points(self, collection: Collection, doomed: models.Filter) -> int:
        existing = await self._count_points(collection, doomed)
        if existing:
            name = self._names[Collection(collection)]
            await self._server.write("deleting", self._client.delete, name, doomed, wait=True)
        return existing

    async def _scroll_points(
        self, collection: Collection, filter: models.Filter, *, limit: int, vectors: Sequence[str] = (), offset: Any = None
    ) -> tuple[list[models.Record], Any]:
        name = self._names[Collection(collection)]
        return await self._server.call(
            "reading",
            self._client.scroll,
            name,
            filter,
            limit=limit,
            offset=offset,
            with_payload=False if vectors else DESCRIBED,
            with_vectors=list(vectors) if vectors else False,
        )

    async def _pages(self, collection: Collection, filter: models.Filter | None) -> AsyncIterator[list[StoredPoint]]:
        offset = None
        while filter is not None:
            records, offset = await self._scroll_points(collection, filter, limit=_LISTED_POINTS, offset=offset)
            if records:
                yield [parse_payload(record.payload or {}) for record in records]
            if offset is None:
                return


def _single_precision(points: list[models.ScoredPoint]) -> list[models.ScoredPoint]:
    """Read scores as the server computes them: 32-bit floats, which REST writes with the fewest distinguishing digits."""
    for point in points:
        point.score = float(np.float32(point.score))
    return points


def _prefix(owner: Owner | None) -> str:
    return owner.deployment.name if owner is not None else _OF_NOBODY


def _page_through(ids: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (ids[start : start + size] for start in range(0, len(ids), size))


def _read_status(collection: Collection, about: models.CollectionInfo) -> IndexStatus:
    points = about.points_count or 0
    if about.status is models.CollectionStatus.GREEN:
        # Do not wait for the server's own index upkeep: points without a graph are few enough to be scanned.
        share, state = 1.0 if points else 0.0, IndexState.IDLE
    else:
        share = min(1.0, (about.indexed_vectors_count or 0) / points) if points else 0.0
        state = IndexState.FAILED if about.status is models.CollectionStatus.RED else IndexState.OPTIMISING
    return IndexStatus(collection=collection, points=points, indexed_share=share, state=state)


def _of_versions(tenant: TenantId, document_id: str, up_to_version: int) -> models.Filter:
    """Select the document's chunks whose version ≤ ``up_to_version``."""
    version = models.FieldCondition(key="version", range=models.Range(lte=up_to_version))
    return within(tenant, match("document_id", document_id), version)
