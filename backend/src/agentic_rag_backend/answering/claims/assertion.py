"""Parts of a sentence that it does not assert, and claims that assert them.

"The mayor did not say that the committee approved the plan" asserts nothing about the plan. A claim may quote such a part word
for word and still be false. Three kinds of parts are read: clauses under a denied statement ("no evidence that …"), clauses
under a doubt, a wish or a demand ("denied that …"), and conditions and questions ("if …", "whether …"). Factive words are in no
list:
"did not know that the plan was approved" asserts the approval (Karttunen 1971, "Implicative verbs").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from agentic_rag_backend.answering.claims.comparison.polarity import is_denial
from agentic_rag_backend.answering.claims.tokens import Token, content_of
from agentic_rag_backend.language.languages import ENGLISH
from agentic_rag_backend.language.vocabulary.lexicon import Language, language_of_code

_NOUN_PHRASE = language_of_code(ENGLISH).noun_phrases
"""Words with which a clause may begin without "that" before it: "never said the committee agreed"."""
_TURNS = frozenset({"but", "although", "though", "while", "whereas", "and", "so", "yet", "because"})
_STOPS = ";:.!?"
_REACH = 8
"""Words before a statement in which a denial applies to it."""
_APART = 4
"""Words after a statement or a doubt in which its "that" may come: "told the council that"."""
_LONGEST = 60
"""Words of a part that are read."""
_LEAST_WORDS = 2
"""Words of a part that a claim must repeat to assert it."""


@dataclass(frozen=True, slots=True)
class Unasserted:
    """The tokens ``start`` to ``end`` (exclusive) of a text, which it does not assert, and the kind of words before them."""

    kind: Literal["negated", "modality"]
    start: int
    end: int


def list_open_parts(tokens: Sequence[Token], language: Language) -> Iterator[Unasserted]:
    """Yield the parts that a text does not assert, in order."""
    for index, token in enumerate(tokens):
        if token.form in language.conditions:
            # "If it rains, the gate closes": the comma separates the condition from the statement.
            yield Unasserted("modality", index + 1, _end_of_clause(tokens, index + 1, comma=token.first))
        elif token.form in language.statements and _has_denial_before(tokens, index, language):
            start = _start_of_clause(tokens, index, bare=token.form in language.bare_statements)
            if start is not None:
                yield Unasserted("negated", start, _end_of_clause(tokens, start))
        elif token.form in language.doubts and not _has_denial_before(tokens, index, language):
            start = _start_of_clause(tokens, index, bare=False)
            if start is not None:
                yield Unasserted("modality", start, _end_of_clause(tokens, start))


def asserts_more(
    claim: Sequence[Token], quotes: Sequence[Sequence[Token]], language: Language
) -> Literal["negated", "modality"] | None:
    """Return how the quotes qualify a part that the claim asserts, or None if the claim asserts no such part.

    A claim asserts no part if it has a denial, a doubt, a hedge or a condition that is not in the part itself.
    """
    forms = content_of(claim)
    qualifiers = frozenset(token.form for token in claim if _is_qualifier(token, language))
    parts = [(part, quote[part.start : part.end]) for quote in quotes for part in list_open_parts(quote, language)]
    inside = {id(token) for _, tokens in parts for token in tokens}
    asserted = content_of(token for quote in quotes for token in quote if id(token) not in inside)
    for part, tokens in parts:
        if qualifiers - frozenset(token.form for token in tokens):
            continue
        used = forms & content_of(tokens)
        if len(used) >= _LEAST_WORDS and not used <= asserted:
            return part.kind
    return None


def _has_denial_before(tokens: Sequence[Token], index: int, language: Language) -> bool:
    """Return whether a denial applies to the word: one before it in its clause."""
    for at in range(index - 1, max(-1, index - 1 - _REACH), -1):
        if tokens[at + 1].first or any(mark in tokens[at + 1].gap for mark in _STOPS):
            return False
        form = tokens[at].form
        if form == "that" and at + 1 < index:
            return False
        if _is_denier(tokens[at], language):
            return True
    return False


def _start_of_clause(tokens: Sequence[Token], index: int, *, bare: bool) -> int | None:
    """Return where the clause of a statement or a doubt begins: after "that", or after the word itself if ``bare``."""
    for at in range(index + 1, min(len(tokens), index + 1 + _APART)):
        if tokens[at].first or tokens[at].breaks:
            return None
        if tokens[at].form == "that":
            return at + 1
    following = tokens[index + 1] if index + 1 < len(tokens) else None
    begins = following is not None and (following.form in _NOUN_PHRASE or following.capital)
    return index + 1 if bare and begins else None


def _end_of_clause(tokens: Sequence[Token], start: int, *, comma: bool = False) -> int:
    """Return the end of a clause: the next stop, a comma before a conjunction, or any comma if ``comma``."""
    limit = min(len(tokens), start + _LONGEST)
    for at in range(start, limit):
        gap = tokens[at].gap
        if tokens[at].first or any(mark in gap for mark in _STOPS):
            return at
        if at > start and "," in gap and (comma or tokens[at].form in _TURNS):
            return at
    return limit


def _is_qualifier(token: Token, language: Language) -> bool:
    form = token.form
    uncertain = form in language.doubts or form in language.hedges or form in language.conditions or form == "would"
    return uncertain or _is_denier(token, language)


def _is_denier(token: Token, language: Language) -> bool:
    return token.form in language.deniers or is_denial(token, language)
