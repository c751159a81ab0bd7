"""The embedded store's folder: one owner at a time, one subfolder per fingerprint, one shard in use a collection.

::

    <folder>/.lock
    <folder>/<hash of the fingerprint>/fingerprint.json
                                       shards.json          each collection's folder below; without it: its name
                                       chunks/  nodes/      as made
                                       chunks.<8 hex>/      prepared by index upkeep
    <folder>/<hash of another fingerprint>.building/        under construction (`rebuilding`)

A subfolder is made under another name and renamed when complete. A shard replaces another by the atomic
replacement of ``shards.json``. So a killed process leaves either the previous state or the new one.
The next opening removes shards that ``shards.json`` does not name.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from qdrant_edge import CountRequest, EdgeShard, UpdateOperation

from agentic_rag_backend.errors import ReindexRequired, StorageFull, StoreDamaged, StoreLocked, StoreUnavailable
from agentic_rag_backend.stores.vector.base import Collection
from agentic_rag_backend.stores.vector.edge.edge_engine import Layout, engine_errors, field_indexes, sync
from agentic_rag_backend.stores.vector.edge.shard import Shard

_RECORD = "fingerprint.json"
_POINTER = "shards.json"
_BUILDING = ".building"


@dataclass(frozen=True, slots=True)
class InUse:
    """The folder of a collection in a home, and the number of points written since its index was built.

    ``written`` was recorded when there were ``points``. Without a record, no index was ever built.
    """

    name: str
    points: int = 0
    written: int = 0


def lock(folder: Path) -> int:
    """Lock the folder, creating it if necessary. Return the lock's file descriptor. Closing it releases the folder.

    Raises:
        StoreLocked: it is already open, here or in another process.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        owner = os.read(descriptor, 32).decode("ascii", "replace").strip()
        os.close(descriptor)
        raise StoreLocked(
            f"the vector store in {folder} is in use by process {owner or 'unknown'}; one process at a time can open it"
        ) from error
    os.ftruncate(descriptor, 0)
    os.write(descriptor, str(os.getpid()).encode())
    return descriptor


def open_shards(folder: Path, fingerprint: str, layout: Layout, *, building: bool = False) -> dict[Collection, Shard]:
    """Open the collections of ``fingerprint`` and create missing ones. The caller holds the lock.

    Args:
        building: open the collections under construction instead of the collections in use.

    Raises:
        ReindexRequired: the folder holds points of another fingerprint.
        StoreUnavailable: the files cannot be read.
    """
    home = _home_of(folder, fingerprint)
    if building:
        home = home.with_suffix(_BUILDING)
    else:
        _refuse_other_fingerprints(folder, home, fingerprint)
    if not home.exists():
        _make_shard(home, fingerprint, layout)
    places = read_pointer(home)
    _remove_leftovers(home, places)
    shards: dict[Collection, Shard] = {}
    try:
        for collection, location in places.items():
            path = home / location.name
            engine = _load_shard(path, layout)
            shard = shards[collection] = Shard(engine, path)
            # After a kill, the record is older than the last points.
            shard.written = location.written + max(0, shard.points - location.points)
    except StoreUnavailable:
        for shard in shards.values():
            shard.engine.close()
        raise
    return shards


def _load_shard(path: Path, layout: Layout) -> EdgeShard:
    try:
        with engine_errors("opening"):
            return EdgeShard.load(str(path), layout.config())
    except StorageFull:
        raise
    except StoreUnavailable as error:
        raise _damage_error(path, error.message) from error


def activate_collections(folder: Path, fingerprint: str) -> None:
    """Put the collections built for ``fingerprint`` into use in one step and remove the others. Repeatable.

    The caller holds the lock.
    """
    home = _home_of(folder, fingerprint)
    built = home.with_suffix(_BUILDING)
    if built.exists():
        other_names = [record.parent.name for record in folder.glob(f"*/{_RECORD}") if not record.parent.suffix]
        record = {"fingerprint": fingerprint, "replaces": sorted(set(other_names) - {home.name})}
        unfinished = built / f"{_RECORD}.new"
        unfinished.write_text(json.dumps(record, indent=2) + "\n")
        sync(unfinished)
        unfinished.replace(built / _RECORD)
        shutil.rmtree(home, ignore_errors=True)  # same fingerprint, so it is empty: otherwise it would be in use
        built.rename(home)
        sync(folder)
    _remove_replaced_folders(folder, home)


def _home_of(folder: Path, fingerprint: str) -> Path:
    return folder / hashlib.sha256(fingerprint.encode()).hexdigest()[:16]


def _read_record(file: Path) -> dict[str, Any]:
    """Return the content of a ``fingerprint.json``.

    Raises:
        StoreDamaged: the file is not valid.
    """
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:  # of JSON, or of text
        raise _damage_error(file, str(error)) from error
    if not isinstance(record, dict) or not isinstance(record.get("fingerprint"), str):
        raise _damage_error(file, "it names no fingerprint")
    return record


