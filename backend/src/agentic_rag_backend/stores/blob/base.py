"""The blob store: uploaded originals, by key, within a tenant. In a folder, S3 or Google Cloud Storage, through `obstore`."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotSupportedError
from obstore.store import LocalStore, ObjectStore, from_url

from agentic_rag_backend.domain.tenant import TenantId, require_tenant
from agentic_rag_backend.errors import ConfigurationError, InvalidRequest, NotFound, StoreUnavailable
from agentic_rag_backend.stores.local_files import full, full_os_error, require_room
from agentic_rag_backend.stores.ownership import Owner

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")
_ESCAPED = re.compile("(?:_[0-9a-f]{2})+")
_OWNER = re.compile("t_[0-9a-f]{32}")
_LISTED = 1_000
_ASKED_AT_ONCE = 16
_CLOCK_SKEW = timedelta(hours=1)
_SCHEMES = ("file", "s3", "gs")
_MARK = ".deployment.json"
"""The object that identifies the folder's owner. No tenant's folder has this name."""


class BlobStore:
    """Stores blobs by key. Keys come from `blob_key`, never from a file name. `InvalidScope` for anything but a `TenantId`.

    Each tenant has a folder below the URL.
    """

    def __init__(self, url: str) -> None:
        """Use ``file:///folder`` (created if missing), ``s3://bucket/prefix`` or ``gs://bucket/prefix``.

        Raises:
            ConfigurationError: the URL has another form.
        """
        parts = urlsplit(url)
        if parts.scheme not in _SCHEMES or not (parts.netloc or parts.path.strip("/")):
            raise ConfigurationError(f"BLOB_URL must be file:///folder, s3://bucket or gs://bucket; got scheme {parts.scheme!r}")
        self._described = f"{parts.scheme}://{parts.hostname or ''}{parts.path}"  # no credentials
        self._folder: Path | None = None
        self._store: ObjectStore
        try:
            if parts.scheme == "file":
                if parts.netloc not in ("", "localhost"):
                    raise ConfigurationError(
                        f"BLOB_URL names a host, {parts.netloc!r}; a folder is file:///folder, three slashes"
                    )
                self._folder = Path(url2pathname(parts.path))
                self._store = LocalStore(prefix=self._folder, mkdir=True, automatic_cleanup=True)
            else:
                self._store = from_url(url)
        except (BaseError, OSError) as error:
            raise ConfigurationError(f"BLOB_URL cannot be opened: {type(error).__name__}") from error

    async def claim(self, owner: Owner) -> None:
        """Mark the folder or bucket prefix as the deployment's unless it is marked. Idempotent.

        Raises:
            ConfigurationError: it belongs to another deployment, or it holds originals of tenants that are all unknown to the
                catalogue.
            StoreUnavailable: the store does not answer.
        """
        what = f"the blob store at {self._described}"
        way_out = (
            "Give this deployment a folder of its own in BLOB_URL, such as s3://bucket/name, or, if the other one is gone for "
            f"good, write {json.dumps(owner.mark())} into {_MARK} there"
        )
        mark = await self._mark()
        if mark is None:
            await owner.require_adoptable(what, await self.tenants(), way_out=way_out)
            await self._write_mark(json.dumps(owner.mark(), indent=2).encode())
            mark = await self._mark() or {}
        owner.owns(what, mark, way_out=way_out)

    async def _mark(self) -> dict[str, Any] | None:
        try:
            async with _translate_errors(_MARK):
                response = await obstore.get_async(self._store, _MARK)
                mark = json.loads(bytes(await response.bytes_async()))
        except NotFound:
            return None
        except ValueError as error:
            raise ConfigurationError(f"{_MARK} in {self._described} is damaged: {error}; restore it, or remove it") from error
        if not isinstance(mark, dict):
            raise ConfigurationError(
                f"{_MARK} in {self._described} is damaged: it does not contain an object; restore it, or remove it"
            )
        return mark

    async def _write_mark(self, mark: bytes) -> None:
        """Write the mark unless another process has written one."""
        async with _translate_errors():
            try:
                await obstore.put_async(self._store, _MARK, mark, mode="create")
            except AlreadyExistsError:
                return
            except NotSupportedError:  # a store without conditional writes: the last process to mark it owns it
                await obstore.put_async(self._store, _MARK, mark)

    async def put(self, tenant: TenantId, key: str, content: bytes) -> None:
        """Store ``content`` durably. Replace an existing blob under the key."""
        path = _path_of(tenant, key)
        async with _translate_errors():
            await obstore.put_async(self._store, path, content)
            if self._folder is not None:
                # The library renames a finished file into place but does not force it to the disk.
                await asyncio.to_thread(_sync_to_disk, self._folder / path, self._folder)

    async def get(self, tenant: TenantId, key: str) -> bytes:
        """Return the content.

        Raises:
            NotFound: there is no blob under the key.
        """
        path = _path_of(tenant, key)
        async with _translate_errors(key):
            response = await obstore.get_async(self._store, path)
            return bytes(await response.bytes_async())

    async def delete(self, tenant: TenantId, key: str) -> bool:
        """Remove the content. Return whether it existed."""
        path = _path_of(tenant, key)
        try:
            async with _translate_errors(key):
                # Checked first, because object stores report no error when they delete a missing object.
                await obstore.head_async(self._store, path)
                await obstore.delete_async(self._store, path)
        except NotFound:
            return False
        return True

    def keys(self, tenant: TenantId, *, before: datetime) -> AsyncIterator[list[str]]:
        """Stream the keys of blobs stored before an aware time, in any order, in pages of at most 1,000.

        The store may leave out recent ones: those of the last hour if the clock is another machine's. Leftovers of an
        interrupted `put` are removed.
        """
        scope = require_tenant(tenant).value
        if self._folder is not None:
            return _in_pages(_walk_files(self._folder / scope, before.timestamp()))
        return self._list_batches(scope, before - _CLOCK_SKEW)

    async def missing(self, tenant: TenantId, keys: Sequence[str]) -> list[str]:
        """Return the keys among ``keys`` without content. Several are checked concurrently."""
        slots = asyncio.Semaphore(_ASKED_AT_ONCE)

        async def is_missing(key: str) -> bool:
            try:
                async with slots, _translate_errors(key):
                    await obstore.head_async(self._store, _path_of(tenant, key))
            except NotFound:
                return True
            return False

        require_tenant(tenant)
        absent = await asyncio.gather(*(is_missing(key) for key in keys))
        return [key for key, is_absent in zip(keys, absent, strict=True) if is_absent]

    async def tenants(self) -> list[TenantId]:
        """Return every tenant with at least one blob. For the operator's housekeeping only. Other folders are ignored."""
        if self._folder is not None:
            return await asyncio.to_thread(_list_owners, self._folder)
        async with _translate_errors():
            listing = await obstore.list_with_delimiter_async(self._store)
        names = {prefix.rstrip("/").rpartition("/")[2] for prefix in listing["common_prefixes"]}
        return sorted(TenantId(name) for name in names if _OWNER.fullmatch(name))

    async def delete_tenant(self, tenant: TenantId) -> int:
        """Remove all blobs of the tenant. Return their number."""
        removed = 0
        async with _translate_errors():
            async for batch in obstore.list(self._store, require_tenant(tenant).value):
                paths = [item["path"] for item in batch]
                if paths:
                    await obstore.delete_async(self._store, paths)
                removed += len(paths)
        return removed

    async def ping(self) -> None:
        """Raise `StoreUnavailable` unless the store answers."""
        if self._folder is not None and not await asyncio.to_thread(os.access, self._folder, os.R_OK | os.W_OK | os.X_OK):
            raise StoreUnavailable("the blob store's folder is missing or not writable")
        if self._folder is not None:
            await asyncio.to_thread(require_room, self._folder, "the blob store")
        async with _translate_errors():
            async for _ in obstore.list(self._store, "t_", chunk_size=1):
                break

    async def _list_batches(self, scope: str, before: datetime) -> AsyncIterator[list[str]]:
        async with _translate_errors():
            async for batch in obstore.list(self._store, f"{scope}/", chunk_size=_LISTED):
                paths = [item["path"] for item in batch if item["last_modified"] < before]
                if paths:
                    yield [_key_of_path(path[path.index(f"{scope}/") + len(scope) + 1 :]) for path in paths]


