"""The same requests over gRPC: the real client and channel, and a service in this process that records them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from qdrant_client.grpc import collections_pb2, collections_service_pb2_grpc, points_pb2, points_service_pb2_grpc, qdrant_pb2
from qdrant_client.grpc import qdrant_pb2_grpc as root

from agentic_rag_backend.domain.filters import And, Comparison, Not
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, StoredPoint, VectorSearch
from agentic_rag_backend.stores.vector.qdrant.qdrant_store import QdrantVectorStore
from agentic_rag_backend.stores.vector.qdrant.server import connect
from agentic_rag_testing.stores.vector_samples import DIMENSIONS, A, chunk, point_id, vector

CHUNKS = Collection.CHUNKS
KEY = "k" * 32


def optimizers() -> Any:
    return collections_pb2.OptimizersConfigDiff(
        deleted_threshold=0.2, vacuum_min_vector_number=1000, default_segment_number=0, flush_interval_sec=5
    )


class Service:
    """All services of a server: returns the replies that a test needs, and keeps requests and metadata."""

    def __init__(self) -> None:
        self.collections: set[str] = set()
        self.sent: list[tuple[str, Any]] = []
        self.keys: set[str | bytes] = set()
        self.refused = 0
        self.stored: list[points_pb2.PointStruct] = []

    async def _take(self, name: str, request: Any, context: grpc.aio.ServicerContext) -> None:
        self.keys.add(dict(context.invocation_metadata()).get("api-key", ""))
        if self.refused:
            self.refused -= 1
            await context.abort(grpc.StatusCode.UNAVAILABLE, "not now")
        self.sent.append((name, request))

    async def HealthCheck(self, request: Any, context: Any) -> Any:  # noqa: N802 - the protocol's names
        await self._take("HealthCheck", request, context)
        return qdrant_pb2.HealthCheckReply(title="qdrant", version="1.20.1")

    async def List(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self._take("List", request, context)
        return collections_pb2.ListCollectionsResponse()

    async def CollectionExists(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self._take("CollectionExists", request, context)
        exists = collections_pb2.CollectionExists(exists=request.collection_name in self.collections)
        return collections_pb2.CollectionExistsResponse(result=exists)

    async def Create(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self._take("Create", request, context)
        self.collections.add(request.collection_name)
        return collections_pb2.CollectionOperationResponse(result=True)

    async def Get(self, request: Any, context: Any) -> Any:  # noqa: N802 - a collection or points
        await self._take("Get", request, context)
        config = collections_pb2.CollectionConfig(
            params=collections_pb2.CollectionParams(),
            hnsw_config=collections_pb2.HnswConfigDiff(m=0, ef_construct=128, full_scan_threshold=1000),
            optimizer_config=optimizers(),
            wal_config=collections_pb2.WalConfigDiff(wal_capacity_mb=32, wal_segments_ahead=0),
        )
        status = collections_pb2.CollectionStatus.Green
        info = collections_pb2.CollectionInfo(status=status, config=config, segments_count=1, points_count=len(self.stored))
        return collections_pb2.GetCollectionInfoResponse(result=info)

    async def _updated(self, name: str, request: Any, context: Any) -> Any:
        await self._take(name, request, context)
        done = points_pb2.UpdateResult(operation_id=1, status=points_pb2.UpdateStatus.Completed)
        return points_pb2.PointsOperationResponse(result=done)

    async def CreateFieldIndex(self, request: Any, context: Any) -> Any:  # noqa: N802
        return await self._updated("CreateFieldIndex", request, context)

    async def Upsert(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.stored.extend(request.points)
        return await self._updated("Upsert", request, context)

    async def Delete(self, request: Any, context: Any) -> Any:  # noqa: N802
        return await self._updated("Delete", request, context)

    async def SetPayload(self, request: Any, context: Any) -> Any:  # noqa: N802
        return await self._updated("SetPayload", request, context)

    async def Count(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self._take("Count", request, context)
        return points_pb2.CountResponse(result=points_pb2.CountResult(count=len(self.stored)))

    async def Facet(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self._take("Facet", request, context)
        value = points_pb2.FacetValue(string_value='["year", 7]')
        return points_pb2.FacetResponse(hits=[points_pb2.FacetHit(value=value, count=1)])

    async def Scroll(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self._take("Scroll", request, context)
        points = [points_pb2.RetrievedPoint(id=point.id, payload=point.payload) for point in self.stored]
        return points_pb2.ScrollResponse(result=points)

    async def QueryBatch(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self._take("QueryBatch", request, context)
        hits = [points_pb2.ScoredPoint(id=point.id, payload=point.payload, score=0.5) for point in self.stored]
        return points_pb2.QueryBatchResponse(result=[points_pb2.BatchResult(result=hits) for _ in request.query_points])


class _Absent:
    """The methods of a service that no test needs."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def __getattr__(self, name: str) -> Any:
        return getattr(self._service, name, None)


