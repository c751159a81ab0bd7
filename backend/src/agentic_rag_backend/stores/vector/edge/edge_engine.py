"""Collections and filters in the embedded engine's types, translation of its errors, and writes that reach the disk.

Some comparisons need the distinct values of a field. The first such comparison in a tenant reads them from the store (10 µs a
point, .2 s at 20,000) and keeps them in memory (`Vocabulary`). This is safe: no other process writes to an embedded store.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from qdrant_edge import (
    Distance,
    EdgeConfig,
    EdgeOptimizersConfig,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    FieldCondition,
    HasIdCondition,
    HnswIndexConfig,
    IntegerIndexParams,
    KeywordIndexParams,
    MatchAny,
    MatchValue,
    Memory,
    Modifier,
    VectorStorageDatatype,
)
from qdrant_edge import Filter as EngineFilter

from agentic_rag_backend.domain.filters import Filter
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.stores.local_files import full
from agentic_rag_backend.stores.vector.base import Collection, NodeKind
from agentic_rag_backend.stores.vector.conditions import TAGS, All, Condition, FieldValues, Identified, Some, Tagged, select
from agentic_rag_backend.stores.vector.points import DENSE, SPARSE, point_id

_BYTES_PER_NUMBER = 4
_DEFAULT_SCANNED_POINTS = 20_000


@contextmanager
def engine_errors(doing: str) -> Iterator[None]:
    """Translate the engine's errors, which have no class of their own, to `StoreUnavailable`."""
    try:
        yield
    except Exception as error:
        if type(error) is Exception:
            if os.strerror(errno.ENOSPC) in str(error):
                raise full("the vector store") from error
            raise StoreUnavailable(f"the vector store failed {doing}: {error}") from error
        raise


@dataclass(frozen=True, slots=True)
class Layout:
    """Length of the dense vectors, and the number of points per scope up to which a search scans instead of walking a graph."""

    dimensions: int
    scanned_points: int = _DEFAULT_SCANNED_POINTS

    def config(self, *, new: bool = False) -> EdgeConfig:
        """Return the engine's configuration of a collection. Index settings take effect when the index is built.

        Args:
            new: whether the collection is created now. That fixes where its dense vectors are stored until an index is built.
        """
        scanned_kb = -(-self.scanned_points * self.dimensions * _BYTES_PER_NUMBER // 1024)
        # The engine reads the index from files, so the system can evict its pages: .2 kB per point stay in memory instead of 1.4.
        # Points written since the last build are always in memory: 2 to 3 kB each.
        return EdgeConfig(
            id_tracker_memory=Memory.Cold,
            vectors={
                DENSE: EdgeVectorParams(
                    size=self.dimensions,
                    distance=Distance.Cosine,
                    datatype=VectorStorageDatatype.Float32,
                    # Cached would read a whole 32 MB file at each opening and keep it in memory, even for few vectors.
                    memory=Memory.Cold if new else Memory.Cached,
                ),
            },
            sparse_vectors={SPARSE: EdgeSparseVectorParams(modifier=Modifier.Idf, memory=Memory.Cold)},
            # No graph over all points, but one per tenant, so that links never lead into another tenant. A scope of up to
            # full_scan_threshold has no graph and is scanned, which is exact.
            hnsw_config=HnswIndexConfig(m=0, payload_m=16, ef_construct=128, full_scan_threshold=max(1, scanned_kb)),
            # All points in one segment, with one graph per scope. `IndexUpkeep` decides when building it is worthwhile.
            optimizers=EdgeOptimizersConfig(default_segment_number=1, indexing_threshold=1),
            # The default is a pool of one thread per core for each shard. One query takes a millisecond.
            max_search_threads=1,
        )


def field_indexes(collection: Collection) -> dict[str, KeywordIndexParams | IntegerIndexParams]:
    """Return the indexed payload fields of a collection and their indexes. Each takes 3 to 6 MB, even with few points."""
    # A search covers one scope, which includes the tenant, so graph links stay within it. The other fields serve filters.
    keyword = KeywordIndexParams(enable_hnsw=False, memory=Memory.Cold)
    integer = IntegerIndexParams(lookup=False, range=True, enable_hnsw=False, memory=Memory.Cold)
    of_all: dict[str, KeywordIndexParams | IntegerIndexParams] = {
        "scope": KeywordIndexParams(is_tenant=True, enable_hnsw=True, memory=Memory.Cold),
        "tenant": keyword,
        TAGS: keyword,
    }
    if collection is Collection.CHUNKS:
        return {**of_all, "document_id": keyword, "version": integer}
    return {**of_all, "generation": integer}


def match(field: str, value: str | int) -> FieldCondition:
    """Return the condition that ``field`` is, or holds, ``value``."""
    return FieldCondition(key=field, match=MatchValue(value))


def within(tenant: TenantId, *conditions: FieldCondition | HasIdCondition) -> EngineFilter:
    """Return the filter of every operation except searches: always the tenant, and the given conditions."""
    return EngineFilter(must=[match("tenant", tenant.value), *conditions])


def having_ids(tenant: TenantId, collection: Collection, ids: Iterable[str]) -> HasIdCondition:
    """Return the condition that a point is one of the tenant's ``ids``."""
    return HasIdCondition({point_id(tenant, collection, id) for id in ids})


@dataclass(frozen=True, slots=True)
class Translation:
    """Translates the filters of searches in one collection of a tenant. ``values`` are as in `conditions.select`."""

    tenant: TenantId
    collection: Collection
    values: Callable[[], FieldValues]

    def of(self, filter: Filter, kind: NodeKind = NodeKind.CHUNK) -> EngineFilter | bool:
        """Return `conditions.select` as a constant, or as a filter with at least one condition."""
        selection = select(filter, self.values, kind)
        return selection if isinstance(selection, bool) else self._engine_filter(selection)

    def _engine_filter(self, condition: Condition) -> EngineFilter:
        if isinstance(condition, Tagged):
            tags = list(condition.tags)
            match = MatchValue(tags[0]) if len(tags) == 1 else MatchAny(tags)
            return EngineFilter(must=[FieldCondition(key=TAGS, match=match)])
        if isinstance(condition, Identified):
            return EngineFilter(must=[having_ids(self.tenant, self.collection, condition.ids)])
        if isinstance(condition, All):
            return EngineFilter(must=[self._engine_filter(part) for part in condition.parts])
        if isinstance(condition, Some):
            return EngineFilter(should=[self._engine_filter(part) for part in condition.parts])
        return EngineFilter(must_not=[self._engine_filter(condition.part)])


def sync_tree(folder: Path) -> None:
    """Force all files and folders below ``folder`` to the disk.

    Raises:
        OSError: ``folder`` or a part of it does not exist or cannot be written.
    """

    def stop(error: OSError) -> None:
        raise error

    for root, _, files in os.walk(folder, onerror=stop):
        for path in [Path(root, name) for name in files] + [Path(root)]:
            sync(path)


def sync(path: Path) -> None:
    """Force a file, or a folder's directory entries, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
