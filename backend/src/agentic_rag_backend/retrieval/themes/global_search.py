"""Themes for questions about the whole corpus: as many as a token budget holds. Partial answers are made from them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agentic_rag_backend.domain.query import Backing, Query, Retrieval, Trace
from agentic_rag_backend.language.questions.overviews import asks_about_everything
from agentic_rag_backend.retrieval.base import Retriever
from agentic_rag_backend.retrieval.passages.hydration import time_detail
from agentic_rag_backend.retrieval.structured_calls import Spending
from agentic_rag_backend.retrieval.themes.finder import ThemeFinder, ThemeSearch

LEG_LIMIT = 200
MAX_THEMES = 100
"""Maximum number of themes that the strategy reads."""
NEAREST = 30
"""Passages that support an answer without a model."""
RATING_SHARE = 0.1
"""Weight of a theme's rating in its score. Such questions are near to no particular theme, so the rating decides among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalOptions:
    """Deployment defaults: token budget of all themes together, and model calls of one request, rating included."""

    budget_tokens: int = 12_000
    max_calls: int = 8


class GlobalRetriever:
    """Returns the themes of a corpus-wide answer. `generation` makes the answer from them by map and reduce.

    Args:
        passages: finds the passages nearest to a question, for an answer without a model.
    """

    def __init__(self, finder: ThemeFinder, options: GlobalOptions, passages: Retriever | None = None) -> None:
        self._finder = finder
        self._options = options
        self._passages = passages

    async def retrieve(self, query: Query) -> Retrieval:
        """Return at most ``query.high_limit`` themes within the budget, best first. No theme is an ancestor of another."""
        # Two calls are reserved: one for at least one partial answer, and one for the final answer.
        spending = Spending(max(0, int(query.options.get("max_calls", self._options.max_calls)) - 2))
        of_all = asks_about_everything(query.text)
        search = ThemeSearch(
            limit=min(query.high_limit, MAX_THEMES),
            budget_tokens=int(query.options.get("budget_tokens", self._options.budget_tokens)),
            leg_limit=LEG_LIMIT,
            max_examined=MAX_THEMES,
            rated=query.options.get("rate") == "model",
            rating_share=1.0 if of_all else RATING_SHARE,
            coarsest=of_all,
        )
        themes = await self._finder.find(query, search, spending)
        return Retrieval(
            themes=themes.themes,
            backing=None if of_all or not themes.themes else await self._backing(query),
            relevance=max((theme.score for theme in themes.themes), default=0.0),
            usage=spending.usage,
            trace=Trace(
                strategy="global",
                methods_used=("community",),
                failures=themes.failures,
                warnings=themes.warnings,
                details={
                    **time_detail(query),
                    "generation": themes.pointer.generation,
                    "communities_stale": themes.pointer.stale,
                    "themes": dict(themes.details),
                    "about_everything": of_all,
                },
            ),
        )

    async def _backing(self, query: Query) -> Backing | None:
        if self._passages is None:
            return None
        retrieval = await self._passages.retrieve(replace(query, limit=NEAREST, min_score=0.0))
        return Backing(hits=retrieval.hits[:NEAREST], relevance=retrieval.relevance) if retrieval.hits else None
