"""Which themes stand for the hierarchy: the best of all levels under a budget of tokens, none within another.

Summaries of a parent and of its children say the same twice. By falling score a theme is taken unless one above or below it
was taken before: a parent gives way to children that are nearer to the question, and a whole branch to a parent that is
nearer than any of them. What does not fit in the rest of the budget is passed over; smaller themes after it may still fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

CHARACTERS_A_TOKEN = 4
"""Estimate; the budget bounds what a model is asked to read, not what it could."""


@dataclass(frozen=True, slots=True)
class ThemeCandidate:
    """A theme that may be chosen: ``score`` in [0, 1], ``tokens`` of its text."""

    id: str
    score: float
    tokens: int


@dataclass(frozen=True, slots=True)
class Selection:
    """The ids chosen, best first, and the tokens of their texts together; why others were not: relatives, or too large."""

    ids: tuple[str, ...]
    tokens: int
    related: int = 0
    too_large: int = 0


def select_themes(
    candidates: Iterable[ThemeCandidate], parents: Mapping[str, str | None], *, budget_tokens: int, limit: int
) -> Selection:
    """Choose at most ``limit`` themes whose texts have at most ``budget_tokens`` tokens together.

    Args:
        candidates: in any order; equal scores are taken by id.
        parents: of the candidates and of everything above them.
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
    """Yield what is above a theme, nearest first."""
    seen = {id}
    above = parents.get(id)
    while above is not None and above not in seen:
        seen.add(above)
        yield above
        above = parents.get(above)


def text_tokens(texts: Sequence[str]) -> int:
    """Return the tokens of some texts, estimated at four characters each."""
    return -(-sum(len(text) for text in texts) // CHARACTERS_A_TOKEN)
