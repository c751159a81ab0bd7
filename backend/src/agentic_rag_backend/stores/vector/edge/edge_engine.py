"""Configuration of the collections in the engine, and translation of its errors."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from qdrant_edge import (
    Distance,
    EdgeConfig,
    EdgeOptimizersConfig,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    HnswIndexConfig,
    IntegerIndexParams,
    KeywordIndexParams,
    Memory,
    Modifier,
    VectorStorageDatatype,
)

from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.stores.local_files import full
from agentic_rag_backend.stores.vector.base import Collection
from agentic_rag_backend.stores.vector.conditions import TAGS
from agentic_rag_backend.stores.vector.points import DENSE, SPARSE

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
