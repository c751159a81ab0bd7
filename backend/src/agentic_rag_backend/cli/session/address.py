"""Two files in DATA_DIR with which commands find a running server: its address, and the keys of its first start."""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from agentic_rag_backend.errors import ConfigurationError

T = TypeVar("T")
_ADDRESS = "server.json"
_CREDENTIALS = "credentials.json"
_PRIVATE = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Address and process id of the server of a folder."""

    url: str
    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Keys that `serve` created because none were configured.

    ``key`` is None if another process on the same catalogue issued the tenant's first key. ``operator_key`` is None if
    OPERATOR_KEY is set.
    """

    tenant: str
    tenant_id: str
    key: str | None = None
    operator_key: str | None = None


@contextmanager
def announce_server(data_dir: Path, address: Address) -> Iterator[None]:
    """Write the address of the server of ``data_dir`` to a file while the context is open.

    The file is locked meanwhile. The system releases the lock however the process ends, so an unlocked address is stale,
    even if another process has the same id.
    """
    path = data_dir / _ADDRESS
    descriptor = _write_file(path, asdict(address))
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(descriptor).st_ino:
                path.unlink()
        os.close(descriptor)


def read_address(data_dir: Path) -> Address | None:
    """Return the address of the server that has ``data_dir`` open, or None if no server runs."""
    path = data_dir / _ADDRESS
    return _read_file(path, Address) if _is_locked(path) else None


def credentials_file(data_dir: Path) -> Path:
    """Return the path of the file with the keys of ``data_dir``."""
    return data_dir / _CREDENTIALS


def write_credentials(data_dir: Path, credentials: Credentials) -> None:
    """Store the keys, readable by the owner only."""
    os.close(_write_file(credentials_file(data_dir), asdict(credentials)))


def read_credentials(data_dir: Path) -> Credentials | None:
    """Return the keys stored in ``data_dir``.

    Raises:
        ConfigurationError: the file is damaged.
    """
    path = credentials_file(data_dir)
    if not path.exists():
        return None
    credentials = _read_file(path, Credentials)
    if credentials is None or not (credentials.key or credentials.operator_key):
        raise ConfigurationError(f"{path} is damaged; remove it, and the next 'agentic-rag serve' creates new keys")
    return credentials


def _write_file(path: Path, value: dict[str, Any]) -> int:
    """Replace a file atomically, readable by the owner only. Return its descriptor, which holds the lock."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        os.fchmod(descriptor, _PRIVATE)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(descriptor, json.dumps(value, indent=2).encode())
        Path(temporary).replace(path)
    except BaseException:
        os.close(descriptor)
        Path(temporary).unlink(missing_ok=True)
        raise
    return descriptor


def _read_file(path: Path, kind: type[T]) -> T | None:
    """Return the content of a file as an object of ``kind``. None: it is missing or damaged."""
    try:
        return TypeAdapter(kind).validate_json(path.read_bytes())
    except (OSError, ValueError):
        return None


def _is_locked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
