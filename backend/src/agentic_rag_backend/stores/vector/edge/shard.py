"""One collection's shard, which another can replace while it is in use.

Reads go to `Shard.engine` and are done before anything else of this event loop runs. Writes go through the shard: they
wait at `writable` while files are copied, and are journalled while a copy is being prepared.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from qdrant_edge import CountRequest, EdgeShard, Point, ScrollRequest, UpdateOperation
from qdrant_edge import Filter as EngineFilter

from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.stores.local_files import require_room
from agentic_rag_backend.stores.vector.edge.edge_engine import engine_errors, sync_tree

FLUSHED_AFTER = 5_000
"""Points written, changed or removed after which a flush makes all files durable, not only the log.

A shard that was not closed reads the unflushed part of its log again at opening, some 10,000 points a second; the log takes
1 to 3 kB for each.
"""
_LOG = "wal"
_LEAST_FREE_BYTES = 64 * 1024 * 1024
"""Twice the size of a log segment, which the engine allocates as a whole."""
_PAGE_POINTS = 10_000
_MAX_JOURNAL = 500_000
"""About 70 MB. If more points change during an upkeep run, the run is given up."""


class Shard:
    """The points of a collection.

    Args:
        engine: open on ``folder``.
        written: points written since the index was built, rewritten points counted again.
    """

    def __init__(self, engine: EdgeShard, folder: Path, *, write_count: int = 0) -> None:
        self.engine = engine
        self.folder = folder
        self.written = write_count
        self.on_write: Callable[[], None] | None = None
        self._open = asyncio.Event()
        self._open.set()
        self._journal: set[str] | None = None
        self._unflushed = 0

    @property
    def points(self) -> int:
        """Number of points."""
        with engine_errors("counting"):
            return self.engine.info().points_count

    def count(self, filter: EngineFilter) -> int:
        """Count points exactly."""
        with engine_errors("counting"):
            return self.engine.count(CountRequest(exact=True, filter=filter))

    async def writable(self) -> None:
        """Wait until writing is allowed. It stays allowed until the caller's next await."""
        while not self._open.is_set():
            await self._open.wait()

    @asynccontextmanager
    async def hold_writers(self) -> AsyncIterator[None]:
        """Make writers wait; readers continue."""
        self._open.clear()
        try:
            yield
        finally:
            self._open.set()

    def upsert(self, points: Sequence[Point]) -> None:
        """Write ``points`` completely."""
        self._note(str(point.id) for point in points)
        self._update(UpdateOperation.upsert_points(list(points)), len(points))

    def set_payload(self, chosen: EngineFilter, payload: Mapping[str, Any]) -> None:
        """Replace payload fields of the selected points. The engine moves these points out of the index."""
        self._update(UpdateOperation.set_payload_by_filter(chosen, dict(payload)), self._note_write(chosen))

    def delete(self, doomed: EngineFilter) -> int:
        """Remove points and return how many existed."""
        existing = self._note_write(doomed)
        if existing:
            self._update(UpdateOperation.delete_points_by_filter(doomed), 0, removed=existing)
        return existing

    async def secure(self) -> None:
        """Make earlier writes durable against a power loss, at least in the engine's log, which is read again at opening.

        A thread writes the log to the disk. A flush writes every file and blocks the process for 10 to 250 ms, so it happens
        only after many writes. Files may then hold a part of later points; that does no harm, because the log repeats them.
        """
        if self._unflushed >= FLUSHED_AFTER:
            self.flush()
            return
        while True:
            folder = self.folder
            try:
                await asyncio.to_thread(sync_tree, folder / _LOG)
            except OSError as error:
                if folder != self.folder:  # another shard, already flushed, has replaced this one
                    return
                if not isinstance(error, FileNotFoundError) or not (folder / _LOG).exists():
                    raise StoreUnavailable(f"the vector store's log could not be written to the disk: {error}") from error
                # A log segment that was removed since it was listed.
            else:
                return

    def flush(self) -> None:
        """Make earlier writes durable against a power loss, in all files."""
        unflushed, self._unflushed = self._unflushed, 0
        try:
            with engine_errors("flushing"):
                self.engine.flush()
        except BaseException:
            self._unflushed = unflushed
            raise

    # --- for index upkeep

    def begin_journal(self) -> None:
        """Start to record the ids of points that are written, changed or removed."""
        self._journal = set()

    def end_journal(self) -> None:
        """Stop recording."""
        self._journal = None

    @property
    def journalled(self) -> int:
        """Number of recorded ids that were not taken."""
        return len(self._journal or ())

    @property
    def overflowing(self) -> bool:
        """Whether the journal is full. Further ids were not recorded."""
        return self.journalled > _MAX_JOURNAL

    def take(self, limit: int) -> list[str]:
        """Remove and return up to ``limit`` recorded ids."""
        journal = self._journal or set()
        return [journal.pop() for _ in range(min(limit, len(journal)))]

    def replace(self, engine: EdgeShard, folder: Path, *, written: int) -> EdgeShard:
        """Replace the engine by ``engine``, which holds the same points. Return the previous engine."""
        before, self.engine = self.engine, engine
        self.folder = folder
        self.written = written
        self._unflushed = 0
        return before

    def _note_write(self, chosen: EngineFilter) -> int:
        if self._journal is None:
            return self.count(chosen)
        ids = self._ids(chosen)
        self._note(ids)
        return len(ids)

    def _ids(self, chosen: EngineFilter) -> list[str]:
        ids: list[str] = []
        offset = None
        while True:
            with engine_errors("listing"):
                request = ScrollRequest(offset=offset, limit=_PAGE_POINTS, filter=chosen, with_payload=False)
                records, offset = self.engine.scroll(request)
            ids.extend(str(record.id) for record in records)
            if offset is None:
                return ids

    def _note(self, ids: Iterable[str]) -> None:
        # Before the write, so that points of a failed write are copied again too.
        if self._journal is not None and not self.overflowing:
            self._journal.update(ids)

    def require_room(self) -> None:
        """Raise `StorageFull` if the engine has no room. It writes through memory maps, so a full disk may kill the process."""
        require_room(self.folder, "the vector store", _LEAST_FREE_BYTES)

    def _update(self, operation: UpdateOperation, write_count: int, *, removed: int = 0) -> None:
        self.require_room()
        self._unflushed += write_count + removed
        with engine_errors("writing"):
            self.engine.update(operation)
        self.written += write_count
        if self.on_write is not None:
            self.on_write()
