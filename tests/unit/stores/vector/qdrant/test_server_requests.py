"""Requests to a Qdrant server: from the real client, over REST, to a transport that records them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from qdrant_clients import RecordingServer, Sent

from agentic_rag_backend.domain.filters import And, Comparison, Not, Or
from agentic_rag_backend.errors import ConfigurationError, ReindexRequired, StoreUnavailable
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, VectorSearch
from agentic_rag_backend.stores.vector.qdrant.qdrant_store import QdrantVectorStore
from agentic_rag_backend.stores.vector.qdrant.server import connect
from agentic_rag_testing.stores.vector_samples import DIMENSIONS, A, chunk, node, point_id, vector

CHUNKS, NODES = Collection.CHUNKS, Collection.NODES
KEY = "k" * 32
BODY_LIMIT = 8_000_000


def answered(result: Any, status: int = 200) -> httpx.Response:
    return httpx.Response(status, json={"result": result, "status": "ok", "time": 0.001})


def failed(status: int, **headers: str) -> httpx.Response:
    return httpx.Response(status, json={"status": {"error": "secret words"}, "time": 0.0}, headers=headers)


def about(points: int = 0, **fields: Any) -> dict[str, Any]:
    config = {
        "params": {"vectors": {"dense": {"size": DIMENSIONS, "distance": "Cosine"}}},
        "hnsw_config": {"m": 0, "ef_construct": 128, "full_scan_threshold": 1000},
        "optimizer_config": {
            "deleted_threshold": 0.2,
            "vacuum_min_vector_number": 1,
            "default_segment_number": 0,
            "flush_interval_sec": 5,
        },
        "metadata": {"fingerprint": "other vectors"},
    }
    given = {"status": "green", "optimizer_status": "ok", "segments_count": 1, "payload_schema": {}}
    return {**given, "points_count": points, "indexed_vectors_count": 0, "config": config, **fields}


class Server:
    """Answers like a server with two empty collections, and with a point for every requested id."""

    def __init__(self) -> None:
        self.version = "1.19.0"
        self.collections: set[str] = set()
        self.failures: Iterator[httpx.Response | Exception] = iter(())
        self.update_status = "completed"
        self.found: list[dict[str, Any]] = []
        self.held = 3
        self.about: dict[str, Any] = about()

    def __call__(self, sent: Sent) -> httpx.Response:
        failure = next(self.failures, None)
        if isinstance(failure, Exception):
            raise failure
        return failure or self.answer(sent)

    def answer(self, sent: Sent) -> httpx.Response:
        parts = sent.path.strip("/").split("/")
        if sent.path == "/":
            return httpx.Response(200, json={"title": "qdrant", "version": self.version})
        if parts == ["collections"]:
            return answered({"collections": [{"name": name} for name in sorted(self.collections)]})
        name, action = parts[1], "/".join(parts[2:])
        if action == "exists":
            return answered({"exists": name in self.collections})
        if action == "" and sent.method == "PUT":
            self.collections.add(name)
            return answered(True)
        if action == "":
            return answered(self.about)
        return answered(self.points(action, sent.body))

    def points(self, action: str, body: Any) -> Any:
        if action == "points/count":
            return {"count": self.held}
        if action == "points/scroll":
            return {"points": [], "next_page_offset": None}
        if action == "facet":
            return {"hits": [{"value": '["year", 7]', "count": 1}, {"value": A.value, "count": 1}][body["key"] == "tenant" :][:1]}
        if action == "points/query/batch":
            return [{"points": self.found} for _ in body["searches"]]
        return {"operation_id": 1, "status": self.update_status}


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def recorder(server: Server) -> RecordingServer:
    return RecordingServer(server)


async def opened(recorder: RecordingServer, *, timeout_s: float = 20.0, forget: bool = True) -> QdrantVectorStore:
    client = recorder.attach(connect("http://127.0.0.1:6333", api_key=KEY, timeout_s=timeout_s))
    store = await QdrantVectorStore.open(client, dimensions=DIMENSIONS, embedder_fingerprint="test", timeout_s=timeout_s)
    if forget:
        recorder.sent.clear()
    return store


async def use_everything(store: QdrantVectorStore) -> None:
    """Call every method that takes a tenant, with every kind of argument."""
    year = Comparison("year", "gt", 1)
    filters = [
        None,
        year,
        And(()),
        Or(()),
        Not(And(())),
        Not(year),
        And((year, Comparison("a", "in", ("x", 1)))),
        Or((year, Not(year))),
    ]
    await store.upsert(A, CHUNKS, [chunk(1, metadata={"year": 7}), chunk(2, None), chunk(3, dense=None)])
    await store.upsert(A, NODES, [node(1, NodeKind.COMMUNITY, generation=2)])
    for kind, collection, generation in ((NodeKind.CHUNK, CHUNKS, None), (NodeKind.COMMUNITY, NODES, 2)):
        searches = [
            VectorSearch(kind=kind, text="harbour night", dense=vector(1), filter=each, generation=generation) for each in filters
        ]
        await store.search(A, collection, searches)
    await store.vectors(A, CHUNKS, [point_id(1)])
    await store.update_metadata(A, "d1", {"year": 8}, title="t", key=None, up_to_version=9)
    await store.delete(A, CHUNKS, [point_id(1)])
    await store.delete_document(A, "d1", up_to_version=3)
    await store.delete_document(A, "d1", up_to_version=3, keep=[point_id(2)])
    await store.delete_generations(A, below=2)
    await store.count(A, CHUNKS)
    await store.count(A, CHUNKS, document_id="d1")
    for which in (  # type: ignore[var-annotated]
        {},
        {"kind": NodeKind.FACT},
        {"document_ids": ["d1"]},
        {"ids": [point_id(1)]},
        {"ids": []},
        {"document_ids": []},
    ):
        async for _ in store.points(A, NODES, **which):  # type: ignore[arg-type]
            pass
    await store.delete_tenant(A)


def filters_in(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every filter in a body, including nested ones: values under filter keys, and objects with a clause."""
    if isinstance(value, dict):
        for key in ("filter", "corpus", "update_filter"):
            if isinstance(value.get(key), dict):
                yield value[key]
        if value.keys() & {"must", "should", "must_not"}:
            yield value
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for child in children:
        yield from filters_in(child)


