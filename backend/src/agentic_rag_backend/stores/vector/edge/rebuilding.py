"""Rebuilds the embedded store for another fingerprint while the current one stays in use, then replaces it.

The new store is in ``<hash>.building``, where an interrupted rebuild continues; no other code opens it. `take_over` records in
it which folders it replaces and renames it to ``<hash>``. From then on it is in use. The replaced folders are removed at once
or at the next opening.
"""

from __future__ import annotations

import os
from pathlib import Path

from agentic_rag_backend.stores.vector.bm25 import Bm25Encoder, Bm25Parameters
from agentic_rag_backend.stores.vector.edge.edge_engine import Layout
from agentic_rag_backend.stores.vector.edge.folder import activate_collections, lock, open_shards
from agentic_rag_backend.stores.vector.edge.store import EdgeVectorStore
from agentic_rag_backend.stores.vector.edge.upkeep import NO_UPKEEP, IndexUpkeep
from agentic_rag_backend.stores.vector.points import fingerprint_of


async def open_for_rebuilding(
    folder: Path, *, dimensions: int, embedder_fingerprint: str, bm25: Bm25Parameters | None = None
) -> EdgeVectorStore:
    """Open the store under construction in ``folder``; create it if there is none.

    Raises:
        StoreLocked: the folder is open already, here or in another process.
        StoreUnavailable: its files cannot be read.
    """
    parameters = bm25 or Bm25Parameters()
    fingerprint = fingerprint_of(embedder_fingerprint, dimensions, parameters)
    descriptor = lock(folder)
    try:
        layout = Layout(dimensions)
        shards = open_shards(folder, fingerprint, layout, building=True)
    except BaseException:
        os.close(descriptor)
        raise
    upkeep = IndexUpkeep(shards, layout, NO_UPKEEP)
    return EdgeVectorStore(shards, upkeep, lock_descriptor=descriptor, encoder=Bm25Encoder(parameters), fingerprint=fingerprint)


def take_over(folder: Path, fingerprint: str) -> None:
    """Replace every other store in the folder with the new one, which must be closed.

    Raises:
        StoreLocked: the folder is open.
    """
    descriptor = lock(folder)
    try:
        activate_collections(folder, fingerprint)
    finally:
        os.close(descriptor)
