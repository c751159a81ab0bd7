"""Compares a claim with passages in another language: numbers, names, denials and hedges agree with a quote.

That the quote states the claim is left to an embedder that knows both languages (`embedding`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentic_rag_backend.generation.claims.base import Reason, SupportingSpan
from agentic_rag_backend.generation.claims.languages.conflicts import denies, hedges, misquotes
from agentic_rag_backend.generation.claims.languages.lexicon import TRANSLATED, TRANSLITERATION, Lexicon
from agentic_rag_backend.generation.claims.languages.passages import Clause, ReadPassage, ReadText
from agentic_rag_backend.generation.claims.languages.terms import Term, alike
from agentic_rag_backend.generation.claims.languages.units import changes_unit
from agentic_rag_backend.language.languages import is_mostly_latin

FOREIGN_NAME = 3
"""Characters of a foreign name in Chinese, at least."""
_RUNS = re.compile(f"[{''.join(sorted(TRANSLITERATION))}]+")
MAX_QUOTES = 40
"""Quotes in other languages that are compared with one claim."""


@dataclass(frozen=True)
class Candidate:
    """A possible quote of a passage in another language, and the reason why the claim contradicts it; None if it does not."""

    support: SupportingSpan
    language: str
    reason: Reason | None


def candidates(claim: ReadText, held: Sequence[ReadPassage]) -> list[Candidate]:
    """Return the sentences of passages in other languages, and each two neighbours, with their contradictions."""
    quoted = misquotes(claim.text, held)
    found: list[Candidate] = []
    for passage in held:
        for window in passage.windows[:MAX_QUOTES]:
            reason: Reason | None = "quote" if quoted else _contradiction(claim, passage, window.start, window.end)
            support = SupportingSpan(passage.passage, window.start, window.end, 0.0, frozenset())
            found.append(Candidate(support, passage.language or "", reason))
    return found[:MAX_QUOTES]


def _contradiction(claim: ReadText, passage: ReadPassage, start: int, end: int) -> Reason | None:
    terms = passage.within(start, end)
    known = [*terms, *passage.title]
    if not _values(claim.terms) <= _values(known) or changes_unit(claim.text, [passage.text[start:end]]):
        return "number"
    if not _has_names(claim, passage, start, known):
        return "name"
    clauses = passage.clauses(terms)
    if _denied(claim.clauses(), claim.lexicon) is not _denied(clauses, passage.lexicon):
        return "negated"
    hedged = any(hedges(clause, passage.lexicon) for clause in clauses)
    return "modality" if hedged and not any(hedges(clause, claim.lexicon) for clause in claim.clauses()) else None


def _values(terms: Sequence[Term]) -> set[str]:
    """Return the values of numbers, months and weekdays. Not every language has words for directions and ordinals here."""
    return {term.form for term in terms if term.number and not term.form.startswith(("ordinal:", "direction:"))}


def _denied(clauses: Sequence[Clause], lexicon: Lexicon) -> bool:
    return any(denies(clause, lexicon) for clause in clauses)


def _has_names(claim: ReadText, passage: ReadPassage, start: int, known: Sequence[Term]) -> bool:
    """Return whether the quote, the title, or, for a pronoun, the text before the quote contains the claim's names.

    A name in other letters cannot be compared, so that a claim with such a name does not hold.
    """
    if not (is_mostly_latin(passage.text) and is_mostly_latin(claim.text)):
        return not any(_names(claim)) and not has_foreign_name(claim.text)
    pronoun = any(term.raw.lower() in passage.lexicon.pronouns for term in known)
    held = {term.form for term in (*known, *(passage.within(0, start) if pronoun else ()))}
    return all(any(form == other or alike(form, other) for other in held) for form in _names(claim))


def has_foreign_name(text: str) -> bool:
    """Return whether a Chinese text writes a foreign name by its sounds."""
    return any(len(run) >= FOREIGN_NAME for run in _RUNS.findall(text))


def _names(claim: ReadText) -> Iterator[str]:
    """Yield the forms of names that both languages write alike."""
    terms = claim.terms
    for index, term in enumerate(terms):
        if not term.capital or not term.content or term.number or term.form in TRANSLATED:
            continue
        following = terms[index + 1] if index + 1 < len(terms) else None
        beside = following is not None and following.capital and following.content and not following.breaks
        if term.first and not beside:
            if _is_subject(terms, index, claim.language):
                yield term.form
            continue
        if claim.lexicon.nouns and not _named(terms, index):
            continue
        yield term.form


class _Words:
    """Words of one language, written with spaces between them: by themselves, or by how they end or begin.

    An ending counts after ``shortest`` characters at least.
    """

    def __init__(self, words: str, *, endings: str = "", beginnings: str = "", shortest: int = 0) -> None:
        self._words = frozenset(words.split())
        self._endings, self._beginnings, self._shortest = tuple(endings.split()), tuple(beginnings.split()), shortest

    def __contains__(self, word: str) -> bool:
        if word in self._words or word.startswith(self._beginnings):
            return True
        return any(len(word) - len(ending) >= self._shortest for ending in self._endings if word.endswith(ending))


_VERBS: Mapping[str, _Words] = {
    "en": _Words(
        "was is has had will did built won sold bought led wrote made ran took became began met",
        endings="ed",
        shortest=2,
    ),
    "de": _Words("war ist hat wird wurde baute gewann schrieb nahm begann verließ", endings="te", shortest=3),
    "fr": _Words("a est fut était avait", endings="a", shortest=3),
}
"""Verbs after one person or thing."""
_KINDS: Mapping[str, _Words] = {
    "en": _Words(
        "work access trade traffic water rain snow steel iron gold silver coal oil gas salt fish bread milk wood paper money"
        " music food fire rent power half today later earlier land sugar wool cotton beer wine meat corn wheat fuel data software"
        " demand output entry another",
        endings="s ing ly ed ion ment ness ity ship age ance ence ure ery body one thing th ch",
    ),
    "de": _Words(
        "später früher bald dann heute gestern morgen immer selten nun ferner nachher neu alt wieder weiter regen schnee wasser"
        " strom anfang ende mitte strafe handel arbeit fisch kohle stahl holz wein bier geld musik feuer sand milch salz zucker",
        endings="ung heit keit schaft tät ion nis t s dem her weise lich ig isch los bar fach mal wo lei",
        beginnings="da hier dort un ge",
    ),
}
"""Words without an article at the beginning of a sentence that are no names."""


def _is_subject(terms: Sequence[Term], index: int, language: str | None) -> bool:
    """Return whether the first word of a sentence is a name: a verb follows, and it does not look like another kind of word."""
    following = terms[index + 1 : index + 2]
    verbs, kinds = _VERBS.get(language or "en"), _KINDS.get(language or "en")
    if verbs is None or not following or following[0].breaks or following[0].capital:
        return False
    return following[0].raw in verbs and not (kinds and terms[index].raw.lower() in kinds)


def _named(terms: Sequence[Term], index: int) -> bool:
    """Return whether a capitalised German word is a name: after another one, or after a preposition without an article."""
    before = terms[index - 1] if index and not terms[index].breaks else None
    if before is None or terms[index].first:
        following = terms[index + 1 : index + 2]
        return bool(following and following[0].capital and following[0].content)
    return (before.capital and before.content) or before.raw.lower() in _BEFORE_NAMES


_BEFORE_NAMES = frozenset(["in", "aus", "von", "nach", "bei", "durch", "mit", "für", "gegen", "über"])
