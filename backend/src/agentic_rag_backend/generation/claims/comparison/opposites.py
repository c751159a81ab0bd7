"""Claims that put the opposite of a word in its place: "rejected the plan" against "accepted the plan"."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from agentic_rag_backend.generation.claims.comparison.polarity import find_denials
from agentic_rag_backend.generation.claims.tokens import Token, content_of
from agentic_rag_backend.language.vocabulary.lexicon import Language


def states_opposite(
    claim: Sequence[Token], quotes: Sequence[Sequence[Token]], names: Collection[str], language: Language
) -> bool:
    """Return whether the claim has the opposite of a word of the quotes, in place of that word.

    Denials are left to `denies_otherwise`: "did not accept" may be "rejected". Words that a true rewording may exchange ("A sold
    it to B", "B bought it from A") are no opposites in the lexicon.
    """
    if find_denials(claim, language) or any(find_denials(quote, language) for quote in quotes):
        return False
    claimed, quoted = content_of(claim), frozenset[str]().union(*map(content_of, quotes))
    return any(form not in names and language.opposites.get(form, frozenset()) & (quoted - claimed) for form in claimed - quoted)
