"""Selects the best themes of all levels within a token budget, so that no theme is an ancestor of another.

Summaries of a parent and of its children repeat each other. Themes are taken by descending score, unless an ancestor or
descendant was taken before. So children that are nearer to the question replace their parent, and a parent that is nearer
replaces its branch. A theme that exceeds the rest of the budget is skipped. Smaller themes after it may still fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass


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
