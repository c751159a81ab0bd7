"""The type of a named entity, from the words of the name and the words around it."""

from __future__ import annotations

from agentic_rag_backend.knowledge.extraction.lexicon import (
    COMPANY_SUFFIXES,
    EVENT_HEADS,
    FORMS_OF_ADDRESS,
    GENERATIONS,
    IMPERSONAL,
    NAME_PARTICLES,
    ORGANISATION_CUES,
    ORGANISATION_HEADS,
    PERSON_TITLES,
    PLACE_HEADS,
    PLACE_OPENERS,
    PLACE_PREPOSITIONS,
    ROLE_NOUNS,
    THING_CUES,
    UNDERTAKINGS,
    WORK_CUES,
    WORK_HEADS,
)
from agentic_rag_backend.knowledge.extraction.names.extension import is_adjectival
from agentic_rag_backend.knowledge.extraction.names.names import Span
from agentic_rag_backend.knowledge.extraction.tokens import Tokens

PERSON, ORGANISATION, PLACE, WORK, GROUP = "person", "organisation", "place", "work", "group"
DATE, CODE, OTHER = "date", "code", "other"
SOFTWARE, STANDARD, EVENT, CONCEPT = "software", "standard", "event", "concept"

Votes = dict[str, float]
_PREDICATES = (
    (ROLE_NOUNS, PERSON),
    (WORK_CUES | WORK_HEADS, WORK),
    (PLACE_HEADS, PLACE),
    *((cues, thing) for thing, cues in THING_CUES.items()),
    (ORGANISATION_HEADS, ORGANISATION),
)
_HONOURS = frozenset(["award", "awards", "prize", "medal", "trophy", "cup"])
_STANDARD_NUMBER = 3
"""Digits of the number of a standard, at least: ISO 9001."""


def type_from_words(words: list[str]) -> tuple[str, float] | None:
    """Return the type that a name's own words give away and how surely, or ``None``."""
    lowered = [word.lower() for word in words]
    if len(words) > 1 and lowered[-1] in COMPANY_SUFFIXES and lowered[-1] not in GENERATIONS:
        return ORGANISATION, 3.0
    if len(words) == 1:
        return (ORGANISATION, 0.3) if words[0].isupper() and 3 <= len(words[0]) <= 6 else None
    if lowered[0].rstrip(".") in FORMS_OF_ADDRESS:
        return PERSON, 3.0
    if lowered[0] in UNDERTAKINGS:
        return OTHER, 3.0
    if "war" not in lowered and lowered[-1] in GENERATIONS:
        return PERSON, 2.0
    while len(lowered) > 1 and (lowered[-1] in GENERATIONS or lowered[-1].isdigit()):
        lowered.pop()
    head = _head_word(lowered)
    for heads, name in ((EVENT_HEADS, OTHER), (WORK_HEADS, WORK), (ORGANISATION_HEADS, ORGANISATION), (PLACE_HEADS, PLACE)):
        if head in heads or head.removesuffix("s") in heads:
            return name, 3.0
    return _type_from_form(words)


def type_of_thing(words: list[str], common: float) -> str:
    """Return the type of a name that is no person, organisation or place, from its words; ``common``: see `Ballot`."""
    lowered = [word.lower() for word in words]
    head = _head_word(lowered)
    if len(words) > 1:
        for thing, cues in THING_CUES.items():
            if head in cues or (thing == "form" and lowered[0] in cues):
                return thing
        if words[0].isupper() and len(words[1]) >= _STANDARD_NUMBER and words[1].replace(".", "").isdigit():
            return STANDARD
        if head in EVENT_HEADS - _HONOURS:
            return EVENT
    elif any(letter.isupper() for letter in words[0][1:]) and not words[0].removesuffix("s").isupper():
        return SOFTWARE
    return CONCEPT if common == 1 else OTHER


def _type_from_form(words: list[str]) -> tuple[str, float] | None:
    """Read marks, initials, openers and particles of a name of several words."""
    if "&" in words:
        return ORGANISATION, 1.5
    if any(len(word) == 1 or (len(word) == 2 and word[1] == ".") for word in words[:-1]) and words[0][0].isalpha():
        return PERSON, 2.0
    if words[0].lower() in PLACE_OPENERS:
        return PLACE, 1.0
    if any(word in NAME_PARTICLES for word in words[1:-1]):
        return PERSON, 0.7
    return None


def _head_word(words: list[str]) -> str:
    """Return the head word of a name: the word before the first "of" or "for", otherwise the last word."""
    for position, word in enumerate(words):
        if word in ("of", "for") and position:
            return words[position - 1]
    return words[-1]


def type_from_context(tokens: Tokens, span: Span, sentence: tuple[int, int]) -> list[tuple[str, float]]:
    """Return the votes of the words around one occurrence."""
    words = tokens.words
    begin, end = sentence
    before = [words[index].lower() for index in range(max(begin, span.first - 3), span.first)]
    after = [words[index].lower() for index in range(span.last, min(end, span.last + 6))]
    votes: list[tuple[str, float]] = []
    previous = before[-1] if before else ""
    if previous in (".", ":") and len(before) > 1:
        previous = before[-2]
    if previous in PERSON_TITLES or previous in ROLE_NOUNS:
        votes.append((PERSON, 2.5))
    if previous in WORK_CUES:
        votes.append((WORK, 2.5))
    votes.extend((thing, 2.0) for thing, cues in THING_CUES.items() if previous in cues)
    votes.extend((thing, 0.7) for thing, cues in THING_CUES.items() if after[:1] and after[0] in cues)
    if after[:1] and after[0][0].isdigit() and "." in after[0]:
        votes.append((SOFTWARE, 1.0))
    if previous in ORGANISATION_CUES:
        votes.append((ORGANISATION, 1.5))
    if previous in PLACE_PREPOSITIONS or (previous == "of" and len(before) > 1 and before[-2] in PLACE_HEADS):
        votes.append((PLACE, 0.8))
        votes.append((PERSON, -0.4))
    if previous == "by":
        votes.append((PERSON, 0.5))
    if previous == "the":
        votes.extend([(ORGANISATION, 0.3), (PERSON, -1.2)])
    votes.extend(_predicate_votes(after))
    return votes


def _predicate_votes(after: list[str]) -> list[tuple[str, float]]:
    """Read "X is a …" and "X, a …"."""
    if len(after) < 3 or after[0] not in ("is", "was", ",", "are", "were") or after[1] not in ("a", "an", "the"):
        return []
    return [(type_, 2.0) for word in after[2:] for heads, type_ in _PREDICATES if word in heads][:1]


def may_be_personal(word: str) -> bool:
    """Return whether a word of a name may be a given name or a surname, judged by its letters."""
    lower = word.lower()
    if not word[0].isupper() or word.isupper() or not word[-1].isalpha() or lower in IMPERSONAL or is_adjectival(word):
        return False
    return not lower.endswith(("tion", "ment", "ship", "ness", "ity", "ics", "ing", "ism", "tional", "ical"))


def type_from_disambiguator(text: str) -> str:
    """Return the type that the words in parentheses after a title give: "Rome (film)" is a work."""
    words = text.lower().replace("-", " ").split()
    for word in reversed(words):
        if word in WORK_CUES or word in WORK_HEADS:
            return WORK
        if word in ROLE_NOUNS or word in PERSON_TITLES:
            return PERSON
        if word in ORGANISATION_HEADS:
            return ORGANISATION
        if word in PLACE_HEADS:
            return PLACE
    return OTHER