def _damage_error(path: Path, reason: str) -> StoreDamaged:
    home = next((parent for parent in path.parents if parent.parent.name == "vectors"), path.parent)
    return StoreDamaged(
        f"{path} is damaged: {reason}. Restore it from a backup, or stop the server, remove {home} and run "
        "'agentic-rag reindex', which writes the vectors again"
    )


def _remove_replaced_folders(folder: Path, home: Path) -> None:
    """Remove the folders that the record in ``home`` lists as replaced."""
    if not (home / _RECORD).exists():
        return
    for name in _read_record(home / _RECORD).get("replaces", ()):
        if re.fullmatch("[0-9a-f]{16}", str(name)):
            shutil.rmtree(folder / name, ignore_errors=True)


def read_pointer(home: Path) -> dict[Collection, InUse]:
    """Return the folders in use in ``home``.

    Raises:
        StoreUnavailable: ``shards.json`` is not valid.
    """
    try:
        pointer = json.loads((home / _POINTER).read_text())
        return {collection: InUse(**pointer[collection]) for collection in Collection}
    except FileNotFoundError:
        return {collection: InUse(str(collection)) for collection in Collection}
    except (ValueError, KeyError, TypeError) as error:
        raise _damage_error(home / _POINTER, repr(error)) from error


def write_pointer(home: Path, places: Mapping[Collection, InUse]) -> None:
    """Put ``places`` into effect at once: before it returns, or not at all if it raises OSError.

    It survives a power loss after `sync` of ``home``.
    """
    pointer = {collection.value: asdict(location) for collection, location in places.items()}
    unfinished = home / f"{_POINTER}.new"
    unfinished.write_text(json.dumps(pointer, indent=2) + "\n")
    sync(unfinished)
    unfinished.replace(home / _POINTER)


def in_use(shards: Mapping[Collection, Shard]) -> dict[Collection, InUse]:
    """Describe the open shards."""
    return {name: InUse(shard.folder.name, shard.points, shard.written) for name, shard in shards.items()}


def close_shards(shards: Mapping[Collection, Shard]) -> None:
    """Flush and close the shards, and record the number of points written since an index was built."""
    (home,) = {shard.folder.parent for shard in shards.values()}
    if (home / _POINTER).exists():
        # If it is lost, the next index is only built too early or too late.
        with suppress(OSError):
            write_pointer(home, in_use(shards))
    for shard in shards.values():
        with engine_errors("closing"):
            shard.flush()
            shard.engine.close()


def new_folder(home: Path, collection: Collection) -> Path:
    """Return a path for another shard of ``collection``. The name is random, so leftovers of earlier shards never collide."""
    return home / f"{collection.value}.{secrets.token_hex(4)}"


def collection_of(folder: Path) -> Collection:
    """Return the collection of a shard's folder in a home."""
    return Collection(folder.name.partition(".")[0])


def _remove_leftovers(home: Path, places: Mapping[Collection, InUse]) -> None:
    names_in_use = {location.name for location in places.values()}
    for path in home.iterdir():
        if path.is_dir() and path.name not in names_in_use:
            shutil.rmtree(path, ignore_errors=True)


def _refuse_other_fingerprints(folder: Path, home: Path, fingerprint: str) -> None:
    _remove_replaced_folders(folder, home)
    for record in sorted(folder.glob(f"*/{_RECORD}")):
        if record.parent == home or record.parent.suffix or _holds_nothing(record.parent):
            continue
        fingerprint_on_disk = _read_record(record).get("fingerprint")
        raise ReindexRequired(
            f"the vectors in {folder} were made with [{fingerprint_on_disk}], but [{fingerprint}] is configured: "
            "run 'agentic-rag reindex', or configure what they were made with",
            made_with=str(fingerprint_on_disk),
        )


def _holds_nothing(home: Path) -> bool:
    for location in read_pointer(home).values():
        with engine_errors(f"opening {home / location.name}"):
            shard = EdgeShard.load(str(home / location.name))
            count = shard.count(CountRequest(exact=True))
            shard.close()
        if count:
            return False
    return True


def _make_shard(home: Path, fingerprint: str, layout: Layout) -> None:
    unfinished = home.with_suffix(".new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    (unfinished / _RECORD).write_text(json.dumps({"fingerprint": fingerprint}, indent=2) + "\n")
    for collection in Collection:
        with engine_errors(f"making {home / collection}"):
            (unfinished / collection).mkdir()
            shard = EdgeShard.create(str(unfinished / collection), layout.config(new=True))
            for field, schema in field_indexes(collection).items():
                shard.update(UpdateOperation.create_field_index(field, schema))
            shard.flush()
            shard.close()
    unfinished.rename(home)
