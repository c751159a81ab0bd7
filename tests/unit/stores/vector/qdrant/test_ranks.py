"""The server's adapter gives the same ranks as the embedded one. The client's own engine replaces a server."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from qdrant_clients import WITHOUT_INDEXES, local_client
from sampling import budget, sampled

from agentic_rag_backend.domain.filters import OPERATORS, And, Comparison, Filter, Not, Or, matches_filter
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, VectorPoint, VectorSearch, VectorStore
from agentic_rag_backend.stores.vector.edge.store import EdgeVectorStore
from agentic_rag_backend.stores.vector.qdrant.qdrant_store import QdrantVectorStore
from agentic_rag_testing.stores.vector_samples import DIMENSIONS, A, B, chunk, random_chunk, random_filter, vector

pytestmark = pytest.mark.filterwarnings(WITHOUT_INDEXES)
CHUNKS = Collection.CHUNKS
SEARCHES = budget(gate=10, deep=40)
NAMES = ["year", "a.b", 'q"[0]', "label"]


@asynccontextmanager
async def both(folder: Path, dimensions: int) -> AsyncIterator[tuple[VectorStore, VectorStore]]:
    about: dict[str, Any] = {"dimensions": dimensions, "embedder_fingerprint": "test"}
    edge = await EdgeVectorStore.open(folder / "edge", **about)
    server = await QdrantVectorStore.open(local_client(folder / "server"), timeout_s=120, **about)
    try:
        yield edge, server
    finally:
        await edge.close()
        await server.close()


@pytest.mark.sampled
async def test_ranks_are_those_of_the_embedded_store(tmp_path: Path) -> None:
    choose = random.Random(23)
    words = [f"word{number}q" for number in range(80)]

    def text() -> str:
        return " ".join(choose.choices(words, weights=[1 / (n + 1) for n in range(80)], k=choose.randint(4, 40)))

    own = [random_chunk(choose, number, NAMES) for number in range(150)]
    points = [
        chunk(
            number,
            text(),
            # Equal vectors and equal texts give ties, which each engine orders differently.
            dense=vector(number % 100),
            document=point.document_id or "d0",
            key=point.key,
            metadata=point.metadata,
        )
        for number, point in enumerate(own)
    ]
    points += [chunk(number, "word1q word2q", dense=vector(3)) for number in range(200, 240)]
    searches = [
        VectorSearch(
            kind=NodeKind.CHUNK,
            text=text(),
            dense=vector(1_000 + number),
            limit=choose.choice([1, 5, 20, 500]),
            filter=None if number % 3 == 0 else random_filter(choose, [*NAMES, "title", "document_id"]),
        )
        for number in range(SEARCHES)
    ]
    async with both(tmp_path, DIMENSIONS) as stores:
        found = []
        for store in stores:
            await store.upsert(B, CHUNKS, [chunk(number, "word1q word7q " * (number % 9)) for number in range(60)])
            await store.upsert(A, CHUNKS, points)
            found.append(await store.search(A, CHUNKS, searches))
        assert sum(len(legs.dense) + len(legs.sparse) for legs in found[0]) > 12 * SEARCHES
        for edge, server in zip(*found, strict=True):
            assert [hit.id for hit in server.dense] == [hit.id for hit in edge.dense]
            assert [hit.score for hit in server.dense] == pytest.approx([hit.score for hit in edge.dense], abs=1e-6)
            assert server.sparse == edge.sparse
        texts = ["The harbours' lights", "of the and", "Straße 12 €", "\ud800 night"]
        assert [stores[1].terms(each) for each in texts] == [stores[0].terms(each) for each in texts]
        assert stores[0].fingerprint == stores[1].fingerprint


async def test_listings_and_counts_are_those_of_the_embedded_store(tmp_path: Path) -> None:
    choose = random.Random(5)
    points = [random_chunk(choose, number, NAMES) for number in range(40)]
    seen = []
    async with both(tmp_path, DIMENSIONS) as stores:
        for store in stores:
            await store.upsert(A, CHUNKS, points)
            await store.update_metadata(A, "d1", {"year": 3, "label": ["x", True]}, title="New", key=None, up_to_version=9)
            gone = await store.delete_document(A, "d2", up_to_version=1, keep=[points[2].id])
            listed = [point async for page in store.points(A, CHUNKS) for point in page]
            counts = [await store.count(A, CHUNKS, document_id=f"d{number}") for number in range(6)]
            seen.append((gone, sorted(listed, key=lambda point: point.id), counts, await store.tenants()))
    assert seen[0] == seen[1]
    assert seen[0][0] == 7


words = st.one_of(st.sampled_from(["", "Straße", "strasse", "2019", "1", "true", "a\x00b", "\ud800"]), st.text(max_size=3))
numbers = st.one_of(st.integers(-3, 3), st.sampled_from([1.0, -0.0, 2.5, 1e300, 2**53 + 1, float(2**53)]))
scalars = st.one_of(st.booleans(), numbers, st.floats(), words)
values = st.one_of(st.none(), scalars, st.lists(scalars, max_size=3), st.just({"a": 1}))
rows = st.lists(st.dictionaries(st.sampled_from([*NAMES, "title", ""]), values, max_size=4), min_size=1, max_size=5)


def _comparison(field: str, operator: str, options: list[Any], default: Any) -> Comparison:
    return Comparison(field, operator, tuple(options) if operator in ("in", "nin") else options[0], default)


filters = st.recursive(
    st.builds(
        _comparison,
        st.sampled_from([*NAMES, "title", "document_id", "unknown"]),
        st.sampled_from(OPERATORS),
        st.lists(scalars, min_size=1, max_size=3),
        st.one_of(st.none(), scalars),
    ),
    lambda inner: st.one_of(
        st.builds(lambda parts: And(tuple(parts)), st.lists(inner, max_size=3)),
        st.builds(lambda parts: Or(tuple(parts)), st.lists(inner, max_size=3)),
        st.builds(Not, inner),
    ),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[VectorStore, VectorStore]]:
    runner = asyncio.Runner()
    opening = both(tmp_path_factory.mktemp("both"), 2)
    yield runner.run(opening.__aenter__())
    runner.run(opening.__aexit__(None, None, None))
    runner.close()


async def _selected(store: VectorStore, tenant: TenantId, filter: Filter, points: list[VectorPoint]) -> set[str]:
    search = VectorSearch(kind=NodeKind.CHUNK, dense=np.ones(2, np.float32), filter=filter, limit=100)
    await store.upsert(tenant, CHUNKS, points[:1])
    await store.search(tenant, CHUNKS, [search])
    await store.upsert(tenant, CHUNKS, points[1:])
    (legs,) = await store.search(tenant, CHUNKS, [search])
    await store.delete_tenant(tenant)
    return {hit.id for hit in legs.dense}


@sampled(gate=25, deep=200)
@given(rows=rows, filter=filters)
def test_filters_select_the_same_on_both(
    stores: tuple[VectorStore, VectorStore], rows: list[dict[str, Any]], filter: Filter
) -> None:
    points = [
        VectorPoint(
            id=str(number),
            kind=NodeKind.CHUNK,
            dense=np.ones(2, np.float32),
            document_id=f"d{number % 2}",
            title=f"Title {number}",
            metadata=metadata,
        )
        for number, metadata in enumerate(rows)
    ]
    expected = {point.id for point in points if matches_filter(filter, point.fields)}
    tenant = TenantId.new()
    for store in stores:
        assert asyncio.run(_selected(store, tenant, filter, points)) == expected
