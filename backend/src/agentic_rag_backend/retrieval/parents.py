"""The parents around found chunks: a small chunk matches a question, and the parent around it is read.

Chunks that were cut without parents are unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agentic_rag_backend.domain.query import Hit, Query
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue


def merged(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits, of several chunks of one parent only the first."""
    read: set[str] = set()
    kept = []
    for hit in hits:
        parent = hit.visible.chunk.parent_id
        if parent is None or parent not in read:
            kept.append(hit)
        if parent is not None:
            read.add(parent)
    return tuple(kept)


async def with_parents(documents: DocumentCatalogue, query: Query, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits with the parents around their chunks. Hits that have a passage already keep it."""
    small = [hit.id for hit in hits if hit.parent is None and hit.visible.chunk.parent_id is not None]
    if not small:
        return tuple(hits)
    # The id of a parent names its version, so that a parent of another version than the chunk's is not taken.
    found = await documents.parents(query.tenant_id, small)
    return tuple(replace(hit, parent=hit.parent or found.get(hit.visible.chunk.parent_id or "")) for hit in hits)
