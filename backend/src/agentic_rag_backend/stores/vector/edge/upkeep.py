"""Index upkeep: builds a search graph for tenants too big to be scanned, after enough writes (`replacement`).

It also moves points out of memory: the engine holds points outside the index in memory, 2 to 3 kB each, and reads indexed
points from files.

Upkeep checks after writes, at most every few seconds, and once after opening. A failed run changes nothing; the pause before
the next run doubles each time.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from qdrant_edge import FacetRequest, HasVectorCondition
from qdrant_edge import Filter as EngineFilter

from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.stores.vector.base import Collection, IndexState, IndexStatus, IndexUpkeepRun
from agentic_rag_backend.stores.vector.edge.edge_engine import Layout, engine_errors
from agentic_rag_backend.stores.vector.edge.replacement import Replacement
from agentic_rag_backend.stores.vector.edge.shard import Shard
from agentic_rag_backend.stores.vector.points import DENSE
from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepOptions:
    """Options that determine when an index is built.

    Args:
        min_points: number of points in one scope above which a graph replaces scanning; 0 never builds.
        unindexed_share: share of unindexed points of a collection, in (0, 1], above which a build is worthwhile.
        most_held: number of unindexed points above which the index is built to free memory, even if every scope is small.
        first_look_s: seconds from opening to the first check; commands that end sooner never check.
        pause_s: minimum seconds between checks.
        retry_s: seconds until a failed run is retried; doubles with each failure up to ``max_retry_s``.
        time_limit_s: maximum seconds of a build.
    """

    min_points: int = 20_000
    unindexed_share: float = 0.2
    most_held: int = 50_000
    first_look_s: float = 15.0
    pause_s: float = 10.0
    retry_s: float = 60.0
    max_retry_s: float = 6 * 3600.0
    time_limit_s: float = 3 * 3600.0


NO_UPKEEP = UpkeepOptions(min_points=0)


def index_due(points: int, write_count: int, largest_scope: int, options: UpkeepOptions) -> bool:
    """Return whether a build is worthwhile.

    It is if many points are not indexed, and either a tenant is too big to be scanned or too many points are in memory.
    """
    if options.min_points == 0 or write_count <= options.unindexed_share * points:
        return False
    return largest_scope > options.min_points or min(write_count, points) > options.most_held


def retry_pause(failures: int, options: UpkeepOptions) -> float:
    """Return the seconds to wait after ``failures`` ≥ 1 in a row."""
    return float(min(options.retry_s * 2.0 ** min(failures - 1, 30), options.max_retry_s))


class IndexUpkeep:
    """Maintains the indexes of one open store, one collection at a time.

    Args:
        layout: the layout that the shards were opened with.
    """

    def __init__(self, shards: Mapping[Collection, Shard], layout: Layout, options: UpkeepOptions) -> None:
        self._shards = shards
        self.layout = layout
        self._options = options
        self._states = dict.fromkeys(shards, IndexState.IDLE)
        self._last: dict[Collection, IndexUpkeepRun] = {}
        self._failures = dict.fromkeys(shards, 0)
        self._not_before = dict.fromkeys(shards, 0.0)
        self._written = asyncio.Event()
        self._one = asyncio.Lock()
        self._watching: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start checking in the background."""
        if self._options.min_points == 0:
            return
        for shard in self._shards.values():
            shard.on_write = self._written.set
        self._watching = asyncio.create_task(self._watch(), name="index upkeep")

    async def stop(self) -> None:
        """Abort a run in progress without changes, and stop checking."""
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching

    def status(self) -> list[IndexStatus]:
        """Describe every collection."""
        return [self._status(collection, shard) for collection, shard in self._shards.items()]

    def due(self, collection: Collection) -> bool:
        """Return whether a run is due. Costs .1 ms while few points were written."""
        shard = self._shards[collection]
        points = shard.points
        # No scope is larger than the whole collection: most checks end here.
        if not index_due(points, shard.written, points, self._options):
            return False
        return index_due(points, shard.written, _largest_scope(shard), self._options)

    async def run(self, collection: Collection) -> IndexUpkeepRun:
        """Build and replace now, even if not due. A failure is logged, shown in the status, and returned."""

        def enter(state: IndexState) -> None:
            self._states[collection] = state

        async with self._one:
            shard, started = self._shards[collection], time.perf_counter()
            reason = f"{min(shard.written, shard.points):,} of {shard.points:,} points were not in the index"
            replacement = Replacement(self._shards, collection, self.layout, on_state=enter)
            failure = None
            try:
                await replacement.carry_out(time_limit_s=self._options.time_limit_s)
            except (StoreUnavailable, OSError) as error:
                failure = str(error)
            finally:
                enter(IndexState.IDLE)
            run = IndexUpkeepRun(
                finished_at=datetime.now(UTC),
                seconds=time.perf_counter() - started,
                gap_s=replacement.longest_s,
                reason=reason,
                failure=failure,
            )
            self._conclude(collection, run)
            return run

    async def _watch(self) -> None:
        await asyncio.sleep(self._options.first_look_s)
        while True:
            self._written.clear()
            for collection in self._shards:
                try:
                    if time.monotonic() >= self._not_before[collection] and self.due(collection):
                        await self.run(collection)
                except StoreUnavailable as error:
                    _log.warning("vector_index_look_failed", collection=collection.value, reason=error.message)
            await asyncio.sleep(self._options.pause_s)
            if not any(self._failures.values()):
                await self._written.wait()

    def _conclude(self, collection: Collection, run: IndexUpkeepRun) -> None:
        self._last[collection] = run
        fields = {"collection": collection.value, "seconds": round(run.seconds, 3), "gap_s": round(run.gap_s, 3)}
        if run.failure is None:
            self._failures[collection] = 0
            _log.info("vector_index_built", reason=run.reason, **fields)
            return
        self._failures[collection] += 1
        pause_s = retry_pause(self._failures[collection], self._options)
        self._not_before[collection] = time.monotonic() + pause_s
        self._states[collection] = IndexState.FAILED
        _log.warning("vector_index_failed", failure=run.failure, retry_in_s=pause_s, **fields)

    def _status(self, collection: Collection, shard: Shard) -> IndexStatus:
        points = shard.points
        return IndexStatus(
            collection=collection,
            points=points,
            indexed_share=max(0.0, 1 - shard.written / points) if points else 0.0,
            state=self._states[collection],
            last=self._last.get(collection),
        )


def _largest_scope(shard: Shard) -> int:
    """Return the approximate number of points with a dense vector in the largest scope."""
    request = FacetRequest(key="scope", limit=1, filter=EngineFilter(must=[HasVectorCondition(DENSE)]))
    with engine_errors("counting"):
        hits = shard.engine.facet(request).hits
    return hits[0].count if hits else 0
