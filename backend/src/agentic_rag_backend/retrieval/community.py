"""Community search: the themes whose summaries bear on a question, of the current generation only."""

from __future__ import annotations

import time
from dataclasses import dataclass

from agentic_rag_backend.domain.query import Query, Retrieval, Trace
from agentic_rag_backend.retrieval.structured_calls import Spending
from agentic_rag_backend.retrieval.themes import ThemeFinder, ThemeSearch

LOOKED_AT = 4
"""Communities whose texts are read for each one that is returned: relatives and hidden ones fall out of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityOptions:
    """Defaults of a deployment: tokens of all themes together, and model calls that may rate them if asked for."""

    budget_tokens: int = 4000
    rating_calls: int = 3


class CommunityRetriever:
    """Answers with communities; see `ThemeFinder` for what is found and `selection` for what is chosen of it."""

    def __init__(self, finder: ThemeFinder, options: CommunityOptions | None = None) -> None:
        self._finder = finder
        self._options = options or CommunityOptions()

    async def retrieve(self, query: Query) -> Retrieval:
        """Return at most ``query.high_limit`` themes, none within another; none before the first generation was built."""
        started = time.perf_counter()
        spending = Spending(int(query.options.get("max_calls", self._options.rating_calls)))
        search = ThemeSearch(
            limit=query.high_limit,
            budget_tokens=int(query.options.get("budget_tokens", self._options.budget_tokens)),
            looked_at=LOOKED_AT * query.high_limit,
            rated=query.options.get("rate") == "model",
        )
        found = await self._finder.find(query, search, spending)
        elapsed = (time.perf_counter() - started) * 1000
        return Retrieval(
            themes=found.themes,
            relevance=max((theme.score for theme in found.themes), default=0.0),
            usage=spending.usage,
            trace=Trace(
                strategy="community",
                methods_used=("community",),
                fallback_used=bool(found.failures),
                fallback_reason="; ".join(found.failures) or None,
                failures=found.failures,
                processing_time_ms={"retrieval": elapsed},
                warnings=found.warnings,
                details={
                    "generation": found.pointer.generation,
                    "communities_stale": found.pointer.stale,
                    "themes": dict(found.details),
                },
            ),
        )
