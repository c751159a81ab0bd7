"""One index build: another process indexes a copy of a shard, and the copy replaces the shard.

1. *copying*: writes wait while a flushed shard's folder is copied; from then on the ids of points written, changed or
   removed are noted (`Shard.begin_journal`).
2. *optimising*: another process builds the index of the copy (`optimization`); this one continues to serve.
3. *swapping*: the copy is opened; the noted points are copied from the shard in use, or removed, until few are left;
   writes wait for the last of them; one record on disk (`folder.write_pointer`) and one assignment put the copy into effect.

Until that record is replaced, the shard in use is complete; after it, the copy is. Other folders on disk are leftovers,
removed here or at the next opening.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from qdrant_edge import CountRequest, EdgeShard, Point, UpdateOperation

from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.memory import give_back
from agentic_rag_backend.stores.vector.base import Collection, IndexState
from agentic_rag_backend.stores.vector.edge.edge_engine import Layout, engine_errors, sync
from agentic_rag_backend.stores.vector.edge.folder import InUse, in_use, new_folder, write_pointer
from agentic_rag_backend.stores.vector.edge.shard import Shard
from agentic_rag_backend.telemetry.logs import get_logger

_REPLAYED_POINTS = 64
"""About 10 ms of work, during which the event loop is blocked."""
_REMAINDER = 256
"""Changed points that are copied while writers wait."""
_ROOM = 3
"""Free disk required, as a multiple of the shard's size: the copy, the index segments, and a reserve."""
_STDERR_CHARACTERS = 300
_ZEROS = bytes(256 * 1024)
_log = get_logger(__name__)


