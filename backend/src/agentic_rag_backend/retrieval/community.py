"""Community search: the themes whose summaries bear on a question, of the current generation only."""

from __future__ import annotations

import time
from functools import partial

from agentic_rag_backend.communities.views import CommunityReader, CommunityView
from agentic_rag_backend.domain.graph import community_point_id
from agentic_rag_backend.domain.query import Query, Retrieval, ThemeHit, Trace
from agentic_rag_backend.retrieval.base import Stores
from agentic_rag_backend.retrieval.fusion import ranked, weighted_min_max
from agentic_rag_backend.retrieval.hops import Coverage, cover
from agentic_rag_backend.retrieval.hydration import passes
from agentic_rag_backend.stores.catalogue.base import CommunityPointer
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, VectorSearch

LEG_LIMIT = 50
WEIGHTS = {"dense": 0.7, "sparse": 0.3}
COSINE_SHARE = 0.8
"""Share of the cosine in a theme's score; the rest is how much of the question its text covers. Both mean the same for
every question, so that a floor can be set."""


class CommunityRetriever:
    """Answers with communities. ``options.level`` keeps one level of the hierarchy (0: the coarsest).

    Under filters or a time, prose and findings are shown only where every passage behind them passes.
    """

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._reader = CommunityReader(documents=stores.documents, communities=stores.communities, graph=stores.graph)

    async def retrieve(self, query: Query) -> Retrieval:
        """Return at most ``query.high_limit`` themes; none before the first generation was built."""
        started = time.perf_counter()
        pointer = await self._stores.communities.pointer(query.tenant_id)
        themes: tuple[ThemeHit, ...] = ()
        if pointer.generation > 0:
            themes = await self._search(query, pointer)
        elapsed = (time.perf_counter() - started) * 1000
        return Retrieval(
            themes=themes,
            relevance=max((theme.score for theme in themes), default=0.0),
            trace=Trace(
                strategy="community",
                methods_used=("community",),
                fallback_used=False,
                processing_time_ms={"retrieval": elapsed},
                details={"generation": pointer.generation, "communities_stale": pointer.stale},
            ),
        )

    async def _search(self, query: Query, pointer: CommunityPointer) -> tuple[ThemeHit, ...]:
        vector = await self._stores.encoder.encode(query.tenant_id, query.text)
        search = VectorSearch(
            kind=NodeKind.COMMUNITY, dense=vector, text=query.text, limit=LEG_LIMIT, generation=pointer.generation
        )
        legs = (await self._stores.vectors.search(query.tenant_id, Collection.NODES, [search]))[0]
        order = ranked(weighted_min_max({"dense": legs.dense, "sparse": legs.sparse}, WEIGHTS))
        cosine = {community_point_id(item.id, pointer.generation): item.score for item in legs.dense}
        # Where much may be left out, all are looked at.
        narrowed = "level" in query.options or query.filters is not None or query.as_of is not None
        best = order if narrowed else order[: 2 * query.high_limit]
        ids = [community_point_id(item.id, pointer.generation) for item in best]
        if not ids:
            return ()
        communities = await self._stores.graph.communities(query.tenant_id, pointer.generation, ids=ids)
        if "level" in query.options:
            communities = [community for community in communities if community.level == query.options["level"]]
        views = await self._reader.views(query.tenant_id, pointer, communities, passes=partial(passes, query))
        # A community of which nothing may be shown but its name is not evidence.
        tellable = [view for view in views if view.summary or view.findings]
        coverage = cover(
            self._stores.vectors.terms(query.text),
            {number: self._stores.vectors.terms(_text(view)) for number, view in enumerate(tellable)},
        )
        themes = [_theme(view, _score(coverage, number, cosine.get(view.id, 0.0))) for number, view in enumerate(tellable)]
        return tuple(sorted(themes, key=lambda theme: (-theme.score, theme.id))[: query.high_limit])


def _text(view: CommunityView) -> str:
    findings = " ".join(finding.statement for finding in view.findings)
    return f"{view.name}. {view.summary} {' '.join(view.keywords)} {findings}"


def _score(coverage: Coverage[int], number: int, cosine: float) -> float:
    covered = coverage.of(coverage.held[number])
    return max(0.0, min(1.0, COSINE_SHARE * max(cosine, 0.0) + (1 - COSINE_SHARE) * covered))


def _theme(view: CommunityView, score: float) -> ThemeHit:
    return ThemeHit(
        id=view.id,
        name=view.name,
        summary=view.summary,
        keywords=view.keywords,
        entity_count=view.entity_count,
        level=view.level,
        generation=view.generation,
        score=score,
        findings=view.findings,
    )
