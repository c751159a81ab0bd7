"""Selects themes for a question within a token budget, and asks a cheap model which themes are relevant.

Summaries of a parent and of its children repeat each other. Themes are taken by descending score, unless an ancestor or
descendant was taken before. So children that are nearer to the question replace their parent, and a parent that is nearer
replaces its branch. A theme that exceeds the rest of the budget is skipped. Smaller themes after it may still fit.

Branches below an irrelevant root are skipped (dynamic community selection, as GraphRAG's authors describe it). Only themes
that search found are rated, so the number of calls does not grow with the corpus.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentic_rag_backend.models.llm.base import INTEGER, NUMBER, list_of, object_of, objects_in
from agentic_rag_backend.prompts import built_in, fence
from agentic_rag_backend.retrieval.structured_calls import Spending, StructuredCalls, StructuredReply, number_in


@dataclass(frozen=True, slots=True)
class ThemeSelection:
    """The selected ids, best first, the tokens of their texts, and the number of themes skipped as relatives or as too large."""

    ids: tuple[str, ...]
    tokens: int
    related: int = 0
    too_large: int = 0


def select_themes(
    scores: Mapping[str, float],
    parents: Mapping[str, str | None],
    tokens_of: Callable[[str], int],
    *,
    budget_tokens: int,
    limit: int,
) -> ThemeSelection:
    """Select at most ``limit`` themes whose texts have at most ``budget_tokens`` tokens together.

    Args:
        scores: scores in [0, 1] by id. Equal scores are ordered by id.
        parents: parents of the candidates and of all their ancestors.
        tokens_of: tokens of the text of a theme. Only those of themes that may be taken are counted.
    """
    chosen: list[str] = []
    selected_ids: set[str] = set()
    covered: set[str] = set()
    tokens = related = too_large = 0
    for id in sorted(scores, key=lambda theme_id: (-scores[theme_id], theme_id)):
        if len(chosen) == limit:
            break
        above = set(ancestors(id, parents))
        if id in covered or not above.isdisjoint(selected_ids):
            related += 1
            continue
        size_tokens = tokens_of(id)
        if tokens + size_tokens > budget_tokens:
            too_large += 1
            continue
        chosen.append(id)
        selected_ids.add(id)
        covered |= above
        tokens += size_tokens
    return ThemeSelection(tuple(chosen), tokens, related, too_large)


def ancestors(id: str, parents: Mapping[str, str | None]) -> Iterator[str]:
    """Yield the ancestors of a theme, nearest first."""
    visited = {id}
    above = parents.get(id)
    while above is not None and above not in visited:
        visited.add(above)
        yield above
        above = parents.get(above)


MAX_PER_CALL = 20
"""Themes per call."""
BEST = 5.0
OWN_SHARE = 0.3
"""Weight of the search score next to the rating. It orders themes with equal ratings."""
UNRATED_SHARE = 0.5
"""Score factor of themes that no call was left for, so that rated themes come first."""
_SUMMARY_CHARACTERS = 400
_SCHEMA = object_of({"ratings": list_of(object_of({"theme": INTEGER, "relevance": NUMBER}), MAX_PER_CALL)})


@dataclass(frozen=True, slots=True)
class RatedTheme:
    """A theme in the form that the model reads. ``score`` in [0, 1] is the search score."""

    id: str
    name: str
    summary: str
    score: float


@dataclass(frozen=True, slots=True)
class Ratings:
    """Scores in [0, 1] of the kept themes, and the number of themes that the model rejected or did not rate."""

    scores: Mapping[str, float]
    dropped: int = 0
    unrated: int = 0


class ThemeRater:
    """Rates themes with a language model."""

    def __init__(self, calls: StructuredCalls) -> None:
        self._calls = calls

    @property
    def possible(self) -> bool:
        """Whether a model is available."""
        return self._calls.possible

    async def rate(
        self, question: str, themes: Sequence[RatedTheme], parents: Mapping[str, str | None], spending: Spending
    ) -> Ratings:
        """Rate roots first, then the themes below relevant ones. Themes below irrelevant ones are dropped."""
        below = _nearest_below(themes, parents)
        by_id = {theme.id: theme for theme in themes}
        relevance: dict[str, float] = {}
        frontier = below[None]
        while frontier and spending.left:
            theme_ids = sorted(frontier, key=lambda id: (-by_id[id].score, id))[: MAX_PER_CALL * spending.left]
            relevance |= await self._rate_themes(question, [by_id[id] for id in theme_ids], spending)
            # Keep themes whose call failed, and rate the themes below them.
            frontier = [id for above in theme_ids if relevance.get(above, 1.0) > 0 for id in below[above]]
        useless = {id for id, value in relevance.items() if value == 0}
        useful = [theme for theme in themes if useless.isdisjoint((theme.id, *ancestors(theme.id, parents)))]
        scores = {theme.id: _combine_ratings(theme.score, relevance.get(theme.id)) for theme in useful}
        return Ratings(scores, len(themes) - len(useful), sum(theme.id not in relevance for theme in useful))

    async def _rate_themes(self, question: str, themes: Sequence[RatedTheme], spending: Spending) -> dict[str, float]:
        batches = [themes[start : start + MAX_PER_CALL] for start in range(0, len(themes), MAX_PER_CALL)]
        spending.begin(len(batches))
        replies = await asyncio.gather(*(self._ask(question, batch) for batch in batches))
        ratings: dict[str, float] = {}
        for batch, reply in zip(batches, replies, strict=True):
            spending.add_call(reply)
            ratings |= _ratings_in(reply, batch)
        return ratings

    async def _ask(self, question: str, batch: Sequence[RatedTheme]) -> StructuredReply:
        themes = "\n".join(
            fence("theme", theme.summary[:_SUMMARY_CHARACTERS], attributes={"id": number, "name": theme.name})
            for number, theme in enumerate(batch, 1)
        )
        values = {"themes": themes, "question": fence("question", question)}
        return await self._calls.ask(built_in("theme_relevance"), values, _SCHEMA)


def _combine_ratings(score: float, relevance: float | None) -> float:
    return UNRATED_SHARE * score if relevance is None else OWN_SHARE * score + (1 - OWN_SHARE) * relevance / BEST


def _ratings_in(reply: StructuredReply, batch: Sequence[RatedTheme]) -> dict[str, float]:
    ratings: dict[str, float] = {}
    for item in objects_in(reply.parsed or {}, "ratings"):
        number, relevance = number_in(item, "theme", low=0, high=len(batch) + 1), number_in(item, "relevance", low=0, high=BEST)
        if number is not None and relevance is not None and 1 <= number <= len(batch):
            ratings[batch[int(number) - 1].id] = relevance
    return ratings


def _nearest_below(themes: Sequence[RatedTheme], parents: Mapping[str, str | None]) -> defaultdict[str | None, list[str]]:
    """Return themes by their nearest ancestor in the list. Themes without one are under None."""
    theme_ids = {theme.id for theme in themes}
    below: defaultdict[str | None, list[str]] = defaultdict(list)
    for theme in themes:
        below[next((id for id in ancestors(theme.id, parents) if id in theme_ids), None)].append(theme.id)
    return below
