"""The vector store's contract on every adapter, and adapters with a planted fault that must fail it."""

from __future__ import annotations

import hashlib
import math
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from qdrant_clients import WITHOUT_INDEXES, local_client
from services import QdrantServer

from agentic_rag_backend.domain.tenant import Deployment, TenantId
from agentic_rag_backend.stores.ownership import Owner
from agentic_rag_backend.stores.vector.base import (
    Collection,
    IndexStatus,
    Legs,
    NodeKind,
    ScoredId,
    StoredPoint,
    Vector,
    VectorPoint,
    VectorSearch,
    VectorStore,
)
from agentic_rag_backend.stores.vector.edge.store import EdgeVectorStore
from agentic_rag_backend.stores.vector.qdrant.qdrant_store import QdrantVectorStore
from agentic_rag_backend.stores.vector.qdrant.server import connect
from agentic_rag_testing.stores import vector_search
from agentic_rag_testing.stores import vector_store as contract
from agentic_rag_testing.stores.vector_samples import DIMENSIONS, A, Check, OpenStore, point_id

Wrap = Callable[[EdgeVectorStore], Any]


def opener(folder: Path, wrap: Wrap = lambda store: store) -> OpenStore:
    @asynccontextmanager
    async def open_store(place: str) -> AsyncIterator[VectorStore]:
        store = await EdgeVectorStore.open(folder / place, dimensions=DIMENSIONS, embedder_fingerprint="test")
        try:
            yield wrap(store)
        finally:
            await store.close()

    return open_store


@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
async def test_edge(check: Check, tmp_path: Path) -> None:
    await check(opener(tmp_path))


def qdrant_opener(folder: Path) -> OpenStore:
    """Open the adapter on the client's own engine, the substitute for a server."""

    @asynccontextmanager
    async def open_store(place: str) -> AsyncIterator[VectorStore]:
        client = local_client(folder / place)
        store = await QdrantVectorStore.open(client, dimensions=DIMENSIONS, embedder_fingerprint="test", timeout_s=120)
        try:
            yield store
        finally:
            await store.close()

    return open_store


@pytest.mark.filterwarnings(WITHOUT_INDEXES)
@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
async def test_qdrant(check: Check, tmp_path: Path) -> None:
    await check(qdrant_opener(tmp_path))


async def no_tenants(tenants: Sequence[TenantId]) -> frozenset[TenantId]:
    return frozenset()


@asynccontextmanager
async def server_opener(server: QdrantServer, *, grpc: bool) -> AsyncIterator[OpenStore]:
    """Open the adapter on a real server. Each place has its own collections, which are removed at the end."""
    run, places = f"test_{uuid.uuid4().hex[:8]}", set()

    @asynccontextmanager
    async def open_store(place: str) -> AsyncIterator[VectorStore]:
        name = f"{run}_{hashlib.sha256(place.encode()).hexdigest()[:8]}"
        places.add(name)
        owner = Owner(deployment=Deployment(id=f"d_{name}", name=name, described="tests"), known_tenants=no_tenants)
        client = connect(server.url, prefer_grpc=grpc, grpc_port=server.grpc_port, timeout_s=60)
        store = await QdrantVectorStore.open(
            client, dimensions=DIMENSIONS, embedder_fingerprint="test", timeout_s=120, owner=owner
        )
        try:
            yield store
        finally:
            await store.close()

    try:
        yield open_store
    finally:
        client = connect(server.url)
        for each in (await client.get_collections()).collections:
            if each.name.startswith(tuple(places)):
                await client.delete_collection(each.name)
        await client.close()


@pytest.mark.parametrize("grpc", [False, True], ids=["rest", "grpc"])
@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
async def test_qdrant_server(check: Check, grpc: bool, qdrant_server: QdrantServer) -> None:
    async with server_opener(qdrant_server, grpc=grpc) as open_store:
        await check(open_store)


class Faulty:
    """A working store. Each subclass breaks one part of it."""

    def __init__(self, store: EdgeVectorStore) -> None:
        self.store = store
        self.writers: list[TenantId] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    async def upsert(self, tenant: TenantId, collection: Collection, points: Sequence[VectorPoint]) -> None:
        await self.store.upsert(tenant, collection, points)
        self.writers = sorted({*self.writers, tenant})

    async def searched(self, tenant: TenantId, collection: Collection, searches: Sequence[VectorSearch]) -> list[Legs]:
        return await self.store.search(tenant, collection, searches)


class CountsEveryTenant(Faulty):
    async def count(self, tenant: TenantId, collection: Collection, *, document_id: str | None = None) -> int:
        await self.store.count(tenant, collection)
        return sum([await self.store.count(each, collection, document_id=document_id) for each in self.writers])


