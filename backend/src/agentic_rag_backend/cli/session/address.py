"""Two files in DATA_DIR that lead the command line to a running server: its address, and the keys made at first start."""

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
    """Where the server of a folder listens, and its process."""

    url: str
    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """The keys that `serve` made because nobody had given any.

    ``key`` is None where another process on the same catalogue issued the tenant's first one, ``operator_key`` where
    OPERATOR_KEY was given instead.
    """

    tenant: str
    tenant_id: str
    key: str | None
    operator_key: str | None = None


@contextmanager
def announced(data_dir: Path, address: Address) -> Iterator[None]:
    """Say where the server of ``data_dir`` listens, for as long as this is held.

    The file is locked meanwhile, and the system lets go of the lock whatever ends the process: an address that nobody
    holds is stale, also where another process has its number by now.
    """
    path = data_dir / _ADDRESS
    descriptor = _write(path, asdict(address))
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(descriptor).st_ino:
                path.unlink()
        os.close(descriptor)


def read_address(data_dir: Path) -> Address | None:
    """Return the address of the server that has ``data_dir`` open, None where there is none or the file was left behind."""
    path = data_dir / _ADDRESS
    if not _held(path):
        return None
    found = _read(path)
    if found is None or not isinstance(found.get("url"), str) or not isinstance(found.get("pid"), int):
        return None
    return Address(url=found["url"], pid=found["pid"])


def write_credentials(data_dir: Path, credentials: Credentials) -> None:
    """Keep the keys, readable by the owner only."""
    os.close(_write(data_dir / _CREDENTIALS, asdict(credentials)))


def read_credentials(data_dir: Path) -> Credentials | None:
    """Return the keys kept in ``data_dir``.

    Raises:
        ConfigurationError: the file is there and is not what `write_credentials` wrote.
    """
    path = data_dir / _CREDENTIALS
    if not path.exists():
        return None
    found = _read(path)
    names = ("tenant", "tenant_id")
    keys = ("key", "operator_key")
    if (
        found is None
        or not all(isinstance(found.get(name), str) for name in names)
        or not all(isinstance(found.get(name), str | None) for name in keys)
        or not any(found.get(name) for name in keys)
    ):
        raise ConfigurationError(f"{path} is damaged; remove it, and the next 'agentic-rag serve' makes new keys")
    return Credentials(**{name: found.get(name) for name in (*names, *keys)})  # type: ignore[arg-type]


def _write(path: Path, value: dict[str, Any]) -> int:
    """Replace a file as a whole, private from its first byte on; return its descriptor, which holds its lock."""
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


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _held(path: Path) -> bool:
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
