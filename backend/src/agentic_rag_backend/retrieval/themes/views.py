"""Reads the communities that a theme search examines, with a cache by the state of their tenant.

Most of the time of a theme search goes into reading summaries and checking that the passages behind them are visible. While a
tenant does not change, the result is the same for all questions without a filter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.communities.views import CommunityReader, CommunityView, JudgedCommunity
from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.filters import VALID_FROM, VALID_TO
from agentic_rag_backend.domain.graph import Community
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.retrieval.base import Stores
from agentic_rag_backend.retrieval.caching.entries import TenantCache
from agentic_rag_backend.retrieval.hydration import passes
from agentic_rag_backend.stores.catalogue.ports.generations import GenerationPointer
from agentic_rag_backend.telemetry.metrics import THEMES_CACHE, count_cache_use

_REFERENCE_BYTES = 150
"""Memory of a reference to a passage or a document."""


@dataclass(frozen=True, slots=True)
class ExaminedTheme:
    """The visible part of a community that has prose or findings.

    Attributes:
        terms: BM25 terms of its text, rising.
    """

    view: CommunityView
    terms: NDArray[np.int64]

    def held(self, question: NDArray[np.int64]) -> frozenset[int]:
        """Return the terms of the question that the text contains."""
        return frozenset(question[np.isin(question, self.terms, assume_unique=True)].tolist())


@dataclass(frozen=True, slots=True)
class _Entry:
    """The part of a community that all queries without a filter see. ``versions`` are the document versions that were read."""

    examined: ExaminedTheme | None
    versions: Mapping[str, int]

    @property
    def size_bytes(self) -> int:
        if self.examined is None:
            return 0
        view = self.examined.view
        texts = [view.name, view.summary, *view.keywords, *(each.statement for each in view.findings)]
        references = len(self.versions) + len(view.sources) + sum(len(each.sources) for each in view.findings)
        return sum(map(len, texts)) + int(self.examined.terms.nbytes) + _REFERENCE_BYTES * (references + len(texts))


class ThemeViews:
    """Reads communities as a query may see them.

    Args:
        max_bytes: bound of the cache. 0: nothing is kept.
    """

    def __init__(self, stores: Stores, *, max_bytes: int = 0) -> None:
        self._reader = CommunityReader(documents=stores.documents, communities=stores.communities, graph=stores.graph)
        self._vectors = stores.vectors
        self.entries = TenantCache[_Entry](THEMES_CACHE, max_bytes)

    def terms(self, text: str) -> NDArray[np.int64]:
        """Return the BM25 terms of a text, rising."""
        return np.array(sorted(self._vectors.terms(text)), dtype=np.int64)

    async def of(self, query: Query, pointer: GenerationPointer, communities: Sequence[Community]) -> list[ExaminedTheme]:
        """Return the visible themes among ``communities``, in their order.

        A community that has only a visible name is no evidence, and is left out.
        """
        # Filters and times decide for each query which passages count.
        cached = self.entries.enabled and query.cache and query.filters is None and query.as_of is None
        # A tenant that is created again under the same id counts from the beginning.
        state = (query.tenant.created_at, query.tenant.state_version, pointer.generation, pointer.stale)
        found: dict[str, ExaminedTheme | None] = {}
        for each in communities if cached else ():
            entry = self.entries.get(query.tenant_id, each.id.encode(), state=state)
            if entry is not None and all(query.seen.agree(*version) for version in entry.versions.items()):
                found[each.id] = entry.examined
        unread = [each for each in communities if each.id not in found]
        if cached:
            count_cache_use(THEMES_CACHE, "miss" if unread else "hit")
        own: set[str] = set()

        def judge(chunk: VisibleChunk) -> bool:
            shown = passes(query, chunk)
            if not shown or VALID_FROM in chunk.metadata or VALID_TO in chunk.metadata:
                own.add(chunk.chunk.id)  # another query may see it differently
            return shown

        for judged in await self._reader.judged(query.tenant_id, pointer, unread, passes=judge):
            examined = found[judged.id] = self._examined(judged)
            if cached and own.isdisjoint(judged.chunk_ids):
                made = _Entry(examined, judged.versions)
                self.entries.put(query.tenant_id, judged.id.encode(), made, made.size_bytes, state=state)
        return [theme for each in communities if (theme := found[each.id]) is not None]

    def _examined(self, judged: JudgedCommunity) -> ExaminedTheme | None:
        view = judged.view
        if view is None or not (view.summary or view.findings):
            return None
        findings = " ".join(finding.statement for finding in view.findings)
        return ExaminedTheme(view, self.terms(f"{view.name}. {view.summary} {' '.join(view.keywords)} {findings}"))
