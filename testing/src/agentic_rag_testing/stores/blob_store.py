"""Contract of every blob store: run `CHECKS` against an adapter, each on a new, empty store.

A check is an async function of the store that raises `AssertionError`. ``tests/contract/test_blob_store.py`` shows how to run
them, and that stores with planted faults fail them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidRequest, InvalidScope, NotFound
from agentic_rag_backend.stores.blob.base import BlobStore, blob_key

Check = Callable[[BlobStore], Awaitable[None]]

A = TenantId("t_" + "a" * 32)
B = TenantId("t_" + "b" * 32)
STRANGE = (
    "a/b/c",
    "a b",
    "a%20b",
    "a%2Fb",
    "ä€😀",
    "a_b",
    "a_5fb",
    ".",
    "..c",
    "../b",
    "x/../../y",
    "a#1",
    "a\\b",
    "CON",
    "-",
    "a:b?*",
)
"""Keys that a store might merge, decode, or treat as a path out of the tenant's folder. No key is another one's folder."""


async def reads_return_what_was_written(store: BlobStore) -> None:
    """Byte for byte, also for empty and large content. The same key replaces the content."""
    key = blob_key("d1", 1)
    for content in (b"first", b"", bytes(range(256)) * 20_000, b"last"):
        await store.put(A, key, content)
        _equal(await store.get(A, key), content)
    await store.put(A, blob_key("d1", 2), b"second")
    _equal((await store.get(A, key), await store.get(A, blob_key("d1", 2))), (b"last", b"second"))


async def unusual_keys_are_separate(store: BlobStore) -> None:
    """Every key has its own blob. A key with an empty part is refused."""
    for key in STRANGE:
        await store.put(A, key, key.encode())
    for key in STRANGE:
        _equal(await store.get(A, key), key.encode())
    for key in ("", "/", "/a", "a/", "a//b"):
        await _raises(InvalidRequest, store.put(A, key, b""), f"the key {key!r}")
    _equal(await store.delete_tenant(A), len(STRANGE))


async def missing_keys_are_not_found(store: BlobStore) -> None:
    """Reading a missing blob raises `NotFound`, deleting it returns False."""
    await _raises(NotFound, store.get(A, "d/1"), "a blob that was never put")
    _equal(await store.delete(A, "d/1"), False)
    await store.put(A, "d/1", b"x")
    await _raises(NotFound, store.get(A, "d"), "a folder of blobs")
    _equal((await store.delete(A, "d/1"), await store.delete(A, "d/1")), (True, False))
    await _raises(NotFound, store.get(A, "d/1"), "a blob that was deleted")


async def another_tenant_sees_nothing(store: BlobStore) -> None:
    """Equal keys of two tenants are two blobs. Deleting one keeps the other."""
    for tenant in (A, B):
        await store.put(tenant, "d/1", tenant.value.encode())
    await store.put(A, "only/1", b"of A")
    await _raises(NotFound, store.get(B, "only/1"), "another tenant's blob")
    _equal((await store.delete(B, "only/1"), await store.delete(B, "d/1")), (False, True))
    _equal(await store.get(A, "d/1"), A.value.encode())
    _equal(await store.delete_tenant(B), 0)
    _equal((await store.delete_tenant(A), await store.delete_tenant(A)), (2, 0))
    await _raises(NotFound, store.get(A, "d/1"), "a removed tenant's blob")


async def every_method_requires_a_tenant(store: BlobStore) -> None:
    """Any value but a `TenantId` is an error and never means all tenants."""
    await store.put(A, "d/1", b"x")
    scopes: tuple[Any, ...] = (None, "", A.value)
    for scope in scopes:
        await _raises(InvalidScope, store.put(scope, "d/1", b"y"), f"put for the scope {scope!r}")
        await _raises(InvalidScope, store.get(scope, "d/1"), f"get for the scope {scope!r}")
        await _raises(InvalidScope, store.delete(scope, "d/1"), f"delete for the scope {scope!r}")
        await _raises(InvalidScope, _keys(store, scope, datetime.now(UTC)), f"keys for the scope {scope!r}")
        await _raises(InvalidScope, store.missing(scope, ["d/1"]), f"missing for the scope {scope!r}")
        await _raises(InvalidScope, store.delete_tenant(scope), f"delete_tenant for the scope {scope!r}")
    _equal(await store.get(A, "d/1"), b"x")


async def keys_are_listed_by_age(store: BlobStore) -> None:
    """The tenant's keys, unchanged, without blobs that were stored later."""
    later = datetime.now(UTC) + timedelta(days=1)
    for key in STRANGE:
        await store.put(A, key, b"x")
    await store.put(B, "of-b/1", b"x")
    _equal(await _keys(store, A, later), sorted(STRANGE))
    _equal(await _keys(store, A, later - timedelta(days=2)), [])
    await store.delete(A, STRANGE[0])
    _equal(await _keys(store, A, later), sorted(STRANGE[1:]))
    _equal(await _keys(store, B, later), ["of-b/1"])
    _equal(await _keys(store, TenantId("t_" + "c" * 32), later), [])