def blob_key(document_id: str, version: int) -> str:
    """Return the key of a version's original."""
    return f"{document_id}/{version}"


@asynccontextmanager
async def _translate_errors(key: str | None = None) -> AsyncIterator[None]:
    """Translate the library's errors. Their messages contain paths and buckets, so they are kept in the cause only."""
    try:
        yield
    except FileNotFoundError as error:
        if key is None:
            raise StoreUnavailable("the blob store's folder does not exist") from error
        raise NotFound(f"there is no blob {key!r}") from error
    except (BaseError, OSError) as error:
        # Only the library's message reports a full disk.
        if (isinstance(error, OSError) and full_os_error(error)) or os.strerror(errno.ENOSPC) in str(error):
            raise full("the blob store") from error
        raise StoreUnavailable(f"the blob store did not answer: {type(error).__name__}") from error


def _path_of(tenant: TenantId, key: str) -> str:
    """Return the path of a blob. Letters, digits and dashes stay; other bytes become ``_`` and two hex digits.

    No store then needs to escape a path. Dots are escaped too, so no key leaves its tenant's folder.
    """
    segments = key.split("/")
    if not all(segments):
        raise InvalidRequest(f"a blob key has no empty parts; got {key!r}")
    encoded = ("".join(chr(byte) if byte in _PLAIN else f"_{byte:02x}" for byte in part.encode()) for part in segments)
    return "/".join((require_tenant(tenant).value, *encoded))


def _key_of_path(path: str) -> str:
    """Return the key for a path of `_path_of` without the tenant's folder."""
    return _ESCAPED.sub(lambda match: bytes.fromhex(match[0].replace("_", "")).decode(), path)


async def _in_pages(keys: Iterator[str]) -> AsyncIterator[list[str]]:
    while page := await asyncio.to_thread(list, islice(keys, _LISTED)):
        yield page


def _list_owners(folder: Path) -> list[TenantId]:
    """Return the tenants whose folders contain a file."""
    if not folder.is_dir():
        return []
    names = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and _OWNER.fullmatch(entry.name))
    return [TenantId(name) for name in names if any(files for _, _, files in os.walk(folder / name))]


def _walk_files(folder: Path, before: float) -> Iterator[str]:
    for parent, _, names in os.walk(folder):
        for name in names:
            file = Path(parent, name)
            try:
                if file.stat().st_mtime >= before:
                    continue
                if "#" in name:  # the library's name for an incomplete file. Our keys never contain it
                    file.unlink()
                    continue
            except FileNotFoundError:
                continue  # deleted meanwhile
            yield _key_of_path(file.relative_to(folder).as_posix())


def _sync_to_disk(file: Path, root: Path) -> None:
    """Force a file and its parent folders to the disk."""
    for path in (file, *(parent for parent in file.parents if parent == root or root in parent.parents)):
        try:
            handle = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue  # deleted meanwhile: nothing is left to keep
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