class Replacement:
    """A replacement of one collection's shard. Used once.

    Args:
        shards: all open shards of the folder; the shard of ``collection`` is replaced.
        layout: the layout for opening the copy.
        on_state: called at the start of each phase.
    """

    def __init__(
        self,
        shards: Mapping[Collection, Shard],
        collection: Collection,
        layout: Layout,
        *,
        on_state: Callable[[IndexState], None],
    ) -> None:
        self._shards = shards
        self._collection = collection
        self._shard = shards[collection]
        self._layout = layout
        self._on_state = on_state
        self._home = self._shard.folder.parent
        self._target = new_folder(self._home, collection)
        self.longest_s = 0.0
        """The longest time so far during which the event loop was blocked."""

    async def carry_out(self, *, time_limit_s: float) -> None:
        """Run all phases, or leave everything unchanged on failure or cancellation.

        Raises:
            StoreUnavailable, OSError: the cause of the failure.
        """
        before = self._shard.folder
        try:
            self._on_state(IndexState.COPYING)
            await self._copy()
            self._on_state(IndexState.OPTIMISING)
            await _optimize_copy(self._target, time_limit_s)
            self._on_state(IndexState.SWAPPING)
            replaced = await self._swap()
        finally:
            self._shard.end_journal()
            if self._shard.folder == before:
                await asyncio.to_thread(shutil.rmtree, self._target, ignore_errors=True)
        await self._remove(replaced, before)

    async def _copy(self) -> None:
        # Nothing in the folder changes while writers wait.
        async with self._shard.hold_writers():
            size, free = await asyncio.to_thread(_size_and_room, self._shard.folder)
            if free < _ROOM * size:
                raise StoreUnavailable(
                    f"the disk has {free >> 20:,} MiB free; building an index needs {_ROOM * size >> 20:,} MiB"
                )
            with self._holding():
                self._shard.flush()
            self._shard.begin_journal()
            await _copy_points(self._shard.folder, self._target)

    async def _swap(self) -> EdgeShard:
        with self._holding(), engine_errors(f"opening {self._target}"):
            engine = EdgeShard.load(str(self._target), self._layout.config())
        try:
            replayed = await self._catch_up(engine, down_to=_REMAINDER)
            with self._holding(), engine_errors("flushing"):
                engine.flush()
            async with self._shard.hold_writers():
                replayed += await self._catch_up(engine, down_to=0)
                # One step of the event loop: readers and writers see no intermediate state.
                with self._holding():
                    return self._activate(engine, replayed)
        finally:
            if self._shard.engine is not engine:
                engine.close()

    def _activate(self, engine: EdgeShard, replayed: int) -> EdgeShard:
        with engine_errors("flushing"):
            engine.flush()
        points, expected = _count_points(engine), _count_points(self._shard.engine)
        if points != expected:
            raise StoreUnavailable(f"the new shard holds {points:,} points, the one in use {expected:,}")
        write_pointer(self._home, {**in_use(self._shards), self._collection: InUse(self._target.name, points, replayed)})
        return self._shard.replace(engine, self._target, written=replayed)

    async def _catch_up(self, engine: EdgeShard, *, down_to: int) -> int:
        """Copy noted changes to ``engine`` until at most ``down_to`` ids are left; return the number of copied points."""
        replayed = 0
        # Writes may arrive as fast as this loop copies them, until writers are held.
        patience = 16 + 2 * self._shard.journalled // _REPLAYED_POINTS
        while self._shard.journalled > down_to and (down_to == 0 or patience > 0):
            if self._shard.overflowing:
                raise StoreUnavailable(f"more than {self._shard.journalled:,} points changed while the index was built")
            patience -= 1
            with self._holding():
                replayed += replay(self._shard, engine, self._shard.take(_REPLAYED_POINTS))
            await asyncio.sleep(0)
        return replayed

    async def _remove(self, engine: EdgeShard, folder: Path) -> None:
        try:
            with self._holding(), engine_errors("closing"):
                engine.close()
            await asyncio.to_thread(give_back)
            # Only after the record that releases this folder is safe from a power loss.
            await asyncio.to_thread(sync, self._home)
        except (StoreUnavailable, OSError) as error:
            _log.warning("vector_index_leftover", folder=str(folder), reason=str(error))
        else:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    @contextmanager
    def _holding(self) -> Iterator[None]:
        """Measure how long the event loop is blocked."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.longest_s = max(self.longest_s, time.perf_counter() - started)


def replay(shard: Shard, engine: EdgeShard, ids: list[str]) -> int:
    """Make the points ``ids`` of ``engine`` equal to the points in ``shard``; return the number that exist."""
    with engine_errors("copying points"):
        records = shard.engine.retrieve(list(ids), with_payload=True, with_vector=True)
        if records:
            engine.update(
                UpdateOperation.upsert_points([Point(point.id, point.vector or {}, point.payload) for point in records])
            )
        removed_ids = set(ids) - {str(record.id) for record in records}
        if removed_ids:
            engine.update(UpdateOperation.delete_points(list(removed_ids)))
    return len(records)


async def _optimize_copy(folder: Path, time_limit_s: float) -> None:
    """Have another process build the index of the shard in ``folder``; it is killed at the limit and when cancelled."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        "agentic_rag_backend.stores.vector.edge.optimization",
        str(folder),
        str(os.getpid()),
        str(int(time_limit_s) + 60),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        # Ctrl-C in the terminal is for the parent, which then ends the child. Not a session: see `priority`.
        process_group=0,
    )
    try:
        async with asyncio.timeout(time_limit_s):
            _, stderr = await process.communicate()
    except TimeoutError:
        raise StoreUnavailable(f"building the index took longer than {time_limit_s:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        words = stderr.decode("utf-8", "replace").strip()[-_STDERR_CHARACTERS:]
        raise StoreUnavailable(f"the process building the index ended with {process.returncode}: {words or 'no word'}")


def _count_points(engine: EdgeShard) -> int:
    with engine_errors("counting"):
        return engine.count(CountRequest(exact=True))


def _size_and_room(folder: Path) -> tuple[int, int]:
    # Allocated blocks, not file lengths: the engine preallocates its files.
    size = sum(path.stat().st_blocks * 512 for path in folder.rglob("*"))
    return size, shutil.disk_usage(folder).free


async def _copy_points(source: Path, target: Path) -> None:
    """Copy a folder in a thread; when cancelled, wait until the copying has stopped."""
    stopped = threading.Event()

    def copy(origin: str, copied: str) -> str:
        if stopped.is_set():
            raise OSError("stopped")
        _copy_file(Path(origin), Path(copied))
        return copied

    copying = asyncio.create_task(asyncio.to_thread(shutil.copytree, source, target, copy_function=copy))
    try:
        await asyncio.shield(copying)
    except asyncio.CancelledError:
        stopped.set()
        with contextlib.suppress(OSError):
            await copying
        raise


def _copy_file(source: Path, target: Path) -> None:
    """Copy a file and leave holes for its zero blocks."""
    with source.open("rb", buffering=0) as origin, target.open("wb", buffering=0) as copy:
        while block := origin.read(len(_ZEROS)):
            if block == _ZEROS[: len(block)]:
                copy.seek(len(block), os.SEEK_CUR)
                continue
            while block:
                block = block[copy.write(block) :]
        copy.truncate(copy.tell())