class SearchesEveryTenant(Faulty):
    async def search(self, tenant: TenantId, collection: Collection, searches: Sequence[VectorSearch]) -> list[Legs]:
        found = [await self.searched(each, collection, searches) for each in {tenant, *self.writers}]
        return [
            Legs(tuple(hit for legs in row for hit in legs.dense), tuple(hit for legs in row for hit in legs.sparse))
            for row in zip(*found, strict=True)
        ]


class ReadsEveryTenantsVectors(Faulty):
    async def vectors(self, tenant: TenantId, collection: Collection, ids: Sequence[str]) -> dict[str, Vector]:
        found = await self.store.vectors(tenant, collection, ids)
        for each in self.writers:
            found = await self.store.vectors(each, collection, ids) | found
        return found


class DeletesForEveryTenant(Faulty):
    async def delete(self, tenant: TenantId, collection: Collection, ids: Sequence[str]) -> int:
        return sum([await self.store.delete(each, collection, ids) for each in {tenant, *self.writers}])


class PurgesForEveryTenant(Faulty):
    async def delete_document(self, tenant: TenantId, document_id: str, *, up_to_version: int, keep: Sequence[str] = ()) -> int:
        purge = self.store.delete_document
        tenants = {tenant, *self.writers}
        return max([await purge(each, document_id, up_to_version=up_to_version, keep=keep) for each in tenants])


class UpdatesEveryTenant(Faulty):
    async def update_metadata(self, tenant: TenantId, document_id: str, metadata: Any, **fields: Any) -> None:
        for each in {tenant, *self.writers}:
            await self.store.update_metadata(each, document_id, metadata, **fields)


class DropsOldGenerationsOfEveryTenant(Faulty):
    async def delete_generations(self, tenant: TenantId, *, below: int) -> int:
        own = await self.store.delete_generations(tenant, below=below)
        for each in self.writers:
            await self.store.delete_generations(each, below=below)
        return own


class TakesNoTenantForSomeTenant(Faulty):
    async def count(self, tenant: TenantId, collection: Collection, *, document_id: str | None = None) -> int:
        return await self.store.count(tenant or self.writers[0], collection, document_id=document_id)


class TakesTextForATenant(Faulty):
    async def delete_tenant(self, tenant: TenantId) -> int:
        return await self.store.delete_tenant(TenantId(tenant) if isinstance(tenant, str) else tenant)


class WritesBatchesInPart(Faulty):
    async def upsert(self, tenant: TenantId, collection: Collection, points: Sequence[VectorPoint]) -> None:
        for point in points[:2] + points[-2:]:  # type: ignore[operator]
            await super().upsert(tenant, collection, [point])
        await super().upsert(tenant, collection, points)


class TakesNaN(Faulty):
    async def upsert(self, tenant: TenantId, collection: Collection, points: Sequence[VectorPoint]) -> None:
        cleaned = [replace(point, dense=None if point.dense is None else np.nan_to_num(point.dense)) for point in points]
        await super().upsert(tenant, collection, cleaned)


class AppendsOnRewrite(Faulty):
    written = 0

    async def upsert(self, tenant: TenantId, collection: Collection, points: Sequence[VectorPoint]) -> None:
        await super().upsert(tenant, collection, points)
        self.written += len(points)

    async def count(self, tenant: TenantId, collection: Collection, *, document_id: str | None = None) -> int:
        await self.store.count(tenant, collection)
        return self.written


class DeletesNothing(Faulty):
    async def delete(self, tenant: TenantId, collection: Collection, ids: Sequence[str]) -> int:
        found = await self.store.vectors(tenant, collection, ids)
        return len(found)


class DeletesAllForNoIds(Faulty):
    async def delete(self, tenant: TenantId, collection: Collection, ids: Sequence[str]) -> int:
        return await self.store.delete(tenant, collection, ids) if ids else await self.store.delete_tenant(tenant)


class ForgetsNodesOfATenant(Faulty):
    async def delete_tenant(self, tenant: TenantId) -> int:
        return await self.store.delete_document(tenant, "d1", up_to_version=9)


class IgnoresVersions(Faulty):
    async def delete_document(self, tenant: TenantId, document_id: str, *, up_to_version: int, keep: Sequence[str] = ()) -> int:
        return await self.store.delete_document(tenant, document_id, up_to_version=2**31, keep=keep)


class KeepsNothing(Faulty):
    async def delete_document(self, tenant: TenantId, document_id: str, *, up_to_version: int, keep: Sequence[str] = ()) -> int:
        return await self.store.delete_document(tenant, document_id, up_to_version=up_to_version)


