"""The contract of `stores.vector.base.VectorStore`, as checks that every adapter runs.

An adapter provides an `OpenStore`. Each check in `CHECKS` takes it and raises `AssertionError` if the contract is broken.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

import numpy as np

from agentic_rag_backend.domain.filters import Comparison
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError, InvalidScope
from agentic_rag_backend.stores.vector.base import (
    Collection,
    Legs,
    NodeKind,
    StoredPoint,
    Vector,
    VectorSearch,
    VectorStore,
)
from agentic_rag_backend.stores.vector.conditions import tags_of
from agentic_rag_testing.stores import vector_search
from agentic_rag_testing.stores.vector_samples import (
    CHUNKS,
    DIMENSIONS,
    NODES,
    A,
    B,
    Check,
    OpenStore,
    chunk,
    cosine,
    find,
    ids,
    node,
    point_id,
    refused,
    vector,
)


async def tenant_is_required(open_store: OpenStore) -> None:
    """Every method that takes a tenant refuses other values, with any other arguments."""
    arguments: dict[str, Any] = {
        "collection": CHUNKS,
        "points": [chunk(1)],
        "searches": [VectorSearch(kind=NodeKind.CHUNK, text="harbour")],
        "ids": [point_id(1)],
        "document_id": "d1",
        "metadata": {},
        "title": "t",
        "key": None,
        "up_to_version": 9,
        "keep": (),
        "below": 9,
    }
    async with open_store("scope") as store:
        await store.upsert(A, CHUNKS, [chunk(1)])
        scoped = [
            (name, inspect.signature(method).parameters)
            for name, method in inspect.getmembers(VectorStore, inspect.iscoroutinefunction)
            if "tenant" in inspect.signature(method).parameters
        ]
        assert len(scoped) >= 9
        for name, parameters in scoped:
            assert list(parameters)[1] == "tenant", name
            given = {parameter: arguments[parameter] for parameter in list(parameters)[2:]}
            for scope in (None, "", A.value, 0, [A]):
                await refused(getattr(store, name)(scope, **given), InvalidScope)
        assert await store.count(A, CHUNKS) == 1


async def another_tenant_sees_nothing(open_store: OpenStore) -> None:
    """No read of B returns A's points, with equal ids or different ones."""
    async with open_store("reads") as store:
        await store.upsert(A, CHUNKS, [chunk(1), chunk(2)])
        assert await find(store, B) == Legs()
        assert await store.vectors(B, CHUNKS, [point_id(1)]) == {}
        assert await store.count(B, CHUNKS) == await store.count(B, CHUNKS, document_id="d1") == 0
        await store.upsert(B, CHUNKS, [chunk(1, "an orchard", dense=vector(9))])
        assert ids((await find(store, B)).dense) == [point_id(1)]
        assert (await find(store, B)).sparse == ()
        assert set(ids((await find(store, A)).dense)) == {point_id(1), point_id(2)}
        assert await store.count(A, CHUNKS) == await store.count(A, CHUNKS, document_id="d1") == 2
        _same_direction((await store.vectors(A, CHUNKS, [point_id(1)]))[point_id(1)], vector(1))
        _same_direction((await store.vectors(B, CHUNKS, [point_id(1)]))[point_id(1)], vector(9))


async def another_tenant_changes_nothing(open_store: OpenStore) -> None:
    """No write of B changes A's points with equal ids, documents and generations."""
    async with open_store("writes") as store:
        await store.upsert(A, CHUNKS, [chunk(1, metadata={"year": 1}), chunk(2, document="d2")])
        await store.upsert(A, NODES, [node(3, NodeKind.COMMUNITY, generation=1)])
        before = await find(store, A), await find(store, A, NODES, kind=NodeKind.COMMUNITY)
        assert await store.delete(B, CHUNKS, [point_id(1)]) == 0
        await store.upsert(B, CHUNKS, [chunk(1), chunk(2, document="d2")])
        await store.update_metadata(B, "d1", {"year": 2}, title="other", key=None, up_to_version=9)
        assert await store.delete(B, CHUNKS, [point_id(1)]) == 1
        assert await store.delete_document(B, "d2", up_to_version=9) == 1
        assert await store.delete_generations(B, below=9) == 0
        assert await store.delete_tenant(B) == 0
        assert before == (await find(store, A), await find(store, A, NODES, kind=NodeKind.COMMUNITY))
        assert len((await find(store, A, filter=Comparison("year", "eq", 1))).dense) == 1


