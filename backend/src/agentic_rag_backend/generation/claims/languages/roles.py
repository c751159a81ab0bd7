"""Names and numbers that changed places: the words around them in the quotes are those around others in the claim."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from agentic_rag_backend.generation.claims.base import Reason
from agentic_rag_backend.generation.claims.languages.lexicon import PARTICLES, Lexicon
from agentic_rag_backend.generation.claims.languages.passages import ReadPassage, ReadText
from agentic_rag_backend.generation.claims.languages.terms import Term, is_character, same_name

Frame = tuple[str, ...]
_NAME = "<name>"
_BEFORE_NAME, _AFTER_NAME = "before a name", "after a name"
"""Sides of frames in which all names are alike."""


@dataclass(frozen=True)
class Quoted:
    """A quote: ``terms`` are its words, ``before`` the words of the passage before it."""

    held: ReadPassage
    terms: tuple[Term, ...]
    before: tuple[Term, ...]


def has_name(form: str, known: Iterable[str], endings: frozenset[str]) -> bool:
    """Return whether one of ``known`` is ``form`` or differs in an ending."""
    beginning = form[:3]
    return any(other.startswith(beginning) and same_name(form, other, endings) for other in known)


def changes_frame(claim: ReadText, quotes: Sequence[Quoted]) -> Reason | None:
    """Return whether the claim has another name or number between the words that surround one in the quotes."""
    fillers: dict[tuple[bool, Frame], list[frozenset[str]]] = {}
    for quote in quotes:
        for forms, number, frames in _frames(quote.terms, claim.lexicon):
            for frame in frames:
                fillers.setdefault((number, frame), []).append(forms)
    endings = claim.lexicon.endings
    known = {term.form for quote in quotes for term in (*quote.terms, *quote.held.title) if term.capital}
    for forms, number, frames in _frames(claim.terms, claim.lexicon):
        if not number and not any(has_name(form, known, endings) for form in forms):
            # "Später schenkte Voss": the first word is no name.
            frames = [frame for frame in frames if frame[0] not in (_BEFORE_NAME, _AFTER_NAME)]
        for held in (fillers.get((number, frame), ()) for frame in frames):
            if held and not any(has_name(form, each, endings) for each in held for form in forms):
                return "number" if number else "roles"
    return None


def _frames(terms: Sequence[Term], lexicon: Lexicon) -> Iterator[tuple[frozenset[str], bool, list[Frame]]]:
    """Yield the forms of capitalised words and numbers, and the words before and after each.

    In a second form of these frames, all names are alike: "besiegte Karl Meier" stands before "Anna Petersen" and the reverse if
    the two change places.
    """
    index = 0
    opening = 0
    while index < len(terms):
        term = terms[index]
        opening = index if term.first else opening
        end = index + 1
        if term.number or (term.capital and term.content):
            while not term.number and end < len(terms) and _continues(terms[end]):
                end += 1
            before = _beside(terms, index - 1, -1)
            # In German and in languages with many endings, the words after a noun change with the order of the sentence.
            fixed_order = bool(lexicon.stops) and not lexicon.nouns
            after = _beside(terms, end, 1) if term.number or fixed_order else []
            sides = [("before", before), ("after", after)]
            if not term.number:
                named = end - index > 1 or _may_be_name(terms, index, lexicon)
                begins = index == opening or (index == opening + 1 and terms[opening].raw.lower() in lexicon.articles)
                subject = lexicon.nouns and begins and named
                sides.append((_BEFORE_NAME, _beside_names(terms, index - 1, -1, lexicon)))
                sides.append((_AFTER_NAME, _beside_names(terms, end, 1, lexicon) if fixed_order or subject else []))
            frames = [(side, *words) for side, words in sides if words]
            yield frozenset(each.form for each in terms[index:end]), term.number, frames
        index = end


def _may_be_name(terms: Sequence[Term], index: int, lexicon: Lexicon) -> bool:
    """Return whether a word may be a name: it has a capital and, where all nouns have, no article before it."""
    term = terms[index]
    if not term.capital or not term.content or term.number:
        return False
    before = terms[index - 1].raw.lower() if index and not term.first and not term.breaks else ""
    return not (lexicon.nouns and (before in lexicon.articles or before in lexicon.pronouns))


def _beside_names(terms: Sequence[Term], start: int, step: int, lexicon: Lexicon) -> list[str]:
    """Return the words as `_beside`, with `_NAME` for each name.

    They are two of which one carries meaning and is no name, or three, or none.
    """
    found: list[str] = []
    meaning = False
    at = start
    while 0 <= at < len(terms):
        later = terms[at + 1] if step < 0 else terms[at]
        if later.breaks or later.first:
            break
        name = _may_be_name(terms, at, lexicon)
        if not (name and found[-1:] == [_NAME]):
            found.append(_NAME if name else terms[at].form)
            meaning = meaning or (terms[at].content and not name)
        if len(found) > 2 or (len(found) > 1 and meaning):
            return found
        at += step
    return []


def _continues(term: Term) -> bool:
    return term.capital and term.content and not term.number and not term.breaks and not term.first


def _beside(terms: Sequence[Term], start: int, step: int) -> list[str]:
    """Return the words before or after a place, nearest first: two of which one carries meaning, or three, or none."""
    found: list[Term] = []
    at = start
    while 0 <= at < len(terms) and len(found) < 3:
        later = terms[at + 1] if step < 0 else terms[at]
        if later.breaks or later.first:
            break
        found.append(terms[at])
        if len(found) > 1 and any(term.content for term in found):
            return [term.form for term in found]
        at += step
    return []


def changes_place(claim: ReadText, quotes: Sequence[Quoted]) -> bool:
    """Return whether a claim without capitals has other characters on one side of a particle than the quotes."""
    particles = PARTICLES.get(claim.language or "")
    if particles is None:
        return False
    fillers: dict[tuple[str, str, str], set[str]] = {}
    for quote in quotes:
        for frame, filler in _places(quote.terms, particles):
            fillers.setdefault(frame, set()).add(filler)
    return any(filler not in fillers[frame] for frame, filler in _places(claim.terms, particles) if frame in fillers)


def _places(terms: Sequence[Term], particles: frozenset[str]) -> Iterator[tuple[tuple[str, str, str], str]]:
    """Yield the particles with the characters on one side, and the two characters on the other side."""
    for index, term in enumerate(terms):
        if term.form not in particles:
            continue
        before, after = _two(terms, index - 1, -1), _two(terms, index + 1, 1)
        if before and after:
            yield ("after", before, term.form), after
            yield ("before", after, term.form), before


def _two(terms: Sequence[Term], start: int, step: int) -> str:
    """Return the two nearest characters that carry meaning, in the same clause; empty if there are fewer."""
    found: list[str] = []
    at = start
    while 0 <= at < len(terms) and len(found) < 2:
        later = terms[at + 1] if step < 0 else terms[at]
        if later.breaks or later.first or terms[at].number:
            break
        if is_character(terms[at]):
            found.append(terms[at].form)
        at += step
    return "".join(found if step > 0 else reversed(found)) if len(found) > 1 else ""
