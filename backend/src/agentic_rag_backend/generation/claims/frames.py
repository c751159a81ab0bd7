"""Words around names and numbers, and claims that put another name or number between the same words.

"On 18 February 1848" against "on 18 February 1889": both have a number after the same two words. If the quotes have only
other names there, the claim changed it. A claim in other words has other frames, and none is compared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from agentic_rag_backend.generation.claims.tokens import DATE_WORDS, Mention, Token, lists_of, mentions_in, outside_parentheses
from agentic_rag_backend.language.words import STOP_WORDS

Frame = tuple[str, ...]
"""The side (before, after or around), and two or three words, of which one carries meaning."""
_STOPS = ";:.!?()–—"


def changed_in_frame(
    claim: Sequence[Token], quotes: Iterable[Sequence[Token]], names: Collection[str], exempt: frozenset[str]
) -> Literal["name", "number"] | None:
    """Return whether the claim has another name, or another number, between words of the quotes. None if neither.

    Args:
        exempt: words of names that replace a pronoun of the quotes.
    """
    fillers: dict[tuple[bool, Frame], set[str]] = {}
    for quote in quotes:
        for text in (quote, outside_parentheses(quote)):
            for mention, frames in frames_in(text, names):
                for frame in frames:
                    fillers.setdefault((mention.number, frame), set()).update(mention.forms)
    for text in (claim, outside_parentheses(claim)):
        for mention, frames in frames_in(text, names):
            held = [fillers[key] for frame in frames if (key := (mention.number, frame)) in fillers]
            if held and not mention.forms <= exempt and not any(forms & mention.forms for forms in held):
                return "number" if mention.number else "name"
    return None


def frames_in(tokens: Sequence[Token], names: Collection[str]) -> list[tuple[Mention, frozenset[Frame]]]:
    """Return the names and numbers with the words around them. Members of a list share the words around the list."""
    mentions = mentions_in(tokens, names, linked=False)
    found = [(mention, _frames(tokens, mention)) for mention in mentions]
    shared = [(group, frozenset().union(*(found[index][1] for index in group))) for group in lists_of(tokens, mentions)]
    return [(mentions[index], frames) for group, frames in shared for index in group]


def _frames(tokens: Sequence[Token], mention: Mention) -> frozenset[Frame]:
    before = _words(tokens, mention, -1)
    after = _words(tokens, mention, 1)
    sides = [("before", *_enough(before)), ("after", *_enough(after))]
    if before and after:
        sides.append(("around", before[0], *_enough(after, least=0 if before[0] not in STOP_WORDS else 1)))
        sides.append(("around", before[0], after[0]))
    return frozenset(frame for frame in sides if len(frame) > 2 and set(frame[1:]) - STOP_WORDS)


def _enough(found: Sequence[str], *, least: int = 2) -> Sequence[str]:
    """Return the first words of a side: at least two, and a third if the two carry no meaning; none if there are too few."""
    two = found[:2]
    if len(two) < least or set(two) - STOP_WORDS:
        return two if len(two) >= least else ()
    return found[:3]


def _words(tokens: Sequence[Token], mention: Mention, step: int) -> list[str]:
    """Return up to three words before or after a mention, nearest first, up to the next punctuation."""
    found: list[str] = []
    at = mention.first - 1 if step < 0 else mention.last + 1
    while 0 <= at < len(tokens) and len(found) < 3:
        later = tokens[at + 1] if step < 0 else tokens[at]
        # "25, 2017" is one date.
        date = mention.number and not found and (tokens[at].number or tokens[at].form in DATE_WORDS)
        if later.first or any(mark in later.gap for mark in (_STOPS if date else _STOPS + ",")):
            break
        found.append(tokens[at].form)
        at += step
    return found
