"""Names of Chinese and Japanese sentences, which have no capitals, and changes of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from agentic_rag_backend.generation.claims.tokens import Token
from agentic_rag_backend.language.vocabulary.lexicon import Language

_LONGEST = 8
"""Characters between two others that may be a name."""
_FOREIGN_SHARE = 0.5
"""Least share of characters that write foreign names, in a name without a particle before it."""
_DIRECTIONS = frozenset("东西南北東")


def replaces_name(claim: Sequence[Token], quotes: Sequence[Sequence[Token]], language: Language) -> bool:
    """Return whether a claim has another name, or another direction, between the same two characters as the quotes."""
    pairs = frozenset(first.form + second.form for quote in quotes for first, second in pairwise(quote))
    texts = ["".join(token.form for token in quote) for quote in quotes]
    index = 0
    while index < len(claim):
        if claim[index].form in _DIRECTIONS and not any(claim[index].form in text for text in texts):
            return True
        end = index
        while end < len(claim) and claim[end].character and not _stands_beside(claim, end, pairs):
            end += 1
        if 1 < end - index <= _LONGEST and _may_be_name(claim, index, end, language):
            name = "".join(token.form for token in claim[index:end])
            previous = claim[index - 1].form if index else ""
            right = claim[end].form if end < len(claim) else ""
            if any(_fills_gap(text, previous, right, name) for text in texts):
                return True
        index = max(end, index + 1)
    return False


def _stands_beside(claim: Sequence[Token], index: int, pairs: frozenset[str]) -> bool:
    """Return whether a character stands beside the same character in the quotes."""
    before = index > 0 and claim[index - 1].form + claim[index].form in pairs
    return before or (index + 1 < len(claim) and claim[index].form + claim[index + 1].form in pairs)


def _may_be_name(claim: Sequence[Token], start: int, end: int, language: Language) -> bool:
    """Return whether characters look like a name: they write a foreign one, or follow a particle."""
    share = sum(token.form in language.transliteration for token in claim[start:end]) / (end - start)
    return (start > 0 and claim[start - 1].form in language.particles) or (share >= _FOREIGN_SHARE and end < len(claim))


def _fills_gap(text: str, previous: str, right: str, name: str) -> bool:
    """Return whether ``text`` has something else between the same neighbours; the end of a text is no neighbour."""
    if name in text or not (previous or right):
        return False
    at = text.find(previous)
    while at >= 0:
        begin = at + len(previous)
        if not right:
            return begin < len(text)
        if text.find(right, begin + 1, begin + _LONGEST + len(right)) >= 0:
            return True
        at = text.find(previous, at + 1) if previous else -1
    return False


def exchanges_sides(claim: Sequence[Token], quotes: Sequence[Sequence[Token]], language: Language) -> bool:
    """Return whether a claim has other characters on one side of a particle than the quotes."""
    fillers: dict[tuple[str, str, str], set[str]] = {}
    for quote in quotes:
        for frame, filler in _list_sides(quote, language):
            fillers.setdefault(frame, set()).add(filler)
    return any(filler not in fillers[frame] for frame, filler in _list_sides(claim, language) if frame in fillers)


def _list_sides(tokens: Sequence[Token], language: Language) -> Iterator[tuple[tuple[str, str, str], str]]:
    """Yield the particles with the characters on one side, and the two characters on the other side.

    A Japanese particle belongs to the characters before it. Those after it change with the order of the sentence.
    """
    for index, token in enumerate(tokens):
        if token.form in language.particles:
            before, after = _read_pair(tokens, index - 1, -1), _read_pair(tokens, index + 1, 1)
            if before and after:
                if not language.verbs_last:
                    yield ("after", before, token.form), after
                yield ("before", after, token.form), before


def _read_pair(tokens: Sequence[Token], start: int, step: int) -> str:
    """Return the two nearest characters that carry meaning, in the same clause; empty if there are fewer."""
    characters: list[str] = []
    at = start
    while 0 <= at < len(tokens) and len(characters) < 2:
        later = tokens[at + 1] if step < 0 else tokens[at]
        if later.breaks or later.first or tokens[at].number:
            break
        if tokens[at].character:
            characters.append(tokens[at].form)
        at += step
    return "".join(characters if step > 0 else reversed(characters)) if len(characters) > 1 else ""
