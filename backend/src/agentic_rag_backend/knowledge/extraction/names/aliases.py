"""Two names of one thing: acronyms in parentheses, "also known as", "formerly", "born", and short forms of a name.

Acronyms follow the idea of Schwartz and Hearst (PSB 2003): the letters of the short form must be found, in order, at
the beginnings of the words of the long form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from agentic_rag_backend.knowledge.extraction.lexicon import LEGAL_FORMS, ORGANISATION_HEADS
from agentic_rag_backend.knowledge.extraction.names.names import Span
from agentic_rag_backend.knowledge.extraction.tokens import Tokens
from agentic_rag_backend.knowledge.extraction.types.entity_types import ORGANISATION, OTHER, PERSON

_KNOWN_AS = """
also known as, also called, also spelled, also written, better known as, best known as, commonly known as, known as,
known professionally as, formerly known as, formerly, previously known as, originally, originally known as, nicknamed,
abbreviated, abbreviated as, aka, a.k.a., born, née, real name, simply known as, often called, or, or simply, later
known as, now known as, alias, dubbed, or the
"""
_ALIAS_PHRASES = frozenset(tuple(phrase.split()) for phrase in _KNOWN_AS.split(","))
_DROPPED = frozenset({"the", "a", "an", ",", "(", '"', "“", "``", "commonly", "sometimes", "officially", "is", "was", "are"})
_LONGEST_GAP = 7
_MOST_ACRONYMS = 256
_JOINS_NAMES = frozenset({"of", "and", "&", "the"})


def is_acronym_of(short: str, words: Sequence[str]) -> bool:
    """Return whether ``short`` abbreviates ``words``: its letters are their initials in order; small words may be left out."""
    letters = [letter for letter in short.lower() if letter.isalnum()]
    if len(letters) < 2 or len(letters) > 12 or len(words) < 2 or not short[0].isupper():
        return False
    parts = [part for word in words for part in word.lower().replace("-", " ").split() if part[0].isalnum()]
    position = 0
    for part in parts:
        if position < len(letters) and part[0] == letters[position]:
            position += 1
        elif len(part) > 3:
            return False
    return position == len(letters)


def acronyms_of(words: Sequence[str], *, longest: int) -> set[str]:
    """Return the acronyms of at most ``longest`` ASCII letters or digits that abbreviate ``words``, in lower case.

    A name of very many small words, which may be left out, has more acronyms than are returned.
    """
    parts = [part for word in words for part in word.lower().replace("-", " ").split() if part[0].isalnum()]
    acronyms = {""}
    for part in parts:
        longer = {acronym + part[0] for acronym in acronyms if len(acronym) < longest}
        acronyms = longer if len(part) > 3 or len(acronyms) > _MOST_ACRONYMS else longer | acronyms
    exact = all(len(part) > 3 for part in parts)
    return {
        acronym
        for acronym in acronyms
        if acronym.isascii() and acronym[:1].isalpha() and (exact or is_acronym_of(acronym.upper(), words)) and len(acronym) > 1
    }


def without_legal_form(name: str) -> str:
    """Return a company's name without the words of its legal form ("Acme" for "Acme, Inc"); as it is if nothing is left."""
    words = name.split()
    while len(words) > 1 and words[-1].lower().rstrip(".") in LEGAL_FORMS:
        words.pop()
    return name if words[-1] in ("&", "and", "of") else " ".join(words).rstrip(",")


def alias_pairs(tokens: Tokens, spans: Sequence[Span], sentence: tuple[int, int]) -> list[tuple[Span, Span]]:
    """Return (canonical, alias) for neighbouring names of one sentence that the text equates."""
    pairs: list[tuple[Span, Span]] = []
    for number, (before, right) in enumerate(pairwise(spans)):
        gap = (
            [tokens.words[index].lower() for index in range(before.last, right.first)]
            if right.first - before.last <= _LONGEST_GAP
            else None
        )
        if not gap:
            continue
        left_words, right_words = tokens.words[before.first : before.last], tokens.words[right.first : right.last]
        if gap in (["("], [","]) or gap == ["(", "the"]:
            pair = _read_parenthesis(
                before, right, left_words, right_words, gap[0] == "(" and _is_closed_after(tokens, right, sentence[1])
            )
            if pair is not None:
                pairs.append(pair)
        elif (
            gap[0] in "(,;"
            and tuple(word for word in gap if word not in _DROPPED) in _ALIAS_PHRASES
            and not _names_longer_phrase(tokens, spans[: number + 1], right_words)
        ):
            pairs.append((before, right))
    return pairs


def _names_longer_phrase(tokens: Tokens, before: Sequence[Span], alias: list[str]) -> bool:
    """Return whether ``alias`` begins a phrase of several names that ends with the last one of ``before``.

    In "the United Kingdom of Great Britain and Northern Ireland, commonly known as the United Kingdom", the alias is not another
    name of Northern Ireland.
    """
    position = len(before) - 1
    while position > 0:
        between = tokens.words[before[position - 1].last : before[position].first]
        if not between or not _JOINS_NAMES.issuperset(word.lower() for word in between):
            break
        position -= 1
    start = before[position].first
    phrase = tokens.words[start : before[-1].last]
    return position < len(before) - 1 and phrase[: len(alias)] == alias


def _is_closed_after(tokens: Tokens, span: Span, end: int) -> bool:
    return span.last < end and tokens.words[span.last] in (")", ";", ",")


def _read_parenthesis(
    span: Span, right: Span, left_words: list[str], right_words: list[str], closed: bool
) -> tuple[Span, Span] | None:
    if not closed:
        return None
    if len(right_words) == 1 and is_acronym_of(right_words[0], left_words):
        return span, right
    if len(left_words) == 1 and is_acronym_of(left_words[0], right_words):
        return right, span
    return None


def short_forms(types: Mapping[str, str], words_of: Mapping[str, list[str]]) -> dict[str, str]:
    """Return short name → long name for the names of one document.

    A single word that is the last word of exactly one person's name of the document (or else the first word of exactly
    one), and a name that continues as exactly one organisation's name ("Power Corporation" of Canada), are short forms.
    """
    endings: dict[str, set[str]] = {}
    openings: dict[str, set[str]] = {}
    organisations: dict[str, set[str]] = {}
    for key, type_ in types.items():
        parts = key.split()
        if len(parts) < 2:
            continue
        if type_ == PERSON:
            endings.setdefault(parts[-1], set()).add(key)
            openings.setdefault(parts[0], set()).add(key)
        elif type_ == ORGANISATION:
            for length in range(1, len(parts)):
                organisations.setdefault(" ".join(parts[:length]), set()).add(key)
    long_names: dict[str, str] = {}
    for key, type_ in types.items():
        if type_ not in (PERSON, OTHER, ORGANISATION):
            continue
        owners = _owners_of(key, type_, endings, openings)
        if not owners and (words_of[key][-1].lower() in ORGANISATION_HEADS):
            owners = organisations.get(key, set())
        if len(owners) == 1:
            long_names[key] = next(iter(owners))
    return long_names


def _owners_of(key: str, type_: str, endings: Mapping[str, set[str]], openings: Mapping[str, set[str]]) -> set[str]:
    if " " in key or type_ == ORGANISATION:
        return set()
    return endings.get(key) or openings.get(key) or set()
