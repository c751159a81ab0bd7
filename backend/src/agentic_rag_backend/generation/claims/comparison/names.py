"""Names of a claim, compared with the names of its quotes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from agentic_rag_backend.generation.claims.tokens import Token, mentions_in
from agentic_rag_backend.language.vocabulary.lexicon import Language


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Words around quotes that can resolve "he" and "the institute": of the titles, and of the sentences before the quotes."""

    titles: frozenset[str]
    before: frozenset[str]


def changes_name(
    claim: Sequence[Token],
    quotes: Sequence[Sequence[Token]],
    around: Surroundings,
    names: frozenset[str],
    language: Language,
) -> bool:
    """Return whether the claim has a name that is not in the quotes.

    A title's name is always known. A name of an earlier sentence counts if a word of the quotes refers back and the claim
    no longer contains it: "He founded it" may be "Mira Voss founded it". A longer form of a name counts, too.
    """
    quoted = frozenset(token.form for quote in quotes for token in quote)
    backward = sum(_count_references(quote, language) for quote in quotes) - _count_references(claim, language)
    for mention in mentions_in(claim, names):
        if mention.number or mention.forms <= quoted | around.titles:
            continue
        if not mention.forms <= quoted | around.titles | around.before:
            return True
        if mention.forms & quoted:
            continue
        backward -= 1
        if backward < 0:
            return True
    return False


def joins_names(claim: Sequence[Token], texts: Sequence[Sequence[Token]], names: frozenset[str]) -> bool:
    """Return whether the claim makes one name of two: "Mira Brandt" of "Mira Voss" and "Anna Brandt", "Oslo of Mayor"."""
    pairs: set[tuple[str, str]] = set()
    for text in texts:
        for mention in mentions_in(text, names):
            forms = [token.form for token in text[mention.first : mention.last + 1] if token.content]
            pairs.update((first, second) for index, first in enumerate(forms) for second in forms[index + 1 :])
    for mention in mentions_in(claim, names):
        forms = [token.form for token in claim[mention.first : mention.last + 1] if token.content]
        if any(pair not in pairs and set(pair) <= names for pair in pairwise(forms)):
            return True
    return False


def _count_references(tokens: Sequence[Token], language: Language) -> int:
    """Return the number of words that refer back: pronouns, and "the" before a common noun."""
    count = 0
    for index, token in enumerate(tokens):
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        definite = token.form in language.articles and token.first and following is not None and following.raw[0].islower()
        count += token.form in language.pronouns or definite
    return count
