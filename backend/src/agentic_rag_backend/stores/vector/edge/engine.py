"""How our collections are laid out in the engine, and its errors as ours."""

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
from agentic_rag_backend.stores.files import full
from agentic_rag_backend.stores.vector.base import Collection
from agentic_rag_backend.stores.vector.conditions import TAGS
from agentic_rag_backend.stores.vector.points import DENSE, SPARSE

_BYTES_PER_NUMBER = 4
_DEFAULT_SCANNED_POINTS = 20_000


@contextmanager
def engine_errors(doing: str) -> Iterator[None]:
    """Turn the engine's errors, which have no class of their own, into `StoreUnavailable`."""
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
    """Length of the dense vectors, and the points of one scope up to which a search scans instead of walking a graph."""

    dimensions: int
    scanned_points: int = _DEFAULT_SCANNED_POINTS

    def config(self, *, new: bool = False) -> EdgeConfig:
        """Return the engine's configuration of a collection; the index settings take effect when it is built.

        Args:
            new: of a collection to be created. That fixes the place of its dense vectors until an index is built.
        """
        scanned_kb = -(-self.scanned_points * self.dimensions * _BYTES_PER_NUMBER // 1024)
        # The engine reads the index from files, whose pages the system caches or drops: .2 kB of a point stay in memory instead
        # of 1.4. The engine always holds points written since the last build in memory: 2 to 3 kB each.
        return EdgeConfig(
            id_tracker_memory=Memory.Cold,
            vectors={
                DENSE: EdgeVectorParams(
                    size=self.dimensions,
                    distance=Distance.Cosine,
                    datatype=VectorStorageDatatype.Float32,
                    # Cached would read the whole of a file of 32 MB at each opening, and hold it, however few vectors it has.
                    memory=Memory.Cold if new else Memory.Cached,
                ),
            },
            sparse_vectors={SPARSE: EdgeSparseVectorParams(modifier=Modifier.Idf, memory=Memory.Cold)},
            # No graph over everybody's points, one for each tenant's: links never lead into another tenant. A scope of up to
            # full_scan_threshold has none and is scanned, which is exact.
            hnsw_config=HnswIndexConfig(m=0, payload_m=16, ef_construct=128, full_scan_threshold=max(1, scanned_kb)),
            # Everything into one segment, with one graph a scope; whether that is worth its time is ours to decide.
            optimizers=EdgeOptimizersConfig(default_segment_number=1, indexing_threshold=1),
            # The default is a pool of one thread per core for each shard; a query of ours takes a millisecond.
            max_search_threads=1,
        )


def field_indexes(collection: Collection) -> dict[str, KeywordIndexParams | IntegerIndexParams]:
    """Return the payload fields of a collection that are indexed, and how. Each takes 3 to 6 MB, however few points there are."""
    # A search is over one scope, which names the tenant: its points get graph links among themselves. The others serve filters.
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
