"""Failures of local files: a full disk and damaged files, told as what they are.

A disk that is full fails in as many ways as there are libraries on it, and may end a process that writes through a mapping.
So writers of mapped files ask for room first (`require_room`), and `is_full` decides what an error that says too little means.
"""

from __future__ import annotations

import errno
import shutil
import sqlite3
from pathlib import Path

from agentic_rag_backend.errors import StorageFull, StoreDamaged, StoreUnavailable

LEAST_FREE_BYTES = 16 * 1024 * 1024
"""Free space below which a disk counts as full: small files still fit, and whoever frees space can work."""
_RESTORE = "stop the server and restore that file from a backup"


def is_full(path: Path, least_bytes: int = LEAST_FREE_BYTES) -> bool:
    """Tell whether the disk of ``path``, or of the nearest folder above that exists, has no room left."""
    existing = next(each for each in (path, *path.absolute().parents) if each.exists())
    return shutil.disk_usage(existing).free < least_bytes


def require_room(path: Path, what: str, least_bytes: int = LEAST_FREE_BYTES) -> None:
    """Refuse to write where there is no room.

    Raises:
        StorageFull: the disk of ``path`` is full.
    """
    if is_full(path, least_bytes):
        raise full(what, least_bytes)


def full(what: str, least_bytes: int = LEAST_FREE_BYTES) -> StorageFull:
    """Return the error for a full disk; it names the store and not the folder, since tenants may read it."""
    least = least_bytes // 1024 // 1024
    return StorageFull(f"the disk of {what} is full (less than {least} MiB free): free some space, and writing goes on by itself")


def full_os_error(error: OSError) -> bool:
    """Tell whether an error of the system says that there is no room, or no more for this account."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def sqlite_failure(error: sqlite3.Error, file: Path, what: str) -> StoreUnavailable:
    """Return what an error of SQLite on ``file`` means."""
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and is_full(file)):
        return full(what)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreDamaged(f"{file} ({what}) is damaged: {error}; {_RESTORE}")
    return StoreUnavailable(f"{what} does not answer: {error}")
