"""Explanation of a search for one document."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from agentic_rag_backend.api.schemas.base import View
from agentic_rag_backend.api.schemas.questions.search import ResultView, TraceView
from agentic_rag_backend.retrieval.ranking_explanation import Explanation


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
    def of(cls, explanation: Explanation) -> ExplainView:
        """Return the view of an explanation."""
        return cls(
            document_id=explanation.document.id,
            title=explanation.document.title,
            state=explanation.document.state.value,
            chunks=explanation.chunks,
            strategy=explanation.trace.strategy,
            limit=explanation.limit,
            returned=not explanation.dropped,
            rank=explanation.rank,
            legs=[LegRankView.model_validate(leg) for leg in explanation.legs],
            dropped_by=[DroppedView.model_validate(reason) for reason in explanation.dropped],
            best=ResultView.of(explanation.best) if explanation.best is not None else None,
            themes=[ThemeNameView(id=theme.id, name=theme.name) for theme in explanation.themes],
            trace=TraceView.of(explanation.trace),
        )
