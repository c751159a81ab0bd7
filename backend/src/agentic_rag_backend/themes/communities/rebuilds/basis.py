"""The inputs of a generation, so that a rebuild from the same inputs is skipped."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.base import GenerationPointer
from agentic_rag_backend.themes.communities.detection.hierarchy import METHOD, DetectionOptions
from agentic_rag_backend.themes.communities.generations import Restorer
from agentic_rag_backend.themes.communities.rebuilds.rebuild_options import RebuildOptions
from agentic_rag_backend.themes.communities.theme_index import CommunityReader


def compute_basis(revision: str, options: RebuildOptions, detection: DetectionOptions, writers: Sequence[tuple[str, str]]) -> str:
    """Return 64 hex digits that change with every input of a generation except the visible versions of documents.

    The pointer compares those versions; it is stale after one of them has changed.

    Args:
        revision: the graph's own, read before anything else of it; without one (a graph that an older release wrote) the
            result is empty, and no basis can be compared.
        writers: see `Summariser.keys`.
    """
    if not revision:
        return ""
    parts = (METHOD, revision, detection, options.summarize, tuple(writers))
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def divided_under(detection: DetectionOptions) -> str:
    """Return an identifier of the method and options that divided a graph, independent of the graph."""
    return repr((METHOD, detection))


@dataclass(frozen=True, slots=True, kw_only=True)
class UpToDateCheck:
    """Compares the current generation with the result of a rebuild.

    A pointer that is not stale and an equal basis describe the same moment: the graph's revision is read after the pointer,
    and a revision never returns to an earlier value. So nothing visible changed since the reading the generation was built
    from.
    """

    reader: CommunityReader
    restorer: Restorer

    async def is_up_to_date(self, tenant: TenantId, pointer: GenerationPointer, built_from: str) -> bool:
        """Return whether nothing has changed, every summary was written as asked, and the stores hold all of it."""
        if not built_from or pointer.details.get("basis") != built_from:
            return False
        if pointer.generation == 0 or pointer.stale or pointer.details.get("summaries_failed"):
            return False
        again, communities = await self.reader.read(tenant)
        if again.generation != pointer.generation or pointer.details.get("communities") != len(communities):
            return False
        return not await self.restorer.list_missing_communities(tenant, communities)
