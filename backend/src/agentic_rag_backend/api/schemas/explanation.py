"""Explanation of a search for one document."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from agentic_rag_backend.api.schemas.base import View
from agentic_rag_backend.api.schemas.search import ResultView, TraceView
from agentic_rag_backend.retrieval.explanation import Explanation


class LegRankView(View):
    """Rank of the document's best chunk in one leg, without the request's filters. Null beyond the first 1,000 chunks."""

    leg: str
    rank: int | None
    score: float | None
    chunk_id: str | None


class DroppedView(View):
    by: Literal["state", "filters", "as_of", "legs", "limit", "min_score", "strategy"]
    detail: str


class ThemeNameView(View):
    id: str
    name: str


class ExplainView(View):
    """``rank`` is the document's rank in the result, up to 100. ``returned``: it is within ``limit`` and ``min_score``."""

    document_id: str
    title: str
    state: str
    chunks: int
    strategy: str
    limit: int
    returned: bool
    rank: int | None
    legs: list[LegRankView]
    dropped_by: list[DroppedView]
    best: ResultView | None
    themes: list[ThemeNameView] = Field(description="themes of the result that cite the document")
    trace: TraceView

    @classmethod
    def of(cls, found: Explanation) -> ExplainView:
        """Return the view of an explanation."""
        return cls(
            document_id=found.document.id,
            title=found.document.title,
            state=found.document.state.value,
            chunks=found.chunks,
            strategy=found.trace.strategy,
            limit=found.limit,
            returned=not found.dropped,
            rank=found.rank,
            legs=[LegRankView.model_validate(leg) for leg in found.legs],
            dropped_by=[DroppedView.model_validate(reason) for reason in found.dropped],
            best=ResultView.of(found.best) if found.best is not None else None,
            themes=[ThemeNameView(id=theme.id, name=theme.name) for theme in found.themes],
            trace=TraceView.of(found.trace),
        )
