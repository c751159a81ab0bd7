"""When a relationship holds, where its sentence says so plainly: "from 2009 to 2014", "since 2018", "until March 2012".

A time belongs to the name directly before it, or, at the beginning of a sentence, to the sentence's first relationship.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentic_rag_backend.knowledge.extraction.lexicon import word_set
from agentic_rag_backend.knowledge.extraction.relations.relations import Node, Pair
from agentic_rag_backend.knowledge.extraction.tokens import Tokens
from agentic_rag_backend.knowledge.extraction.types.entity_types import DATE
from agentic_rag_backend.knowledge.relation_types import NEGATION
from agentic_rag_backend.language.times import period_of
from agentic_rag_backend.language.values import find_moments

_SURE = 0.8
"""Least confidence of a relationship that takes a time."""
_NEAR = 3
"""Words between the name and the preposition, at most."""
_SKIPPED = word_set("the early late mid about around circa , (")
"""Words between a preposition and its date, or before the preposition."""
_BEGINNINGS = word_set("since from")
_ENDS = word_set("until till")
_RANGE_ENDS = word_set("to until till through and – - —")
_POINTS = word_set("in on")
_BEGINNING_VERBS = word_set(
    """
    appointed elected named became joined succeeded founded established acquired bought purchased moved started began opened
    married chosen promoted hired installed took sworn crowned formed launched
    """
)
_BEFORE_CHRIST = ("bc", "bce", "b.c.")

Validity = tuple[str | None, str | None]
"""Beginning and end (exclusive) as ISO 8601 in UTC; None: unknown."""
UNKNOWN: Validity = (None, None)


@dataclass(frozen=True, slots=True)
class _Time:
    """A time of a sentence: tokens ``first`` up to ``last``, the preposition included.

    A ``point`` ("in 2016") is a beginning only if the relationship begins with a verb such as "was appointed".
    """

    first: int
    last: int
    validity: Validity
    point: bool = False


def validities(tokens: Tokens, nodes: Sequence[Node], pairs: Sequence[Pair], sentence: tuple[int, int]) -> list[Validity]:
    """Return the validity of each of ``pairs``, which are relationships among ``nodes`` of one sentence."""
    dates = [node for node in nodes if node.type == DATE]
    if not dates:
        return [UNKNOWN] * len(pairs)
    times = _read_times(tokens, dates, sentence)
    return [_choose_validity(tokens, nodes, pair, times, sentence[0]) for pair in pairs]


def _choose_validity(tokens: Tokens, nodes: Sequence[Node], pair: Pair, times: Sequence[_Time], begin: int) -> Validity:
    if pair.target.type == DATE or pair.relation.startswith(NEGATION) or pair.confidence < _SURE:
        return UNKNOWN
    verbs = tokens.words[pair.source.last : pair.target.first]
    begins = any(word.lower() in _BEGINNING_VERBS for word in verbs)
    times = [time for time in times if begins or not time.point]
    for time in times:
        between = tokens.words[pair.target.last : time.first]
        if 0 <= time.first - pair.target.last <= _NEAR and not _has_stop(between):
            return time.validity
    names = [node for node in nodes if node.type != DATE]
    leading = next((time for time in times if time.first <= begin + 1), None)
    if leading is not None and len(names) > 1 and pair.source is names[0] and pair.target is names[1]:
        return leading.validity
    return UNKNOWN


def _has_stop(words: Sequence[str]) -> bool:
    return any(not word[0].isalnum() and word not in (",", "(") for word in words)


def _read_times(tokens: Tokens, dates: Sequence[Node], sentence: tuple[int, int]) -> list[_Time]:
    """Return the times of a sentence: dates with the prepositions before them, and ranges of two dates."""
    times: list[_Time] = []
    used: set[int] = set()
    for number, date in enumerate(dates):
        if number in used:
            continue
        at, word = _find_preposition(tokens, date.first, sentence[0])
        period = _read_period(date.name)
        if period is None:
            continue
        following = dates[number + 1] if number + 1 < len(dates) else None
        if word in ("from", "between") and following is not None and _form_range(tokens, date, following):
            end = _read_period(following.name)
            if end is not None and end[1] > period[0]:
                used.add(number + 1)
                times.append(_Time(at, following.last, (period[0], end[1])))
        elif word == "from" and _is_range(date.name):
            times.append(_Time(at, date.last, period))
        elif word in _BEGINNINGS:
            times.append(_Time(at, date.last, (period[0], None)))
        elif word in _ENDS:
            times.append(_Time(at, date.last, (None, period[1])))
        elif word in _POINTS and not _is_range(date.name):
            times.append(_Time(at, date.last, (period[0], None), point=True))
    return times


def _find_preposition(tokens: Tokens, date_start: int, begin: int) -> tuple[int, str]:
    """Return the token number and the word before a date, articles and "early" left out."""
    at = date_start - 1
    while at > begin and tokens.words[at].lower() in _SKIPPED:
        at -= 1
    return (at, tokens.words[at].lower()) if at >= begin else (date_start, "")


def _form_range(tokens: Tokens, node: Node, following: Node) -> bool:
    between = [word.lower() for word in tokens.words[node.last : following.first]]
    return 1 <= len(between) <= 2 and between[0] in _RANGE_ENDS and set(between[1:]) <= _SKIPPED


def _is_range(name: str) -> bool:
    dates = find_moments(name)
    return bool(dates) and dates[0].years is not None and dates[0].years[0] != dates[0].years[1]


def _read_period(name: str) -> tuple[str, str] | None:
    """Return the beginning and the end of a date, if it has a year of our era."""
    dates = find_moments(name)
    if not dates or dates[0].years is None or name.lower().endswith(_BEFORE_CHRIST):
        return None
    first_year, last_year = dates[0].years
    parts = f"-{dates[0].month:02d}" if dates[0].month else ""
    parts += f"-{dates[0].day:02d}" if dates[0].month and dates[0].day else ""
    begin, end = period_of(f"{first_year:04d}{parts}"), period_of(f"{last_year:04d}{parts}")
    return None if begin is None or end is None else (begin[0].isoformat(), end[1].isoformat())
