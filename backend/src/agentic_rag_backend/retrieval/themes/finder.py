"""Finds themes: communities of the current generation by vector and BM25 at every level, selected over the hierarchy.

Most of the time of a theme search goes into reading summaries and checking that the passages behind them are visible. While a
tenant does not change, the result is the same for all questions without a filter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from sys import getsizeof
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.filters import VALID_FROM, VALID_TO
from agentic_rag_backend.domain.graph import Community, community_point_id
from agentic_rag_backend.domain.query import Query, ThemeHit
from agentic_rag_backend.language.tokens import text_tokens
from agentic_rag_backend.retrieval.base import Stores
from agentic_rag_backend.retrieval.caching import ReadThrough, State, TenantCache
from agentic_rag_backend.retrieval.options.model import unknown_levels
from agentic_rag_backend.retrieval.passages.hydration import passes
from agentic_rag_backend.retrieval.scoring import QuestionCoverage, cover, list_terms, rank_scores, weighted_min_max
from agentic_rag_backend.retrieval.structured_calls import Spending
from agentic_rag_backend.retrieval.themes.rating import RatedTheme, ThemeRater, ThemeSelection, select_themes
from agentic_rag_backend.stores.catalogue.summaries.generations import GenerationPointer
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, Vector, VectorSearch
from agentic_rag_backend.telemetry.metrics import THEMES_CACHE, count_cache_use
from agentic_rag_backend.themes.communities.theme_index import CommunityReader, CommunityView, JudgedCommunity

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


WEIGHTS = {"dense": 0.7, "sparse": 0.3}
COSINE_SHARE = 0.8
"""Share of the cosine in a theme's score; the rest is how much of the question its text covers. Both mean the same for
every question, so that a floor can be set."""
BEST_RATING = 10.0
NO_MODEL = "options.rate: no language model is configured; themes are chosen by score"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThemeSearch:
    """Parameters of a theme search.

    Args:
        limit: maximum number of themes.
        budget_tokens: estimated tokens of all their texts together.
        leg_limit: communities that each leg returns.
        max_examined: number of these whose texts are read.
        rated: whether a model rates their relevance.
        rating_share: weight in [0, 1] of a theme's own rating in its score. The rest is its nearness to the question.
        entities: ids of entities. Only communities that contain one of them are themes. None: all communities.
        coarsest: whether all communities of level 0 are candidates, without a search, unless ``options.level`` names a level.
    """

    limit: int
    budget_tokens: int
    leg_limit: int = 50
    max_examined: int = 20
    rated: bool = False
    rating_share: float = 0.0
    entities: frozenset[str] | None = None
    coarsest: bool = False


@dataclass(frozen=True, slots=True)
class FoundThemes:
    """Themes, best first. ``details`` describe the selection for the trace, ``failures`` are steps of it that failed.

    ``question`` is the vector of the question. None: no theme was searched.
    """

    themes: tuple[ThemeHit, ...]
    pointer: GenerationPointer
    details: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    question: Vector | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Search results with their content. ``cosine`` is by community, on the bundled encoder's scale."""

    themes: Sequence[ExaminedTheme]
    parents: Mapping[str, str | None]
    cosine: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class _Tree:
    themes: Mapping[str, ThemeHit]
    parents: Mapping[str, str | None]


