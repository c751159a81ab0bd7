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
from typing import Any

from agentic_rag_backend.errors import ConfigurationError

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
    key: str | None
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
    if not _is_locked(path):
        return None
    data = _read_file(path)
    if data is None or not isinstance(data.get("url"), str) or not isinstance(data.get("pid"), int):
        return None
    return Address(url=data["url"], pid=data["pid"])


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
    data = _read_file(path)
    names = ("tenant", "tenant_id")
    keys = ("key", "operator_key")
    if (
        data is None
        or not all(isinstance(data.get(name), str) for name in names)
        or not all(isinstance(data.get(name), str | None) for name in keys)
        or not any(data.get(name) for name in keys)
    ):
        raise ConfigurationError(f"{path} is damaged; remove it, and the next 'agentic-rag serve' creates new keys")
    return Credentials(**{name: data.get(name) for name in (*names, *keys)})  # type: ignore[arg-type]


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


def _read_file(path: Path) -> dict[str, Any] | None:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None


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
