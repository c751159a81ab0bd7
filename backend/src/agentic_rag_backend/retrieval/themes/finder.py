"""Finds themes: communities of the current generation by vector and BM25 at every level, selected over the hierarchy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agentic_rag_backend.communities.views import CommunityView
from agentic_rag_backend.domain.graph import Community, community_point_id
from agentic_rag_backend.domain.query import Query, ThemeHit
from agentic_rag_backend.retrieval.base import Stores
from agentic_rag_backend.retrieval.caching.cache_entries import TenantCache
from agentic_rag_backend.retrieval.options.model import unknown_levels
from agentic_rag_backend.retrieval.scoring.coverage import QuestionCoverage, cover, list_terms
from agentic_rag_backend.retrieval.scoring.rank_fusion import rank_scores, weighted_min_max
from agentic_rag_backend.retrieval.structured_calls import Spending
from agentic_rag_backend.retrieval.themes.rating import RatedTheme, ThemeRater
from agentic_rag_backend.retrieval.themes.theme_selection import ThemeSelection, select_themes
from agentic_rag_backend.retrieval.themes.theme_views import ExaminedTheme, ThemeViews
from agentic_rag_backend.stores.catalogue.base import GenerationPointer
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, Vector, VectorSearch

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
    """

    limit: int
    budget_tokens: int
    leg_limit: int = 50
    max_examined: int = 20
    rated: bool = False
    rating_share: float = 0.0
    entities: frozenset[str] | None = None


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
        if search.entities is None:
            communities, cosine = await self._search_themes(query, search, pointer, vector)
        else:
            all_communities = await self._stores.graph.communities(query.tenant_id, pointer.generation) if search.entities else []
            communities, cosine = (
                [community for community in all_communities if not search.entities.isdisjoint(community.entity_ids)],
                {},
            )
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
