"""The blob store's contract on a local folder, and on stores with planted faults."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentic_rag_backend.domain.tenant import TenantId, require_tenant
from agentic_rag_backend.errors import NotFound
from agentic_rag_backend.stores.blob.base import BlobStore
from agentic_rag_testing.stores import blob_store as contract


@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
async def test_local_folder(tmp_path: Path, check: contract.Check) -> None:
    await check(BlobStore((tmp_path / "blobs with space").as_uri()))


class InMemory:
    """A minimal store that keeps the contract. Each fault breaks one part of it."""

    def __init__(self) -> None:
        self.blobs: dict[tuple[TenantId, str], bytes] = {}
        self.since = datetime.now(UTC)

    async def put(self, tenant: TenantId, key: str, content: bytes) -> None:
        self.blobs[self.place(tenant, key)] = content

    def keys(self, tenant: TenantId, *, before: datetime) -> AsyncIterator[list[str]]:
        return self.pages([key for owner, key in self.blobs if owner == require_tenant(tenant) and self.since < before])

    async def pages(self, keys: Sequence[str]) -> AsyncIterator[list[str]]:
        for first in range(0, len(keys), 1_000):
            yield list(keys[first : first + 1_000])

    async def missing(self, tenant: TenantId, keys: Sequence[str]) -> list[str]:
        return [key for key in keys if self.place(tenant, key) not in self.blobs]

    async def tenants(self) -> list[TenantId]:
        return sorted({owner for owner, _ in self.blobs})

    async def get(self, tenant: TenantId, key: str) -> bytes:
        try:
            return self.blobs[self.place(tenant, key)]
        except KeyError:
            raise NotFound(key) from None

    async def delete(self, tenant: TenantId, key: str) -> bool:
        return self.blobs.pop(self.place(tenant, key), None) is not None

    async def delete_tenant(self, tenant: TenantId) -> int:
        gone = [place for place in self.blobs if place[0] == require_tenant(tenant)]
        for place in gone:
            del self.blobs[place]
        return len(gone)

    async def ping(self) -> None:
        return None

    def place(self, tenant: TenantId, key: str) -> tuple[TenantId, str]:
        return require_tenant(tenant), key


class OneForAll(InMemory):
    def place(self, tenant: TenantId, key: str) -> tuple[TenantId, str]:
        return contract.A, super().place(tenant, key)[1]


class AnyScope(InMemory):
    async def delete_tenant(self, tenant: TenantId) -> int:
        return await super().delete_tenant(tenant) if isinstance(tenant, TenantId) else 0


class FoldsKeys(InMemory):
    def place(self, tenant: TenantId, key: str) -> tuple[TenantId, str]:
        return require_tenant(tenant), key.replace("%20", " ")


class KeepsTheFirst(InMemory):
    async def put(self, tenant: TenantId, key: str, content: bytes) -> None:
        self.blobs.setdefault(self.place(tenant, key), content)


class ListsAllAges(InMemory):
    def keys(self, tenant: TenantId, *, before: datetime) -> AsyncIterator[list[str]]:
        return super().keys(tenant, before=datetime.max.replace(tzinfo=UTC))


class ListsAllTenants(InMemory):
    def keys(self, tenant: TenantId, *, before: datetime) -> AsyncIterator[list[str]]:
        return self.pages([key for _, key in self.blobs if self.since < before])


class ListsAtOnce(InMemory):
    async def pages(self, keys: Sequence[str]) -> AsyncIterator[list[str]]:
        yield list(keys)


class MissesNothing(InMemory):
    async def missing(self, tenant: TenantId, keys: Sequence[str]) -> list[str]:
        held = {key for _, key in self.blobs}
        return [key for key in keys if key not in held]


class RemembersTenants(InMemory):
    seen: frozenset[TenantId] = frozenset()

    async def tenants(self) -> list[TenantId]:
        self.seen |= set(await super().tenants())
        return sorted(self.seen)


class SilentDelete(InMemory):
    async def delete(self, tenant: TenantId, key: str) -> bool:
        await super().delete(tenant, key)
        return True


class EmptyForMissing(InMemory):
    async def get(self, tenant: TenantId, key: str) -> bytes:
        return self.blobs.get(self.place(tenant, key), b"")


@pytest.mark.parametrize(
    ("store", "check"),
    [
        (OneForAll, contract.another_tenant_sees_nothing),
        (AnyScope, contract.every_method_requires_a_tenant),
        (FoldsKeys, contract.unusual_keys_are_separate),
        (KeepsTheFirst, contract.reads_return_what_was_written),
        (SilentDelete, contract.missing_keys_are_not_found),
        (ListsAllAges, contract.keys_are_listed_by_age),
        (ListsAllTenants, contract.keys_are_listed_by_age),
        (ListsAtOnce, contract.keys_are_listed_in_pages),
        (MissesNothing, contract.missing_keys_are_reported),
        (RemembersTenants, contract.tenants_are_listed),
        (EmptyForMissing, contract.missing_keys_are_not_found),
    ],
)
async def test_faulty_stores_fail(store: type[InMemory], check: contract.Check) -> None:
    with pytest.raises(AssertionError):
        await check(store())


@pytest.mark.parametrize(
    "check",
    [
        contract.reads_return_what_was_written,
        contract.keys_are_listed_by_age,
        contract.keys_are_listed_in_pages,
        contract.missing_keys_are_reported,
        contract.tenants_are_listed,
        contract.another_tenant_sees_nothing,
        contract.concurrent_writes_are_atomic,
    ],
)
async def test_the_sound_store_passes(check: contract.Check) -> None:
    await check(InMemory())