def names_tenant(filter: dict[str, Any]) -> bool:
    """Return whether a filter's conjunction has a condition that only the tenant's points meet, at any depth of ``must``."""
    for condition in filter.get("must") or []:
        value = (condition.get("match") or {}).get("value", "")
        if condition.get("key") == "tenant" and value == A.value:
            return True
        if condition.get("key") == "scope" and value.startswith(f"{A.value}/"):
            return True
        if names_tenant(condition):
            return True
    return False


async def test_every_request_names_the_tenant_and_none_has_an_empty_filter(recorder: RecordingServer) -> None:
    store = await opened(recorder)
    await use_everything(store)
    actions = set()
    for sent in recorder.sent:
        actions.add(sent.path.split("/", 3)[3])
        for each in filters_in(sent.body):
            assert any(each.get(clause) for clause in ("must", "should", "must_not")), sent.body
        if sent.path.endswith("/points") and sent.method == "PUT":
            assert all(point["payload"]["tenant"] == A.value for point in sent.body["points"])
            assert all(scope.startswith(f"{A.value}/") for point in sent.body["points"] for scope in point["payload"]["scope"])
            continue
        for request in sent.body.get("searches", [sent.body]):
            assert names_tenant(request["filter"]), request
    assert actions == {
        "points",
        "points/query/batch",
        "points/scroll",
        "points/count",
        "points/delete",
        "points/payload",
        "facet",
    }
    await store.close()


async def test_only_the_operators_listing_of_tenants_names_none(recorder: RecordingServer) -> None:
    store = await opened(recorder)
    assert await store.tenants() == [A]
    assert [sent.body for sent in recorder.sent] == [{"key": "tenant", "limit": 10_000, "exact": True}] * 2
    await store.close()


async def test_each_sparse_query_counts_frequencies_within_its_scope(recorder: RecordingServer) -> None:
    store = await opened(recorder)
    searches = [
        VectorSearch(kind=NodeKind.COMMUNITY, text="harbour night", dense=vector(1), generation=2),
        VectorSearch(kind=NodeKind.FACT, text="harbour", filter=Comparison("year", "eq", 7)),
    ]
    await store.search(A, NODES, searches)
    (sent,) = recorder.sent
    dense, sparse, narrow = sent.body["searches"]

    def corpus(name: str) -> dict[str, Any]:
        return {"must": [{"key": "scope", "match": {"value": f"{A.value}/{name}"}}]}

    assert dense["using"] == "dense"
    assert "params" not in dense
    assert sparse["using"] == narrow["using"] == "sparse"
    assert sparse["params"] == {"idf": {"corpus": corpus("community/2")}}
    assert narrow["params"] == {"idf": {"corpus": corpus("fact")}}
    assert narrow["filter"]["must"][0] == corpus("fact")["must"][0] or narrow["filter"]["must"][0] == corpus("fact")
    for each in (dense, sparse, narrow):
        assert "prefetch" not in each
        assert "fusion" not in str(each["query"])
    await store.close()