async def repeated_writes_change_nothing(open_store: OpenStore) -> None:
    """An upsert replaces: writing twice equals writing once, and fields missing in the second write are removed."""
    async with open_store("repeated") as store:
        points = [chunk(number) for number in range(5)]
        await store.upsert(A, CHUNKS, points)
        before = await find(store, A)
        await store.upsert(A, CHUNKS, [*points, *points])
        assert await store.count(A, CHUNKS) == 5
        assert await find(store, A) == before
        await store.upsert(A, CHUNKS, [replace(points[0], dense=None, document_id="d2"), replace(points[1], text=None)])
        legs = await find(store, A)
        assert set(ids(legs.dense)) == {point_id(number) for number in (1, 2, 3, 4)}
        assert set(ids(legs.sparse)) == {point_id(number) for number in (0, 2, 3, 4)}
        assert set(await store.vectors(A, CHUNKS, [point_id(0), point_id(1)])) == {point_id(1)}
        assert await store.count(A, CHUNKS, document_id="d1") == 4


async def deletes_remove_every_point(open_store: OpenStore) -> None:
    """Deleted points are not found, read or counted. The returned numbers are those of existing points."""
    async with open_store("deletes") as store:
        await store.upsert(A, CHUNKS, [chunk(number) for number in range(6)])
        await store.upsert(A, NODES, [node(9, NodeKind.ENTITY)])
        assert await store.delete(A, CHUNKS, []) == 0
        assert await store.count(A, CHUNKS) == 6
        gone = [point_id(0), point_id(1)]
        assert await store.delete(A, CHUNKS, [*gone, gone[0], point_id(99)]) == 2
        assert await store.delete(A, CHUNKS, gone) == 0
        legs = await find(store, A)
        assert not set(gone) & {*ids(legs.dense), *ids(legs.sparse)}
        assert await store.vectors(A, CHUNKS, gone) == {}
        assert await store.count(A, CHUNKS) == 4
        assert await store.delete_tenant(A) == 5
        assert await find(store, A) == Legs()
        assert await store.count(A, CHUNKS) == await store.count(A, NODES) == 0


async def documents_are_purged_by_version(open_store: OpenStore) -> None:
    """A purge removes the given versions of one document, except the ids to keep."""
    async with open_store("versions") as store:
        versions = [(1, "d1", 1), (2, "d1", 2), (3, "d1", 2), (4, "d1", 3), (5, "d2", 1)]
        await store.upsert(
            A, CHUNKS, [chunk(number, document=document, version=version) for number, document, version in versions]
        )
        assert await store.delete_document(A, "d1", up_to_version=0) == 0
        assert await store.delete_document(A, "d1", up_to_version=2, keep=[point_id(3), point_id(77)]) == 2
        assert set(ids((await find(store, A)).dense)) == {point_id(number) for number in (3, 4, 5)}
        assert await store.delete_document(A, "d1", up_to_version=2) == 1
        assert await store.count(A, CHUNKS, document_id="d1") == await store.count(A, CHUNKS, document_id="d2") == 1


async def generations_are_separate(open_store: OpenStore) -> None:
    """A search of a generation finds only that generation. Old ones are removed, other kinds stay."""
    async with open_store("generations") as store:
        points = [node(number, NodeKind.COMMUNITY, generation=number) for number in (1, 2, 3)]
        await store.upsert(A, NODES, [*points, node(4, NodeKind.ENTITY), node(5, NodeKind.FACT, generation=1)])
        legs = await find(store, A, NODES, kind=NodeKind.COMMUNITY, generation=2)
        assert ids(legs.dense) == ids(legs.sparse) == [point_id(2)]
        assert len((await find(store, A, NODES, kind=NodeKind.COMMUNITY)).dense) == 3
        assert await store.delete_generations(A, below=3) == 2
        assert await store.delete_generations(A, below=3) == 0
        assert (await find(store, A, NODES, kind=NodeKind.COMMUNITY, generation=2)) == Legs()
        assert await store.count(A, NODES) == 3


async def kinds_and_collections_are_separate(open_store: OpenStore) -> None:
    """A search finds one kind in one collection. Equal ids in both are two points. Facts need no dense vector."""
    async with open_store("kinds") as store:
        await store.upsert(A, CHUNKS, [chunk(1)])
        await store.upsert(A, NODES, [node(1, NodeKind.ENTITY), node(2, NodeKind.FACT, dense=None)])
        assert ids((await find(store, A, NODES, kind=NodeKind.ENTITY)).sparse) == [point_id(1)]
        facts = await find(store, A, NODES, kind=NodeKind.FACT)
        assert facts.dense == ()
        assert ids(facts.sparse) == [point_id(2)]
        assert await find(store, A, CHUNKS, kind=NodeKind.ENTITY) == Legs()
        assert await store.delete(A, NODES, [point_id(1)]) == 1
        assert ids((await find(store, A)).dense) == [point_id(1)]


