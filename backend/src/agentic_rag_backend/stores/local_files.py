"""Errors of local files: full disks and damaged files are recognised and translated.

Libraries report a full disk in many ways, and a process that writes through a memory mapping may be killed. So writers of
mapped files check for room first (`require_room`), and `is_full` resolves ambiguous errors.
"""

from __future__ import annotations

import errno
import shutil
import sqlite3
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
