"""What a generation was built from, so that building it again from the same is not done."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from agentic_rag_backend.communities.detection.hierarchy import METHOD, DetectionOptions
from agentic_rag_backend.communities.generations.restoration import Restorer
from agentic_rag_backend.communities.rebuilds.options import RebuildOptions
from agentic_rag_backend.communities.views import CommunityReader
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.ports.generations import GenerationPointer


def basis(revision: str, options: RebuildOptions, detection: DetectionOptions, writers: Sequence[tuple[str, str]]) -> str:
    """Return 64 hex digits that change with whatever a generation depends on beside the visible versions of documents.

    Those are compared by the pointer, which is stale once one of them has changed.

    Args:
        revision: the graph's own, read before anything else of it; without one (a graph that an older release wrote) the
            result is empty, which stands for no basis that could be compared.
        writers: see `Summariser.keys`.
    """
    if not revision:
        return ""
    parts = (METHOD, revision, detection, options.summarize, tuple(writers))
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def divided_under(detection: DetectionOptions) -> str:
    """Return what tells how a graph was divided, whatever the graph."""
    return repr((METHOD, detection))


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Tells whether the current generation is what a rebuild would make anew.

    That a pointer is not stale and that the basis is equal hold of one moment: the graph's revision is read after the pointer,
    and no value of it returns. So nothing that is visible changed since the reading the generation was built from.
    """

    reader: CommunityReader
    restorer: Restorer

    async def holds(self, tenant: TenantId, pointer: GenerationPointer, built_from: str) -> bool:
        """Return whether nothing has changed, every summary was written as asked, and the stores hold all of it."""
        if not built_from or pointer.details.get("basis") != built_from:
            return False
        if pointer.generation == 0 or pointer.stale or pointer.details.get("summaries_failed"):
            return False
        again, communities = await self.reader.read(tenant)
        if again.generation != pointer.generation or pointer.details.get("communities") != len(communities):
            return False
        return not await self.restorer.missing(tenant, communities)