async def questions_share_the_life_of_chunks(open_store: OpenStore) -> None:
    """They are in the collection of chunks, filtered, changed and purged with their document. Searches keep the kinds apart."""
    async with open_store("questions") as store:
        asked = [
            chunk(9, None, kind=NodeKind.QUESTION, metadata={"year": 1999}),
            chunk(8, None, kind=NodeKind.QUESTION, version=2),
        ]
        await store.upsert(A, CHUNKS, [chunk(1), chunk(2), *asked])
        assert set(ids((await find(store, A)).dense)) == {point_id(1), point_id(2)}
        questions: dict[str, Any] = {"kind": NodeKind.QUESTION, "text": None}
        assert set(ids((await find(store, A, **questions)).dense)) == {point_id(8), point_id(9)}
        assert ids((await find(store, A, filter=Comparison("year", "eq", 1999), **questions)).dense) == [point_id(9)]
        assert (await find(store, B, **questions)) == Legs()
        await store.update_metadata(A, "d1", {"year": 2024}, title="New", key=None, up_to_version=1)
        assert ids((await find(store, A, filter=Comparison("year", "eq", 2024), **questions)).dense) == [point_id(9)]
        assert [each.id for each in await listed(store, A, kind=NodeKind.QUESTION)] == sorted([point_id(8), point_id(9)])
        assert await store.delete_document(A, "d1", up_to_version=1, keep=[point_id(1)]) == 2
        assert ids((await find(store, A, **questions)).dense) == [point_id(8)]
        assert await store.count(A, CHUNKS, document_id="d1") == 2


async def invalid_vectors_are_refused_completely(open_store: OpenStore) -> None:
    """With one invalid vector, nothing of the batch is written. A search with one is refused too."""
    bad: list[Any] = [np.zeros(DIMENSIONS + 1, np.float32), np.zeros((1, DIMENSIONS), np.float32), np.zeros(0, np.float32)]
    bad += [np.full(DIMENSIONS, value, np.float32) for value in (np.nan, np.inf, -np.inf)]
    async with open_store("bad") as store:
        await store.upsert(A, CHUNKS, [chunk(0)])
        for dense in bad:
            points = [chunk(0, "changed"), *(chunk(number) for number in range(1, 300)), chunk(300, dense=dense)]
            await refused(store.upsert(A, CHUNKS, points))
            await refused(find(store, A, dense=dense))
        assert await store.count(A, CHUNKS) == 1
        assert ids((await find(store, A)).sparse) == [point_id(0)]


async def metadata_can_be_replaced(open_store: OpenStore) -> None:
    """New metadata replaces the old for all chunks of the document. Vectors and words stay."""
    async with open_store("metadata") as store:
        points = [chunk(number, metadata={"year": 1999, "label": "old"}) for number in range(3)]
        await store.upsert(A, CHUNKS, [*points, chunk(5, document="d2", metadata={"year": 1999})])
        assert len((await find(store, A, filter=Comparison("year", "lt", 2000))).dense) == 4
        before = await find(store, A)
        await store.update_metadata(A, "d1", {"year": 2024}, title="New", key="k", up_to_version=9)
        assert await find(store, A) == before
        _same_direction((await store.vectors(A, CHUNKS, [point_id(2)]))[point_id(2)], vector(2))
        expected = (
            (Comparison("year", "gt", 2000), 3),
            (Comparison("year", "eq", 1999), 1),
            (Comparison("label", "exists"), 0),
            (Comparison("title", "contains", "new"), 3),
            (Comparison("key", "eq", "k"), 3),
            (Comparison("document_id", "eq", "d1"), 3),
        )
        for filter, count in expected:
            assert len((await find(store, A, filter=filter)).sparse) == count, filter
        assert await store.count(A, CHUNKS, document_id="d1") == 3
        assert await store.delete_document(A, "d1", up_to_version=1) == 3


async def metadata_of_later_versions_stays(open_store: OpenStore) -> None:
    """Chunks of a later version than the given one keep their metadata."""
    async with open_store("versions") as store:
        await store.upsert(A, CHUNKS, [chunk(number, version=number + 1, metadata={"year": 1999}) for number in range(4)])
        await store.update_metadata(A, "d1", {"year": 2024}, title="New", key=None, up_to_version=2)
        for year, numbers in ((2024, (0, 1)), (1999, (2, 3))):
            found = ids((await find(store, A, filter=Comparison("year", "eq", year))).sparse)
            assert sorted(found) == sorted(map(point_id, numbers)), year


async def listed(store: VectorStore, tenant: TenantId, collection: Collection = CHUNKS, **which: Any) -> list[StoredPoint]:
    """Return all pages of `VectorStore.points` as one list, ordered by id. A page has at most 500 points."""
    pages = [page async for page in store.points(tenant, collection, **which)]
    assert all(1 <= len(page) <= 500 for page in pages)
    return sorted((point for page in pages for point in page), key=lambda point: point.id)


