"""Errors of local files and the free space of their disks.

Libraries report a full disk in many ways, and a process that writes through a memory mapping may be killed. So writers of
mapped files check for room first (`require_room`), and `is_full` resolves ambiguous errors.
"""

from __future__ import annotations

import asyncio
import errno
import shutil
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from agentic_rag_backend.errors import StorageFull, StoreDamaged, StoreUnavailable

LEAST_FREE_BYTES = 16 * 1024 * 1024
"""Free space below which a disk counts as full. Small files still fit, so that an operator can free space."""
_RESTORE = "stop the server and restore that file from a backup"


def create_private(path: Path) -> None:
    """Create an empty file that only its owner may read, and its folder, unless they exist.

    SQLite gives the mode of a database to the files that it adds.

    Raises:
        OSError: they cannot be created.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        path.touch(mode=0o600)


def existing_path(path: Path) -> Path:
    """Return ``path``, or its nearest parent that exists."""
    return next(candidate for candidate in (path, *path.absolute().parents) if candidate.exists())


def is_full(path: Path, least_bytes: int = LEAST_FREE_BYTES) -> bool:
    """Return whether the disk of ``path``, or of its nearest existing parent, is full."""
    return shutil.disk_usage(existing_path(path)).free < least_bytes


def require_room(path: Path, what: str, least_bytes: int = LEAST_FREE_BYTES) -> None:
    """Check that the disk has room.

    Raises:
        StorageFull: the disk of ``path`` is full.
    """
    if is_full(path, least_bytes):
        raise full(what, least_bytes)


def full(what: str, least_bytes: int = LEAST_FREE_BYTES) -> StorageFull:
    """Return the error for a full disk. It names the store and not the folder, because tenants may read it."""
    least = least_bytes // 1024 // 1024
    return StorageFull(f"the disk of {what} is full (less than {least} MiB free): free some space; writing then continues")


def full_os_error(error: OSError) -> bool:
    """Return whether a system error reports a full disk or an exceeded quota."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def sqlite_failure(error: sqlite3.Error, file: Path, what: str) -> StoreUnavailable:
    """Translate an SQLite error on ``file``."""
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and is_full(file)):
        return full(what)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreDamaged(f"{file} ({what}) is damaged: {error}; {_RESTORE}")
    return StoreUnavailable(f"{what} does not answer: {error}")


class DiskSpace:
    """Checks for room before a request is accepted. What concurrent uploads are about to write counts as used.

    Args:
        folders: the folder of each local store, by the name that messages have for the store.
    """

    def __init__(self, folders: Mapping[str, Path]) -> None:
        self._folders = folders
        self._reserved_bytes = 0

    async def require(self) -> None:
        """Raise `StorageFull` if the disk of a store is full, or will be after the uploads that are being written."""
        await asyncio.to_thread(self._require, self._reserved_bytes)

    @asynccontextmanager
    async def reserve(self, size_bytes: int) -> AsyncIterator[None]:
        """Reserve room for content on the disk of each store while the context is open.

        Raises:
            StorageFull: a disk has less free space than `LEAST_FREE_BYTES` besides all reserved bytes.
        """
        self._reserved_bytes += size_bytes
        try:
            await self.require()
            yield
        finally:
            self._reserved_bytes -= size_bytes

    def _require(self, reserved_bytes: int) -> None:
        needed = Counter[int]()
        for store, folder in self._folders.items():
            path = existing_path(folder)
            device = path.stat().st_dev
            needed[device] += reserved_bytes  # stores on one disk each write the content, such as original and text
            free = shutil.disk_usage(path).free
            if free < LEAST_FREE_BYTES:
                raise full(store)
            if free - needed[device] < LEAST_FREE_BYTES:
                raise StorageFull(
                    f"the disk of {store} has {free} bytes free: {needed[device]} bytes for uploads under way and "
                    f"{LEAST_FREE_BYTES} that must stay free do not fit; free some space"
                )