class ThemeFinder:
    """Searches communities and selects among them. ``options.level`` keeps one level of the hierarchy (0: the coarsest).

    With filters or a time, prose and findings are shown only if all passages behind them match.
    """

    def __init__(self, stores: Stores, rater: ThemeRater | None = None, cache: TenantCache[Any] | None = None) -> None:
        self._stores = stores
        self._rater = rater
        self._views = ThemeViews(stores, cache)

    async def find(self, query: Query, search: ThemeSearch, spending: Spending | None = None) -> FoundThemes:
        """Return the selected themes. Empty before the first generation is built."""
        pointer = await self._stores.communities.pointer(query.tenant_id)
        if pointer.generation == 0:
            return FoundThemes((), pointer)
        vector = await self._stores.encoder.of(query)
        candidates = await self._candidates(query, search, pointer, vector)
        themes = {theme.id: theme for theme in self._score_themes(query, candidates, search)}
        levels = [query.options["level"]] if "level" in query.options else []
        warnings = unknown_levels("level", levels, pointer.levels)
        details: dict[str, Any] = {"chosen_by": "score"}
        failures: tuple[str, ...] = ()
        if search.rated and (self._rater is None or not self._rater.possible):
            warnings = (*warnings, NO_MODEL)
        elif search.rated and self._rater is not None and spending is not None:
            before = len(spending.failures)
            themes, details = await self._rate_themes(self._rater, query.text, _Tree(themes, candidates.parents), spending)
            failures = tuple(f"rating of themes failed: {code}" for code in dict.fromkeys(spending.failures[before:]))
        examined = {theme.view.id: theme for theme in candidates.themes}
        chosen = select_themes(
            {id: theme.score for id, theme in themes.items()},
            candidates.parents,
            lambda id: examined[id].tokens,
            budget_tokens=search.budget_tokens,
            limit=search.limit,
        )
        return FoundThemes(
            tuple(themes[id] for id in chosen.ids),
            pointer,
            {**details, "looked_at": len(candidates.themes), **_describe_choice(chosen, themes, search)},
            warnings,
            failures,
            vector,
        )

    async def _candidates(self, query: Query, search: ThemeSearch, pointer: GenerationPointer, vector: Vector) -> _Candidates:
        cosine: dict[str, float] = {}
        if search.coarsest and "level" not in query.options:
            communities = await self._stores.graph.communities(query.tenant_id, pointer.generation, level=0, members=False)
        elif search.entities is None:
            communities, cosine = await self._search_themes(query, search, pointer, vector)
        else:
            all_communities = await self._stores.graph.communities(query.tenant_id, pointer.generation) if search.entities else []
            communities = [community for community in all_communities if not search.entities.isdisjoint(community.entity_ids)]
        if "level" in query.options:
            communities = [community for community in communities if community.level == query.options["level"]]
        if not communities:
            return _Candidates((), {}, {})
        parents = await self._parents(query, pointer, communities)
        themes = await self._views.of(query, pointer, communities)
        far = [theme.view.id for theme in themes if theme.view.id not in cosine]
        cosine |= await self._views.cosines(query, pointer, vector, far)
        scale = (await self._stores.calibration()).questions
        return _Candidates(themes, parents, {id: scale.convert_cosine(value) for id, value in cosine.items()})

    async def _search_themes(
        self, query: Query, search: ThemeSearch, pointer: GenerationPointer, vector: Vector
    ) -> tuple[list[Community], dict[str, float]]:
        """Return the communities nearest to the question, and the cosine of those that the dense leg found."""
        generation = pointer.generation
        vector_search = VectorSearch(
            kind=NodeKind.COMMUNITY, dense=vector, text=query.text, limit=search.leg_limit, generation=generation
        )
        legs = (await self._stores.vectors.search(query.tenant_id, Collection.NODES, [vector_search]))[0]
        order = rank_scores(weighted_min_max({"dense": legs.dense, "sparse": legs.sparse}, WEIGHTS))
        # Read all candidates if many of them may be left out.
        narrowed = "level" in query.options or query.filters is not None or query.as_of is not None
        best = order if narrowed else order[: search.max_examined]
        points = {item.id: community_point_id(item.id, generation) for item in best}
        cosines = {item.id: item.score for item in legs.dense}
        communities = await self._views.records(query, pointer, list(points.values()))
        return list(communities.values()), {id: cosines[point] for point, id in points.items() if point in cosines}

    async def _parents(self, query: Query, pointer: GenerationPointer, communities: Sequence[Community]) -> dict[str, str | None]:
        """Return the parents of the communities, up to the coarsest level among them."""
        communities_by_id = {community.id: community for community in communities}
        coarsest = min((community.level for community in communities), default=0)
        while True:
            parent_ids = {
                community.parent_id
                for community in communities_by_id.values()
                if community.parent_id is not None
                and community.parent_id not in communities_by_id
                and community.level - 1 > coarsest
            }
            parents = await self._views.records(query, pointer, sorted(parent_ids))
            if not parents:
                return {community.id: community.parent_id for community in communities_by_id.values()}
            communities_by_id |= parents

    def _score_themes(self, query: Query, candidates: _Candidates, search: ThemeSearch) -> list[ThemeHit]:
        question = self._views.question_terms(query)
        terms_of_themes = list_terms(question, {number: theme.terms for number, theme in enumerate(candidates.themes)})
        coverage = cover(question, terms_of_themes)
        return [
            _theme(view, _score(coverage, number, candidates.cosine.get(view.id, 0.0), view.rating, search.rating_share))
            for number, view in enumerate(theme.view for theme in candidates.themes)
        ]

    async def _rate_themes(
        self, rater: ThemeRater, question: str, tree: _Tree, spending: Spending
    ) -> tuple[dict[str, ThemeHit], dict[str, Any]]:
        themes = tree.themes
        rated_themes = [RatedTheme(theme.id, theme.name, theme.summary, theme.score) for theme in themes.values()]
        calls_before = spending.begun
        ratings = await rater.rate(question, rated_themes, tree.parents, spending)
        details = {
            "chosen_by": "model",
            "rating_calls": spending.begun - calls_before,
            "dropped_by_rating": ratings.dropped,
            "unrated": ratings.unrated,
        }
        return {id: replace(themes[id], score=score) for id, score in ratings.scores.items()}, details


def _describe_choice(chosen: ThemeSelection, themes: Mapping[str, ThemeHit], search: ThemeSearch) -> dict[str, Any]:
    levels: dict[str, int] = {}
    for id in chosen.ids:
        levels[str(themes[id].level)] = levels.get(str(themes[id].level), 0) + 1
    return {
        "chosen": len(chosen.ids),
        "levels": dict(sorted(levels.items())),
        "tokens": chosen.tokens,
        "budget_tokens": search.budget_tokens,
        "gave_way": chosen.related,
        "too_large": chosen.too_large,
    }


def _score(coverage: QuestionCoverage[int], number: int, cosine: float, rating: float, rating_share: float) -> float:
    closeness = COSINE_SHARE * max(cosine, 0.0) + (1 - COSINE_SHARE) * coverage.of(coverage.held[number])
    return max(0.0, min(1.0, (1 - rating_share) * closeness + rating_share * rating / BEST_RATING))


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
        rating=view.rating,
    )
