"""The embedded store's folder: one owner at a time, and one subfolder per fingerprint.

``<folder>/<hash of the fingerprint>/{fingerprint.json, chunks/, nodes/}`` and ``<folder>/.lock``. A subfolder is made under
another name and renamed when complete, so that a process killed on the way leaves nothing that looks like a store.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from qdrant_edge import (
    CountRequest,
    Distance,
    EdgeConfig,
    EdgeShard,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    HnswIndexConfig,
    IntegerIndexParams,
    KeywordIndexParams,
    Modifier,
    UpdateOperation,
    VectorStorageDatatype,
)

from agentic_rag_backend.errors import ReindexRequired, StoreLocked, StoreUnavailable
from agentic_rag_backend.stores.vector.base import Collection
from agentic_rag_backend.stores.vector.filters import TAGS
from agentic_rag_backend.stores.vector.ranking import DENSE, SPARSE

_RECORD = "fingerprint.json"


@contextmanager
def engine_errors(doing: str) -> Iterator[None]:
    """Turn the engine's errors, which have no class of their own, into `StoreUnavailable`."""
    try:
        yield
    except Exception as error:
        if type(error) is Exception:
            raise StoreUnavailable(f"the vector store failed {doing}: {error}") from error
        raise


def lock(folder: Path) -> int:
    """Take the folder, making it if need be, and return the lock's file descriptor; closing it gives the folder back.

    Raises:
        StoreLocked: it is open already, here or in another process.
    """
    folder.mkdir(parents=True, exist_ok=True)
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


def open_shards(folder: Path, fingerprint: str, *, dimensions: int) -> dict[Collection, EdgeShard]:
    """Open the collections of ``fingerprint``, making them where they are not; the caller holds the lock.

    Raises:
        ReindexRequired: the folder holds points of another fingerprint.
        StoreUnavailable: the files cannot be read.
    """
    home = folder / hashlib.sha256(fingerprint.encode()).hexdigest()[:16]
    _refuse_other_fingerprints(folder, home, fingerprint)
    if not home.exists():
        _make(home, fingerprint, dimensions)
    shards = {}
    try:
        for collection in Collection:
            with engine_errors(f"opening {home / collection}"):
                shards[collection] = EdgeShard.load(str(home / collection), _config(dimensions))
    except StoreUnavailable:
        for shard in shards.values():
            shard.close()
        raise
    return shards


def _refuse_other_fingerprints(folder: Path, home: Path, fingerprint: str) -> None:
    for record in sorted(folder.glob(f"*/{_RECORD}")):
        if record.parent == home or record.parent.suffix or _holds_nothing(record.parent):
            continue
        held = json.loads(record.read_text()).get("fingerprint")
        raise ReindexRequired(
            f"the vectors in {folder} were made with [{held}], but [{fingerprint}] is configured: "
            "reindex, or configure what they were made with"
        )


def _holds_nothing(home: Path) -> bool:
    for collection in Collection:
        with engine_errors(f"opening {home / collection}"):
            shard = EdgeShard.load(str(home / collection))
            count = shard.count(CountRequest(exact=True))
            shard.close()
        if count:
            return False
    return True


def _make(home: Path, fingerprint: str, dimensions: int) -> None:
    unfinished = home.with_suffix(".new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    (unfinished / _RECORD).write_text(json.dumps({"fingerprint": fingerprint}, indent=2) + "\n")
    for collection in Collection:
        with engine_errors(f"making {home / collection}"):
            (unfinished / collection).mkdir()
            shard = EdgeShard.create(str(unfinished / collection), _config(dimensions))
            for field, schema in _indexes().items():
                shard.update(UpdateOperation.create_field_index(field, schema))
            shard.flush()
            shard.close()
    unfinished.rename(home)


def _config(dimensions: int) -> EdgeConfig:
    return EdgeConfig(
        vectors={
            DENSE: EdgeVectorParams(size=dimensions, distance=Distance.Cosine, datatype=VectorStorageDatatype.Float32),
        },
        sparse_vectors={SPARSE: EdgeSparseVectorParams(modifier=Modifier.Idf)},
        # No graph over everybody's points, one for each tenant's: links never lead into another tenant.
        hnsw_config=HnswIndexConfig(m=0, payload_m=16, ef_construct=128, full_scan_threshold=10_000),
        # The default is a pool of one thread per core for each shard; a query of ours takes a millisecond.
        max_search_threads=1,
    )


def _indexes() -> dict[str, KeywordIndexParams | IntegerIndexParams]:
    # A search is over one scope, which names the tenant: its points get graph links among themselves. The others serve filters.
    keyword = KeywordIndexParams(enable_hnsw=False)
    integer = IntegerIndexParams(lookup=True, range=True, enable_hnsw=False)
    return {
        "scope": KeywordIndexParams(is_tenant=True, enable_hnsw=True),
        "tenant": keyword,
        "document_id": keyword,
        TAGS: keyword,
        "version": integer,
        "generation": integer,
    }