async def test_scores_are_read_as_the_32_bit_floats_that_they_are(server: Server, recorder: RecordingServer) -> None:
    """REST writes the fewest digits that distinguish them, which read as 64 bits is another number than over gRPC."""
    sent = 0.12345679
    server.found = [{"id": point_id(1), "version": 1, "score": sent, "payload": {"id": point_id(1)}}]
    store = await opened(recorder)
    (legs,) = await store.search(A, CHUNKS, [VectorSearch(kind=NodeKind.CHUNK, dense=vector(1))])
    await store.close()
    assert [hit.score for hit in legs.dense] == [float(np.float32(sent))]
    assert legs.dense[0].score != sent


async def test_writes_wait_until_they_are_applied(recorder: RecordingServer) -> None:
    store = await opened(recorder)
    await use_everything(store)
    writes = [sent for sent in recorder.sent if sent.path.endswith(("/points", "/payload", "/delete"))]
    assert len(writes) >= 8
    assert all(sent.query.get("wait") == "true" for sent in writes)
    assert all(sent.headers["api-key"] == KEY for sent in recorder.sent)
    await store.close()


async def test_upserts_are_bounded_by_bytes_and_by_points(recorder: RecordingServer) -> None:
    store = await opened(recorder)
    awkward = np.full(DIMENSIONS, np.finfo(np.float32).tiny, np.float32)
    points = [chunk(number, "word " * 50, dense=awkward * (number + 1)) for number in range(300)]
    long = [chunk(1_000 + number, metadata={"notes": ['"' * 1000 + str(n) for n in range(400)]}) for number in range(20)]
    await store.upsert(A, CHUNKS, [*points, *long])
    sizes = [len(sent.body["points"]) for sent in recorder.sent]
    assert sum(sizes) == 320
    assert max(sizes) == 64
    assert len(sizes) >= 7
    assert max(sent.size_bytes for sent in recorder.sent) <= BODY_LIMIT
    assert max(sent.size_bytes for sent in recorder.sent) > BODY_LIMIT / 2
    await store.close()


async def test_the_same_vectors_as_the_embedded_store_are_sent(recorder: RecordingServer) -> None:
    store = await opened(recorder)
    await store.upsert(A, CHUNKS, [chunk(1, "the harbours")])
    (point,) = recorder.sent[0].body["points"]
    assert set(point["vector"]["sparse"]["indices"]) == store.terms("harbour")
    assert np.linalg.norm(point["vector"]["dense"]) == pytest.approx(1)
    assert np.float32(point["vector"]["dense"]) @ vector(1) / np.linalg.norm(vector(1)) == pytest.approx(1)
    await store.close()


async def test_collections_are_made_for_tenants(recorder: RecordingServer) -> None:
    store = await opened(recorder, forget=False)
    made = {sent.path: sent.body for sent in recorder.sent if sent.method == "PUT" and sent.path.count("/") == 2}
    assert len(made) == 2
    for body in made.values():
        assert body["vectors"] == {"dense": {"size": DIMENSIONS, "distance": "Cosine", "datatype": "float32"}}
        assert body["sparse_vectors"] == {"sparse": {"modifier": "idf"}}
        assert (body["hnsw_config"]["m"], body["hnsw_config"]["payload_m"]) == (0, 16)
        assert body["shard_number"] == 1
        assert body["metadata"] == {"fingerprint": store.fingerprint, "building": False}
    indexed = [sent.body for sent in recorder.sent if sent.path.endswith("/index")]
    fields = {body["field_name"]: body["field_schema"] for body in indexed}
    assert set(fields) == {"scope", "tenant", "document_id", "tags", "version", "generation"}
    assert [name for name, schema in fields.items() if schema.get("is_tenant")] == ["scope"]
    assert len(indexed) == 12
    await store.close()


async def test_a_second_opening_makes_nothing(server: Server, recorder: RecordingServer) -> None:
    await (await opened(recorder)).close()
    field = {"data_type": "keyword", "points": 0}
    server.about = about(payload_schema=dict.fromkeys(("scope", "tenant", "document_id", "tags", "version", "generation"), field))
    store = await opened(recorder, forget=False)
    assert [sent.method for sent in recorder.sent if sent.method != "GET"] == []
    await store.close()


