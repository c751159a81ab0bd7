"""Properties of the blob store: its URLs, its layout on disk, and its errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import ConfigurationError, StoreUnavailable
from agentic_rag_backend.stores.blob import base as module
from agentic_rag_backend.stores.blob.base import BlobStore

A = TenantId("t_" + "a" * 32)


def _below(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


@pytest.mark.parametrize(
    "url", ["", "blobs", "/tmp/blobs", "http://host/x", "memory:///", "s3://", "file://", "file://host/folder"]
)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="BLOB_URL"):
        BlobStore(url)


def test_a_file_in_the_way_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigurationError, match="BLOB_URL"):
        BlobStore((tmp_path / "file" / "blobs").as_uri())


def test_buckets_are_opened_without_a_request() -> None:
    BlobStore("s3://bucket/prefix")


async def test_a_tenant_has_a_folder_and_deletes_leave_none(tmp_path: Path) -> None:
    store = BlobStore(tmp_path.as_uri())
    await store.put(A, "d1/1", b"x")
    await store.put(A, "../up", b"y")
    assert _below(tmp_path) == [f"{A}", f"{A}/_2e_2e", f"{A}/_2e_2e/up", f"{A}/d1", f"{A}/d1/1"]
    await store.delete(A, "d1/1")
    assert _below(tmp_path) == [f"{A}", f"{A}/_2e_2e", f"{A}/_2e_2e/up"]
    await store.delete_tenant(A)
    assert _below(tmp_path) == []


async def test_a_put_is_forced_to_disk_with_its_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    original = module.os.fsync  # type: ignore[attr-defined]

    def fsync(handle: int) -> None:
        synced.append(Path(f"/proc/self/fd/{handle}").resolve().relative_to(tmp_path).as_posix())
        original(handle)

    monkeypatch.setattr(module.os, "fsync", fsync)  # type: ignore[attr-defined]
    await BlobStore(tmp_path.as_uri()).put(A, "d1/1", b"x")
    assert synced == [f"{A}/d1/1", f"{A}/d1", f"{A}", "."]


async def test_a_store_that_is_gone_says_so(tmp_path: Path) -> None:
    store = BlobStore((tmp_path / "blobs").as_uri())
    await store.ping()
    (tmp_path / "blobs").rmdir()
    (tmp_path / "blobs").write_bytes(b"in the way")
    calls: list[Any] = [store.ping, lambda: store.put(A, "d/1", b"x")]
    for call in calls:
        with pytest.raises(StoreUnavailable) as raised:
            await call()
        assert str(tmp_path) not in raised.value.message
