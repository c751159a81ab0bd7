"""Room for uploads: free space less what is being written."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from agentic_rag_backend.errors import StorageFull
from agentic_rag_backend.stores.local_files import LEAST_FREE_BYTES, DiskSpace

MIB = 1024 * 1024


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Free bytes of the disks of these tests, by the name of the folder. Each folder is on its own disk."""
    found: dict[str, int] = {}
    stat = Path.stat

    def usage(path: Path) -> SimpleNamespace:
        return SimpleNamespace(free=found[path.name])

    def on_its_disk(path: Path, **options: bool) -> object:
        device = {"st_dev": list(found).index(path.name)} if path.name in found else {}
        real = stat(path, **options)
        return SimpleNamespace(st_mode=real.st_mode, st_dev=device.get("st_dev", real.st_dev))

    monkeypatch.setattr(shutil, "disk_usage", usage)
    monkeypatch.setattr(Path, "stat", on_its_disk)
    return found


def space(folder: Path, free: dict[str, int], disks: Mapping[str, int]) -> DiskSpace:
    """Return the space of folders with free bytes above the least free space."""
    for name, above in disks.items():
        (folder / name).mkdir()
        free[name] = LEAST_FREE_BYTES + above
    return DiskSpace({f"the store {name}": folder / name for name in disks})


async def test_reserved_bytes_count_as_used_until_the_upload_ends(tmp_path: Path, free: dict[str, int]) -> None:
    room = space(tmp_path, free, {"a": 10 * MIB})
    async with room.reserve(6 * MIB):
        async with room.reserve(4 * MIB):
            with pytest.raises(StorageFull, match=r"the store a has 27262976 bytes free: 10485761 bytes for uploads under way"):
                async with room.reserve(1):
                    raise AssertionError("there is no room")
        await room.require()
        async with room.reserve(4 * MIB):
            pass
    async with room.reserve(10 * MIB):
        pass


async def test_every_disk_is_checked(tmp_path: Path, free: dict[str, int]) -> None:
    room = space(tmp_path, free, {"a": 100 * MIB, "b": 5 * MIB})
    with pytest.raises(StorageFull, match="the store b has"):
        async with room.reserve(6 * MIB):
            raise AssertionError("there is no room")
    free["a"] = LEAST_FREE_BYTES - 1
    with pytest.raises(StorageFull, match=r"the store a is full \(less than 16 MiB free\)"):
        await room.require()


async def test_stores_on_one_disk_each_write_the_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=LEAST_FREE_BYTES + 10 * MIB))
    room = DiskSpace({"the catalogue": tmp_path, "the blob store": tmp_path / "not yet" / "there"})
    async with room.reserve(5 * MIB):
        pass
    with pytest.raises(StorageFull, match=r"10485762 bytes for uploads"):
        async with room.reserve(5 * MIB + 1):
            raise AssertionError("there is no room")


async def test_without_local_stores_there_is_always_room() -> None:
    async with DiskSpace({}).reserve(10**15):
        pass