async def keys_are_listed_in_pages(store: BlobStore) -> None:
    """Pages have at most 1,000 keys, and every key occurs once."""
    keys = [f"{number}/1" for number in range(1_010)]
    for first in range(0, len(keys), 101):
        await asyncio.gather(*(store.put(A, key, b"") for key in keys[first : first + 101]))
    pages = [page async for page in store.keys(A, before=datetime.now(UTC) + timedelta(days=1))]
    _true(len(pages) > 1 and all(1 <= len(page) <= 1_000 for page in pages), "a page of more than 1,000 keys")
    _equal(sorted(key for page in pages for key in page), sorted(keys))


async def missing_keys_are_reported(store: BlobStore) -> None:
    """In the given order, and only within the tenant."""
    for key in STRANGE[:3]:
        await store.put(A, key, b"")
    await store.put(B, "of-b", b"x")
    _equal(await store.missing(A, [*STRANGE[:3], "of-b", "a/b", "z"]), ["of-b", "a/b", "z"])
    _equal(await store.missing(A, []), [])


async def tenants_are_listed(store: BlobStore) -> None:
    """Exactly the tenants with a blob."""
    _equal(await store.tenants(), [])
    await store.put(B, "of-b/1", b"x")
    await store.put(A, "d/1", b"x")
    _equal(await store.tenants(), [A, B])
    await store.delete(B, "of-b/1")
    _equal(await store.tenants(), [A])


async def concurrent_writes_are_atomic(store: BlobStore) -> None:
    """Concurrent puts and deletes in one folder work, and readers never see a partial blob."""
    whole = {b"a" * 200_000, b"b" * 200_000}

    async def work(number: int) -> None:
        for round in range(5):
            await store.put(A, f"d/{number}", b"x")
            await store.put(A, "shared/1", b"ab"[round % 2 :][:1] * 200_000)
            _true(await store.get(A, "shared/1") in whole, "a blob was seen half written")
            await store.delete(A, f"d/{number}")

    await asyncio.gather(*(work(number) for number in range(8)))
    _equal(await store.delete_tenant(A), 1)
    await store.ping()


CHECKS: tuple[Check, ...] = (
    reads_return_what_was_written,
    unusual_keys_are_separate,
    missing_keys_are_not_found,
    another_tenant_sees_nothing,
    every_method_requires_a_tenant,
    keys_are_listed_by_age,
    keys_are_listed_in_pages,
    missing_keys_are_reported,
    tenants_are_listed,
    concurrent_writes_are_atomic,
)


async def _keys(store: BlobStore, tenant: TenantId, before: datetime) -> list[str]:
    return sorted([key async for page in store.keys(tenant, before=before) for key in page])


async def _raises(error: type[Exception], call: Awaitable[Any], what: str) -> None:
    try:
        found = await call
    except error:
        return
    raise AssertionError(f"{what} should have raised {error.__name__}; it returned {found!r}")


def _equal(found: object, expected: object) -> None:
    if found != expected:
        raise AssertionError(f"found {found!r}\nexpected {expected!r}"[:2000])


def _true(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)
