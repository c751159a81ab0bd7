"""Themes for questions of the whole corpus: as many as a budget of tokens holds, from which partial answers are made."""

from __future__ import annotations

from dataclasses import dataclass

from agentic_rag_backend.domain.query import Query, Retrieval, Trace
from agentic_rag_backend.domain.words import content_forms, words
from agentic_rag_backend.retrieval.base import timed
from agentic_rag_backend.retrieval.hydration import time_detail
from agentic_rag_backend.retrieval.queries.defaults import MOST_THEMES
from agentic_rag_backend.retrieval.structured_calls import Spending
from agentic_rag_backend.retrieval.themes.finder import ThemeFinder, ThemeSearch

LEG_LIMIT = 200
RATING_SHARE = 0.1
"""Of a theme's score: such questions are near to nothing in particular, and then what the corpus says most about counts."""


_OF_EVERYTHING = frozenset(
    word.form
    for word in words(
        "theme topic subject issue matter content information document text file source collection corpus corpora dataset "
        "library archive material main central key major important principal chief common recurring recur frequent general "
        "overall broad whole entire everything overview summary summarise summarize outline describe explain list name tell give "
        "discuss mention cover covered speak talk appear occur come again repeatedly often most idea story thing point "
        "here available"
    )
)
"""Words of a question that asks what there is, and names nothing of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalOptions:
    """Defaults of a deployment: tokens of all themes together, and model calls of one request, rating included."""

    budget_tokens: int = 12_000
    max_calls: int = 8


class GlobalRetriever:
    """Returns the themes that a corpus-wide answer is made from; the answer itself takes map and reduce (`generation`)."""

    def __init__(self, finder: ThemeFinder, options: GlobalOptions) -> None:
        self._finder = finder
        self._options = options

    @timed
    async def retrieve(self, query: Query) -> Retrieval:
        """Return at most ``query.high_limit`` themes within the budget, none within another, best first."""
        # Two are kept: for one partial answer at least, and for the answer.
        spending = Spending(max(0, int(query.options.get("max_calls", self._options.max_calls)) - 2))
        of_all = about_everything(query.text)
        search = ThemeSearch(
            limit=min(query.high_limit, MOST_THEMES),
            budget_tokens=int(query.options.get("budget_tokens", self._options.budget_tokens)),
            leg_limit=LEG_LIMIT,
            looked_at=MOST_THEMES,
            rated=query.options.get("rate") == "model",
            rating_share=1.0 if of_all else RATING_SHARE,
        )
        found = await self._finder.find(query, search, spending)
        return Retrieval(
            themes=found.themes,
            relevance=max((theme.score for theme in found.themes), default=0.0),
            usage=spending.usage,
            trace=Trace(
                strategy="global",
                methods_used=("community",),
                failures=found.failures,
                warnings=found.warnings,
                details={
                    **time_detail(query),
                    "generation": found.pointer.generation,
                    "communities_stale": found.pointer.stale,
                    "themes": dict(found.details),
                    "about_everything": of_all,
                },
            ),
        )


def about_everything(question: str) -> bool:
    """Tell whether a question asks what the documents are about, and of nothing in particular: it names no subject."""
    forms = content_forms(question)
    return bool(forms) and forms <= _OF_EVERYTHING