class KeepsQuestions(Faulty):
    async def delete_document(self, tenant: TenantId, document_id: str, *, up_to_version: int, keep: Sequence[str] = ()) -> int:
        pages = self.store.points(tenant, Collection.CHUNKS, kind=NodeKind.QUESTION)
        asked = [point.id async for page in pages for point in page]
        return await self.store.delete_document(tenant, document_id, up_to_version=up_to_version, keep=[*keep, *asked])


class UpdatesEveryVersion(Faulty):
    async def update_metadata(self, tenant: TenantId, document_id: str, metadata: Any, **fields: Any) -> None:
        await self.store.update_metadata(tenant, document_id, metadata, **{**fields, "up_to_version": 9})


class LosesVectorsWithMetadata(Faulty):
    async def update_metadata(self, tenant: TenantId, document_id: str, metadata: Any, **fields: Any) -> None:
        await self.store.update_metadata(tenant, document_id, metadata, **fields)
        held = await self.store.vectors(tenant, Collection.CHUNKS, [point_id(number) for number in range(3)])
        points = [
            VectorPoint(
                id=id,
                kind=NodeKind.CHUNK,
                document_id=document_id,
                version=1,
                metadata=metadata,
                title=fields["title"],
                key=fields["key"],
            )
            for id in held
        ]
        await self.store.upsert(tenant, Collection.CHUNKS, points)


class ChangesTheSearch(Faulty):
    def asked(self, search: VectorSearch) -> VectorSearch:
        return search

    async def search(self, tenant: TenantId, collection: Collection, searches: Sequence[VectorSearch]) -> list[Legs]:
        return await self.searched(tenant, collection, [self.asked(search) for search in searches])


class IgnoresGeneration(ChangesTheSearch):
    def asked(self, search: VectorSearch) -> VectorSearch:
        return replace(search, generation=None)


class IgnoresFilter(ChangesTheSearch):
    def asked(self, search: VectorSearch) -> VectorSearch:
        return replace(search, filter=None)


class ClampsLimits(ChangesTheSearch):
    def asked(self, search: VectorSearch) -> VectorSearch:
        return replace(search, limit=min(max(search.limit, 1), 10_000))


class IgnoresKind(Faulty):
    async def search(self, tenant: TenantId, collection: Collection, searches: Sequence[VectorSearch]) -> list[Legs]:
        kinds = [await self.searched(tenant, collection, [replace(each, kind=kind) for each in searches]) for kind in NodeKind]
        return [
            Legs(tuple(hit for legs in row for hit in legs.dense), tuple(hit for legs in row for hit in legs.sparse))
            for row in zip(*kinds, strict=True)
        ]


class ChangesTheLegs(Faulty):
    def told(self, legs: Legs) -> Legs:
        return legs

    async def search(self, tenant: TenantId, collection: Collection, searches: Sequence[VectorSearch]) -> list[Legs]:
        return [self.told(legs) for legs in await self.searched(tenant, collection, searches)]


class BreaksTiesBackwards(ChangesTheLegs):
    def told(self, legs: Legs) -> Legs:
        return Legs(*(tuple(sorted(sorted(leg, key=_id, reverse=True), key=_score)) for leg in (legs.dense, legs.sparse)))


class FusesLegs(ChangesTheLegs):
    def told(self, legs: Legs) -> Legs:
        fused = {hit.id: ScoredId(hit.id, 1 / (60 + rank)) for leg in (legs.dense, legs.sparse) for rank, hit in enumerate(leg)}
        return Legs(dense=tuple(fused.values()))


class AnswersOutOfOrder(Faulty):
    async def search(self, tenant: TenantId, collection: Collection, searches: Sequence[VectorSearch]) -> list[Legs]:
        return (await self.searched(tenant, collection, searches))[::-1]


class ScoresByEverybodysWords(Faulty):
    async def search(self, tenant: TenantId, collection: Collection, searches: Sequence[VectorSearch]) -> list[Legs]:
        points = sum([await self.store.count(each, collection) for each in self.writers])
        found = await self.searched(tenant, collection, searches)
        return [
            Legs(legs.dense, tuple(hit._replace(score=math.nextafter(hit.score, points)) for hit in legs.sparse))
            if len(self.writers) > 1
            else legs
            for legs in found
        ]


class ForgetsAccess(Faulty):
    async def search(self, tenant: TenantId, collection: Collection, searches: Sequence[VectorSearch]) -> list[Legs]:
        return await self.searched(tenant.whole, collection, searches)


