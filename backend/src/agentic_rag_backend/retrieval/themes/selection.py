"""Selects the best themes of all levels within a token budget, so that no theme is an ancestor of another.

Summaries of a parent and of its children repeat each other. Themes are taken by descending score, unless an ancestor or
descendant was taken before. So children that are nearer to the question replace their parent, and a parent that is nearer
replaces its branch. A theme that exceeds the rest of the budget is skipped. Smaller themes after it may still fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

"""An estimate. The budget limits the text that a model has to read, not its capacity."""


@dataclass(frozen=True, slots=True)
class ThemeCandidate:
    """A theme that may be selected: ``score`` in [0, 1], ``tokens`` of its text."""

    id: str
    score: float
    tokens: int


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected ids, best first, the tokens of their texts, and the number of themes skipped as relatives or as too large."""

    ids: tuple[str, ...]
    tokens: int
    related: int = 0
    too_large: int = 0


def select_themes(
    candidates: Iterable[ThemeCandidate], parents: Mapping[str, str | None], *, budget_tokens: int, limit: int
) -> Selection:
    """Select at most ``limit`` themes whose texts have at most ``budget_tokens`` tokens together.

    Args:
        candidates: in any order. Equal scores are ordered by id.
        parents: parents of the candidates and of all their ancestors.
    """
    chosen: list[str] = []
    taken: set[str] = set()
    covered: set[str] = set()
    tokens = related = too_large = 0
    for candidate in sorted(candidates, key=lambda each: (-each.score, each.id)):
        if len(chosen) == limit:
            break
        above = set(ancestors(candidate.id, parents))
        if candidate.id in taken or candidate.id in covered or not above.isdisjoint(taken):
            related += 1
        elif tokens + candidate.tokens > budget_tokens:
            too_large += 1
        else:
            chosen.append(candidate.id)
            taken.add(candidate.id)
            covered |= above
            tokens += candidate.tokens
    return Selection(tuple(chosen), tokens, related, too_large)


def ancestors(id: str, parents: Mapping[str, str | None]) -> Iterator[str]:
    """Yield the ancestors of a theme, nearest first."""
    seen = {id}
    above = parents.get(id)
    while above is not None and above not in seen:
        seen.add(above)
        yield above
        above = parents.get(above)
