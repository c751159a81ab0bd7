"""Two stores given the same writes in the same order, one of which has an index built meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from qdrant_edge import ScrollRequest

from agentic_rag_backend.domain.filters import Comparison
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.vector.base import Collection, IndexUpkeepRun, NodeKind, VectorSearch
from agentic_rag_backend.stores.vector.edge import replacement
from agentic_rag_backend.stores.vector.edge.optimization import optimize
from agentic_rag_backend.stores.vector.edge.store import EdgeVectorStore
from agentic_rag_backend.stores.vector.edge.upkeep import UpkeepOptions
from agentic_rag_backend.testing.vector_samples import DIMENSIONS, chunk, node, point_id, vector

A, B = (TenantId("t_" + digit * 32) for digit in "ab")
SCANNED = UpkeepOptions(min_points=1_000, first_look_s=3600.0)
"""Every tenant is scanned, index or not, so that results can be compared to the last bit."""


@dataclass(frozen=True)
class Write:
    """One write: ``method`` of the store for a tenant, with points or documents by their sample ``numbers``."""

    method: str
    tenant: TenantId = A
    collection: Collection = Collection.CHUNKS
    numbers: tuple[int, ...] = ()
    text: str = "a harbour at night"

    async def apply(self, store: EdgeVectorStore) -> int | None:
        """Do it and return how many points it told of."""
        number = self.numbers[0] if self.numbers else 0
        document = f"d{number % 4}"
        match self.method:
            case "upsert":
                await store.upsert(self.tenant, self.collection, [self._point(each) for each in self.numbers])
                return None
            case "delete":
                return await store.delete(self.tenant, self.collection, [point_id(each) for each in self.numbers])
            case "delete_document":
                return await store.delete_document(self.tenant, document, up_to_version=2, keep=[point_id(number)])
            case "delete_generations":
                return await store.delete_generations(self.tenant, below=number % 4)
            case "delete_tenant":
                return await store.delete_tenant(self.tenant)
            case "update_metadata":
                await store.update_metadata(self.tenant, document, {"year": number}, title=self.text, key=None)
                return None
            case _:
                await store.flush()
                return None

    def _point(self, number: int) -> Any:
        if self.collection is Collection.CHUNKS:
            return chunk(number, self.text if number % 5 else None, document=f"d{number % 4}", version=1 + number % 3)
        kind = (NodeKind.ENTITY, NodeKind.FACT, NodeKind.COMMUNITY)[number % 3]
        generation = number % 4 if kind is NodeKind.COMMUNITY else None
        dense = None if kind is NodeKind.FACT else vector(number)
        return node(number, kind, self.text, generation=generation, dense=dense)


async def opened(folder: Path, options: UpkeepOptions = SCANNED) -> EdgeVectorStore:
    return await EdgeVectorStore.open(folder, dimensions=DIMENSIONS, embedder_fingerprint="test", upkeep=options)


def contents(store: EdgeVectorStore, collection: Collection) -> dict[str, Any]:
    """Return every point with payload and vectors, to the last bit."""
    engine = store._shards[collection].engine
    records, _ = engine.scroll(ScrollRequest(limit=100_000, with_payload=True, with_vector=True))
    found = {}
    for record in records:
        vectors = record.vector if isinstance(record.vector, dict) else {}
        sparse = vectors.get("sparse")
        terms = None if sparse is None else sorted(zip(sparse.indices, sparse.values, strict=True))
        found[str(record.id)] = (record.payload, vectors.get("dense"), terms)
    return found


async def assert_equal(one: EdgeVectorStore, other: EdgeVectorStore) -> None:
    """Compare all that can be asked of two stores."""
    late = Comparison("year", "gte", 10)
    for collection in Collection:
        assert contents(one, collection) == contents(other, collection)
        kinds = [NodeKind.CHUNK] if collection is Collection.CHUNKS else [NodeKind.ENTITY, NodeKind.FACT, NodeKind.COMMUNITY]
        searches = [
            VectorSearch(kind=kind, dense=vector(7), text="harbour night pier", limit=9, filter=filter)
            for kind in kinds
            for filter in (None, late)
        ]
        for tenant in (A, B):
            assert await one.count(tenant, collection) == await other.count(tenant, collection)
            assert await one.search(tenant, collection, searches) == await other.search(tenant, collection, searches)


@asynccontextmanager
async def pair(folder: Path) -> AsyncIterator[tuple[EdgeVectorStore, EdgeVectorStore]]:
    """Open two stores, and compare them again after reopening the first."""
    store, reference = await opened(folder / "one"), await opened(folder / "other")
    yield store, reference
    await store.close()
    store = await opened(folder / "one")
    await assert_equal(store, reference)
    await store.close()
    await reference.close()


async def interleaved(
    stores: tuple[EdgeVectorStore, EdgeVectorStore],
    writes: Sequence[Write],
    *,
    begin: int,
    until: int,
    collection: Collection = Collection.CHUNKS,
    copied_first: bool = True,
) -> None:
    """Write to two stores, build an index in the first of them meanwhile, and compare them.

    The run begins when ``begin`` writes are done and its copy is indexed when ``until`` are, at least; swapping happens beside
    whatever writes follow, and so does copying unless the next write waits for it (``copied_first``). Indexing is done in
    this process, which costs no new one for each of many examples.
    """
    store, reference = stores
    copied, reached = asyncio.Event(), asyncio.Event()

    async def indexed_when_reached(target: Path, time_limit_s: float) -> None:
        copied.set()
        await reached.wait()
        optimize(target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replacement, "_optimize", indexed_when_reached)
        patch.setattr(replacement, "_REPLAYED_POINTS", 2)
        patch.setattr(replacement, "_REMAINDER", 3)
        running: asyncio.Task[IndexUpkeepRun] | None = None
        for number, write in enumerate([*writes, None]):
            if number >= begin and running is None:
                running = asyncio.create_task(store.upkeep.run(collection))
                if copied_first:
                    await copied.wait()
            if number >= until:
                reached.set()
            if write is not None:
                assert await write.apply(store) == await write.apply(reference)
            await asyncio.sleep(0)
        reached.set()
        assert running is not None
        run = await running
    assert run.failure is None, run.failure
    await assert_equal(store, reference)