class ScoresByEveryKindsWords(Faulty):
    async def search(self, tenant: TenantId, collection: Collection, searches: Sequence[VectorSearch]) -> list[Legs]:
        points = await self.store.count(tenant, collection)
        found = await self.searched(tenant, collection, searches)
        return [Legs(legs.dense, tuple(hit._replace(score=hit.score * (1 + points)) for hit in legs.sparse)) for legs in found]


class AnswersWhenClosed(Faulty):
    async def ping(self) -> None:
        return None


class LosesWhatItWrote(Faulty):
    async def flush(self) -> None:
        await self.store.delete(A, Collection.CHUNKS, [point_id(7)])


class ListsOnePage(Faulty):
    async def points(self, tenant: TenantId, collection: Collection, **which: Any) -> AsyncIterator[list[StoredPoint]]:
        async for page in self.store.points(tenant, collection, **which):
            yield page
            return


class ListsEveryTenant(Faulty):
    async def points(self, tenant: TenantId, collection: Collection, **which: Any) -> AsyncIterator[list[StoredPoint]]:
        for each in {tenant, *self.writers}:
            async for page in self.store.points(each, collection, **which):
                yield page


class RemembersTenants(Faulty):
    seen: frozenset[TenantId] = frozenset()

    async def tenants(self) -> list[TenantId]:
        self.seen |= set(await self.store.tenants())
        return sorted(self.seen)


class DescribesOneTenant(Faulty):
    async def indexes(self) -> list[IndexStatus]:
        found = await self.store.indexes()
        own = [await self.store.count(A, index.collection) for index in found]
        return [replace(index, points=points) for index, points in zip(found, own, strict=True)]


def _id(hit: ScoredId) -> str:
    return hit.id


def _score(hit: ScoredId) -> float:
    return -hit.score


FAULTS: dict[type[Faulty], Check] = {
    CountsEveryTenant: contract.another_tenant_sees_nothing,
    SearchesEveryTenant: contract.another_tenant_sees_nothing,
    ReadsEveryTenantsVectors: contract.another_tenant_sees_nothing,
    DeletesForEveryTenant: contract.another_tenant_changes_nothing,
    PurgesForEveryTenant: contract.another_tenant_changes_nothing,
    UpdatesEveryTenant: contract.another_tenant_changes_nothing,
    DropsOldGenerationsOfEveryTenant: contract.another_tenant_changes_nothing,
    TakesNoTenantForSomeTenant: contract.tenant_is_required,
    TakesTextForATenant: contract.tenant_is_required,
    WritesBatchesInPart: contract.invalid_vectors_are_refused_completely,
    TakesNaN: contract.invalid_vectors_are_refused_completely,
    AppendsOnRewrite: contract.repeated_writes_change_nothing,
    DeletesNothing: contract.deletes_remove_every_point,
    DeletesAllForNoIds: contract.deletes_remove_every_point,
    ForgetsNodesOfATenant: contract.deletes_remove_every_point,
    IgnoresVersions: contract.documents_are_purged_by_version,
    KeepsNothing: contract.documents_are_purged_by_version,
    LosesVectorsWithMetadata: contract.metadata_can_be_replaced,
    UpdatesEveryVersion: contract.metadata_of_later_versions_stays,
    IgnoresGeneration: contract.generations_are_separate,
    IgnoresFilter: vector_search.filters_match_as_documented,
    ClampsLimits: vector_search.limits_are_bounded,
    IgnoresKind: contract.kinds_and_collections_are_separate,
    KeepsQuestions: contract.questions_share_the_life_of_chunks,
    BreaksTiesBackwards: vector_search.ties_are_ordered_by_id,
    FusesLegs: vector_search.legs_are_separate_and_best_first,
    AnswersOutOfOrder: vector_search.legs_are_separate_and_best_first,
    ScoresByEverybodysWords: vector_search.scores_use_only_texts_of_the_tenant,
    ForgetsAccess: vector_search.scores_of_a_restricted_scope_use_only_its_texts,
    ScoresByEveryKindsWords: vector_search.frequencies_use_only_texts_of_the_kind,
    ListsOnePage: contract.stored_points_are_listed,
    ListsEveryTenant: contract.stored_points_are_listed,
    RemembersTenants: contract.tenants_are_listed,
    DescribesOneTenant: contract.indexes_are_described,
    AnswersWhenClosed: contract.data_survives_reopening,
    LosesWhatItWrote: contract.data_survives_reopening,
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
async def test_a_planted_fault_fails(fault: type[Faulty], tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        await FAULTS[fault](opener(tmp_path, fault))


def test_every_check_fails_for_some_fault() -> None:
    assert set(FAULTS.values()) == set(contract.CHECKS)