class Racing(Server):
    """Another process creates each collection between the check and the creation."""

    def answer(self, sent: Sent) -> httpx.Response:
        if sent.method == "PUT" and sent.path.count("/") == 2:
            self.collections.add(sent.path.split("/")[2])
            return failed(409)
        return super().answer(sent)


async def test_two_processes_may_start_at_once() -> None:
    recorder = RecordingServer(Racing())
    store = await opened(recorder, forget=False)
    assert sum(sent.method == "PUT" and sent.path.count("/") == 2 for sent in recorder.sent) == 2
    assert sum(sent.path.endswith("/index") for sent in recorder.sent) == 12
    await store.close()


async def test_another_fingerprint_with_points_is_refused(server: Server, recorder: RecordingServer) -> None:
    server.collections = {"agentic_rag_chunks_0123456789abcdef", "agentic_rag_chunks_note", "someone_elses"}
    with pytest.raises(ReindexRequired, match=r"other vectors.*test; 8 x float32"):
        await opened(recorder)
    assert not any(sent.method == "PUT" for sent in recorder.sent)
    server.held = 0
    recorder.sent.clear()
    store = await opened(recorder, forget=False)
    assert sum(sent.path.endswith("/count") for sent in recorder.sent) == 1
    await store.close()


@pytest.mark.parametrize("version", ["1.18.3", "0.9", "dev"])
async def test_a_server_that_mixes_tenants_frequencies_is_refused(
    server: Server, recorder: RecordingServer, version: str
) -> None:
    server.version = version
    with pytest.raises(ConfigurationError, match=r"1\.19"):
        await opened(recorder)


@pytest.mark.parametrize(
    "failure", [failed(503), failed(500), failed(429, **{"Retry-After": "1"}), httpx.ConnectError("refused")]
)
async def test_what_is_transient_is_tried_again(server: Server, recorder: RecordingServer, failure: Any) -> None:
    store = await opened(recorder)
    server.failures = iter([failure, failure])
    assert await store.count(A, CHUNKS) == 3
    assert len(recorder.sent) == 3
    await store.close()


@pytest.mark.parametrize(
    ("failure", "attempts", "reason"),
    [(failed(401), 1, "401"), (failed(404), 1, "404"), (failed(400), 1, "400"), (httpx.ReadTimeout("late"), 4, "ReadTimeout")],
)
async def test_a_refusal_is_told_without_the_servers_words(
    server: Server, recorder: RecordingServer, failure: Any, attempts: int, reason: str
) -> None:
    store = await opened(recorder)
    server.failures = iter([failure] * 9)
    with pytest.raises(StoreUnavailable, match=reason) as raised:
        await store.upsert(A, CHUNKS, [chunk(1)])
    assert "secret" not in raised.value.message
    assert len(recorder.sent) == attempts
    await store.close()


async def test_a_write_that_is_not_applied_in_time_is_no_success(server: Server, recorder: RecordingServer) -> None:
    store = await opened(recorder)
    server.update_status = "wait_timeout"
    with pytest.raises(StoreUnavailable, match="not finished"):
        await store.upsert(A, CHUNKS, [chunk(1)])
    assert len(recorder.sent) == 4
    await store.close()


class Stuck(RecordingServer):
    """Accepts requests and, once set, answers none."""

    stuck = False

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        if self.stuck:
            await asyncio.Event().wait()
        return await super().__call__(request)


async def test_a_server_that_never_answers_is_given_up_in_time(server: Server) -> None:
    recorder = Stuck(server)
    store = await opened(recorder, timeout_s=5)
    recorder.stuck = True
    with pytest.raises(StoreUnavailable, match=r"within 5 s"):
        await store.count(A, CHUNKS)
    await store.close()


async def test_a_damaged_collection_is_not_ready(server: Server, recorder: RecordingServer) -> None:
    store = await opened(recorder)
    await store.ping()
    server.about = about(status="red")
    with pytest.raises(StoreUnavailable, match="damaged"):
        await store.ping()
    server.about = about(10, status="yellow", indexed_vectors_count=4)
    assert [(each.points, each.indexed_share, each.state) for each in await store.indexes()] == [(10, 0.4, "optimising")] * 2
    await store.close()


@pytest.mark.parametrize("url", ["localhost:6333", "ftp://store", "http://", ""])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="QDRANT_URL"):
        connect(url)
