"""Reads the communities that a theme search examines, with a cache by the state of their tenant.

Most of the time of a theme search goes into reading summaries and checking that the passages behind them are visible. While a
tenant does not change, the result is the same for all questions without a filter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from sys import getsizeof
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.communities.views import CommunityReader, CommunityView, JudgedCommunity
from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.filters import VALID_FROM, VALID_TO
from agentic_rag_backend.domain.graph import Community, community_point_id
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.language.tokens import text_tokens
from agentic_rag_backend.retrieval.base import Stores
from agentic_rag_backend.retrieval.caching.cache_entries import State, TenantCache
from agentic_rag_backend.retrieval.caching.read_through import ReadThrough
from agentic_rag_backend.retrieval.passages.hydration import passes
from agentic_rag_backend.stores.catalogue.base import GenerationPointer
from agentic_rag_backend.stores.vector.base import Collection, Vector
from agentic_rag_backend.telemetry.metrics import THEMES_CACHE, count_cache_use

_REFERENCE_BYTES = 150
"""Memory of a reference to a passage or a document."""
_RECORD_BYTES = 500
"""Memory of a community without its members."""


@dataclass(frozen=True)
class ExaminedTheme:
    """The visible part of a community that has prose or findings.

    Attributes:
        terms: BM25 terms of its text, rising.
    """

    view: CommunityView
    terms: NDArray[np.int64]

    @cached_property
    def tokens(self) -> int:
        """Estimated tokens of its text in a prompt. Only those of themes that may be chosen are counted."""
        return text_tokens([self.view.name, self.view.summary, *(finding.statement for finding in self.view.findings)])


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
        texts = [view.name, view.summary, *view.keywords, *(finding.statement for finding in view.findings)]
        references = len(self.versions) + len(view.sources) + sum(len(finding.sources) for finding in view.findings)
        return sum(map(getsizeof, texts)) + int(self.examined.terms.nbytes) + _REFERENCE_BYTES * (references + len(texts))


class ThemeViews:
    """Reads communities as a query may see them.

    Args:
        cache: keeps them. None: nothing is kept.
    """

    def __init__(self, stores: Stores, cache: TenantCache[Any] | None = None) -> None:
        self._reader = CommunityReader(documents=stores.documents, communities=stores.communities, graph=stores.graph)
        self._vectors = stores.vectors
        self._graph = stores.graph
        self.entries = cache or TenantCache[Any](THEMES_CACHE, 0)
        self._records = ReadThrough[Community](self.entries, "record", lambda _: _RECORD_BYTES)
        self._points = ReadThrough[Vector](self.entries, "vector", lambda vector: vector.nbytes)

    async def records(self, query: Query, pointer: GenerationPointer, ids: Sequence[str]) -> dict[str, Community]:
        """Return communities without their members, by id. Unknown ones are left out."""

        async def load(missing_ids: list[str]) -> Mapping[str, Community]:
            communities = await self._graph.communities(query.tenant_id, pointer.generation, ids=missing_ids, members=False)
            return {community.id: community for community in communities}

        return await self._records.read(query, _state(query, pointer), ids, load)

    async def cosines(self, query: Query, pointer: GenerationPointer, question: Vector, ids: Sequence[str]) -> dict[str, float]:
        """Return the cosines of communities with a question, by id. Communities without a vector are left out."""

        async def load(missing_ids: list[str]) -> Mapping[str, Vector]:
            points = {community_point_id(id, pointer.generation): id for id in missing_ids}
            vectors = await self._vectors.vectors(query.tenant_id, Collection.NODES, list(points))
            for vector in vectors.values():
                vector.setflags(write=False)  # several searches read it
            return {points[point]: vector for point, vector in vectors.items()}

        vectors = await self._points.read(query, _state(query, pointer), ids, load)
        return {id: float(vector @ question) for id, vector in vectors.items()}

    def question_terms(self, query: Query) -> frozenset[int]:
        """Return the BM25 terms of a question."""
        return self._vectors.terms(query.text)

    async def of(self, query: Query, pointer: GenerationPointer, communities: Sequence[Community]) -> list[ExaminedTheme]:
        """Return the visible themes among ``communities``, in their order.

        A community that has only a visible name is no evidence, and is left out.
        """
        # Filters and times decide for each query which passages count.
        cached = self.entries.enabled and query.cache and query.filters is None and query.as_of is None
        state = _state(query, pointer)
        themes: dict[str, ExaminedTheme | None] = {}
        for shown_community in communities if cached else ():
            entry = self.entries.get(query.tenant_id, shown_community.id.encode(), state=state)
            if entry is not None and all(query.seen.agree_on_version(*version) for version in entry.versions.items()):
                themes[shown_community.id] = entry.examined
        unread = [community for community in communities if community.id not in themes]
        if cached:
            count_cache_use(THEMES_CACHE, "miss" if unread else "hit")
        query_chunk_ids: set[str] = set()

        def judge(chunk: VisibleChunk) -> bool:
            passing = passes(query, chunk)
            if not passing or VALID_FROM in chunk.metadata or VALID_TO in chunk.metadata:
                query_chunk_ids.add(chunk.chunk.id)  # another query may see it differently
            return passing

        for judged in await self._reader.judge_communities(query.tenant_id, pointer, unread, passes=judge):
            examined = themes[judged.id] = self._examine_theme(judged)
            if cached and query_chunk_ids.isdisjoint(judged.chunk_ids):
                new_entry = _Entry(examined, judged.versions)
                self.entries.put(query.tenant_id, judged.id.encode(), new_entry, new_entry.size_bytes, state=state)
        return [theme for community in communities if (theme := themes[community.id]) is not None]

    def _examine_theme(self, judged: JudgedCommunity) -> ExaminedTheme | None:
        view = judged.view
        if view is None or not (view.summary or view.findings):
            return None
        findings = " ".join(finding.statement for finding in view.findings)
        terms = self._vectors.terms(f"{view.name}. {view.summary} {' '.join(view.keywords)} {findings}")
        return ExaminedTheme(view, np.array(sorted(terms), dtype=np.int64))


def _state(query: Query, pointer: GenerationPointer) -> State:
    # A tenant that is created again under the same id counts from the beginning.
    return (query.tenant.created_at, query.tenant.state_version, pointer.generation, pointer.stale)