@asynccontextmanager
async def served() -> AsyncIterator[tuple[Service, QdrantVectorStore]]:
    service = Service()
    server = grpc.aio.server()
    root.add_QdrantServicer_to_server(_Absent(service), server)  # type: ignore[no-untyped-call]
    collections_service_pb2_grpc.add_CollectionsServicer_to_server(_Absent(service), server)  # type: ignore[no-untyped-call]
    points_service_pb2_grpc.add_PointsServicer_to_server(_Absent(service), server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    client = connect("http://127.0.0.1:6333", api_key=KEY, prefer_grpc=True, grpc_port=port)
    try:
        store = await QdrantVectorStore.open(client, dimensions=DIMENSIONS, embedder_fingerprint="test", timeout_s=20)
        yield service, store
        await store.close()
    finally:
        await server.stop(None)


def last(service: Service, name: str) -> Any:
    return next(request for kind, request in reversed(service.sent) if kind == name)


async def test_every_request_goes_over_grpc_and_means_the_same() -> None:
    async with served() as (service, store):
        created = last(service, "Create")
        assert (created.hnsw_config.m, created.hnsw_config.payload_m, created.shard_number) == (0, 16, 1)
        assert created.metadata["fingerprint"].string_value == store.fingerprint
        tenants = [request for name, request in service.sent if name == "CreateFieldIndex"]
        assert [each.field_name for each in tenants if each.field_index_params.keyword_index_params.is_tenant] == ["scope"] * 2

        await store.upsert(A, CHUNKS, [chunk(1, "harbour", metadata={"year": 7})])
        upserted = last(service, "Upsert")
        assert upserted.wait
        assert upserted.points[0].payload["tenant"].string_value == A.value
        filter = And((Comparison("year", "gt", 1), Not(Comparison("a", "eq", 1))))
        (legs,) = await store.search(
            A, CHUNKS, [VectorSearch(kind=NodeKind.CHUNK, text="harbour", dense=vector(1), filter=filter)]
        )
        assert [hit.id for hit in legs.dense] == [hit.id for hit in legs.sparse] == [point_id(1)]
        dense, sparse = last(service, "QueryBatch").query_points
        corpus = sparse.params.idf.corpus.must[0].field
        assert (corpus.key, corpus.match.keyword) == ("scope", f"{A.value}/chunk")
        assert not dense.params.HasField("idf")
        assert last(service, "Facet").filter.must[0].field.match.keyword == A.value

        expected = StoredPoint(id=point_id(1), kind="chunk", document_id="d1", version=1)
        listed = [point async for page in store.points(A, CHUNKS) for point in page]
        assert [(each.id, each.kind, each.document_id, each.version) for each in listed] == [
            (expected.id, expected.kind, expected.document_id, expected.version)
        ]
        assert '["year", 7]' in listed[0].tags
        await store.update_metadata(A, "d1", {"year": 8}, title="t", key=None, up_to_version=9)
        assert await store.delete_document(A, "d1", up_to_version=3, keep=[point_id(2)]) == 1
        deleted = last(service, "Delete")
        assert deleted.wait
        assert deleted.points.filter.must[0].field.match.keyword == A.value
        assert len(deleted.points.filter.must_not[0].has_id.has_id) == 1
        await store.vectors(A, CHUNKS, [point_id(1)])
        await store.ping()
        assert service.keys == {KEY}


async def test_transient_grpc_failures_are_tried_again_and_then_told() -> None:
    async with served() as (service, store):
        service.refused = 2
        assert await store.count(A, CHUNKS) == 0
        service.refused = 9
        with pytest.raises(StoreUnavailable, match="gRPC status UNAVAILABLE"):
            await store.count(A, CHUNKS)
        service.refused = 0