async def stored_points_are_listed(open_store: OpenStore) -> None:
    """Every point of the tenant once, unchanged, filtered by kind, document and id. None for an empty selection."""
    async with open_store("listed") as store:
        given = [chunk(n, document=f"d{n % 3}", version=n % 4, key="k", metadata={"year": n}) for n in range(1_203)]
        nodes = [node(1, NodeKind.FACT, dense=None), node(2, NodeKind.COMMUNITY, generation=7)]
        await store.upsert(A, CHUNKS, given)
        await store.upsert(A, NODES, nodes)
        await store.upsert(B, CHUNKS, [chunk(1, document="d1", version=9)])
        expected = [
            StoredPoint(
                id=each.id,
                kind="chunk",
                document_id=each.document_id,
                version=each.version or 0,
                tags=frozenset(tags_of(each.fields)),
            )
            for each in sorted(given, key=lambda each: each.id)
        ]
        assert await listed(store, A) == expected
        assert await listed(store, A, document_ids=["d1", "d9"]) == [each for each in expected if each.document_id == "d1"]
        wanted = [point_id(3), point_id(4), point_id(5_000)]
        assert await listed(store, A, ids=wanted) == [each for each in expected if each.id in wanted]
        assert await listed(store, A, ids=[]) == await listed(store, A, document_ids=[]) == []
        assert [(each.id, each.generation) for each in await listed(store, A, NODES, kind=NodeKind.COMMUNITY)] == [
            (point_id(2), 7)
        ]
        assert [each.kind for each in await listed(store, A, NODES, kind=NodeKind.FACT)] == ["fact"]
        assert [each.version for each in await listed(store, B)] == [9]
        assert await listed(store, B, NODES) == []
        for scope in (None, "", A.value):
            with_scope: Any = scope
            try:
                await listed(store, with_scope)
            except InvalidScope:
                continue
            raise AssertionError(f"points were listed for {scope!r}")


async def tenants_are_listed(open_store: OpenStore) -> None:
    """Exactly the tenants with a point in any collection."""
    async with open_store("tenants") as store:
        assert await store.tenants() == []
        await store.upsert(B, NODES, [node(1, NodeKind.FACT)])
        await store.upsert(A, CHUNKS, [chunk(1), chunk(2)])
        assert sorted(await store.tenants()) == [A, B]
        await store.delete(B, NODES, [point_id(1)])
        assert await store.tenants() == [A]


async def indexes_are_described(open_store: OpenStore) -> None:
    """Each collection with the points of every tenant, and their indexed share."""
    async with open_store("indexes") as store:
        assert [index.points for index in await store.indexes()] == [0, 0]
        await store.upsert(A, CHUNKS, [chunk(1), chunk(2)])
        await store.upsert(B, CHUNKS, [chunk(1)])
        await store.upsert(B, NODES, [node(1, NodeKind.FACT)])
        found = {index.collection: index for index in await store.indexes()}
        assert {collection: index.points for collection, index in found.items()} == {CHUNKS: 3, NODES: 1}
        assert all(0.0 <= index.indexed_share <= 1.0 for index in found.values())


async def data_survives_reopening(open_store: OpenStore) -> None:
    """A reopened store gives the same answers. A closed store gives none."""
    async with open_store("reopened") as store:
        await store.upsert(A, CHUNKS, [chunk(number, metadata={"year": number}) for number in range(20)])
        await store.delete(A, CHUNKS, [point_id(3)])
        await store.flush()
        await store.ping()
        narrow = Comparison("year", "gte", 7)
        before = store.fingerprint, await find(store, A), await find(store, A, filter=narrow)
    for call in (store.ping, store.flush, lambda: store.count(A, CHUNKS), lambda: find(store, A)):
        await refused(call(), AgenticRagError)
    async with open_store("reopened") as store:
        assert (store.fingerprint, await find(store, A), await find(store, A, filter=narrow)) == before
        assert await store.count(A, CHUNKS) == 19


def _same_direction(stored: Vector, given: Vector) -> None:
    assert stored.dtype == np.float32
    assert abs(float(np.linalg.norm(stored)) - 1) < 1e-3
    assert cosine(stored, given) > 0.999


CHECKS: tuple[Check, ...] = (
    tenant_is_required,
    another_tenant_sees_nothing,
    another_tenant_changes_nothing,
    repeated_writes_change_nothing,
    deletes_remove_every_point,
    documents_are_purged_by_version,
    generations_are_separate,
    kinds_and_collections_are_separate,
    questions_share_the_life_of_chunks,
    invalid_vectors_are_refused_completely,
    *vector_search.CHECKS,
    metadata_can_be_replaced,
    metadata_of_later_versions_stays,
    stored_points_are_listed,
    tenants_are_listed,
    indexes_are_described,
    data_survives_reopening,
)
