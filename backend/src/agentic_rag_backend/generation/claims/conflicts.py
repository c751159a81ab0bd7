"""Contradictions between a claim and the words quoted for it, in the order in which they are reported."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agentic_rag_backend.generation.claims.assertion import asserts_more
from agentic_rag_backend.generation.claims.base import Reason
from agentic_rag_backend.generation.claims.frames import changed_in_frame
from agentic_rag_backend.generation.claims.names import Surroundings, changes_name, joins_names
from agentic_rag_backend.generation.claims.opposites import states_opposite
from agentic_rag_backend.generation.claims.polarity import denies_otherwise, hides_hedge
from agentic_rag_backend.generation.claims.quantities import changes_quantity
from agentic_rag_backend.generation.claims.roles import swaps_roles
from agentic_rag_backend.generation.claims.tokens import DATE_WORDS, Token, mentions_in
from agentic_rag_backend.language.words import comparable, words

_QUOTED = re.compile(r"[\"“«]([^\"“”«»]{3,600})(?:[\"”»]|\Z)")
"""A quotation. One that the claim does not close ends with the claim."""
MIN_QUOTED_WORDS = 2
"""Shorter texts in quotation marks are titles and nicknames."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The words that a claim must agree with: ``quotes``, ``texts`` of the passages and titles.

    ``names`` are all names, ``known`` the ones of the passages.
    """

    quotes: Sequence[Sequence[Token]]
    texts: Sequence[Sequence[Token]]
    around: Surroundings
    names: frozenset[str]
    known: frozenset[str]


def conflict(claim: str, tokens: Sequence[Token], evidence: Evidence) -> Reason | None:
    """Return the reason why a claim contradicts its evidence. None if it contradicts nothing; it may still be unsupported."""
    quotes = evidence.quotes
    if _misquotes(claim, evidence.texts):
        return "quote"
    if changes_quantity(tokens, quotes, evidence.around.titles) or _changes_date(tokens, evidence):
        return "number"
    if changes_name(tokens, quotes, evidence.around, evidence.names) or joins_names(tokens, evidence.texts, evidence.known):
        return "name"
    if denies_otherwise(tokens, quotes) or states_opposite(tokens, quotes, evidence.names):
        return "negated"
    if hides_hedge(tokens, quotes):
        return "modality"
    qualified = asserts_more(tokens, quotes)
    if qualified is not None:
        return qualified
    if swaps_roles(tokens, quotes, evidence.names):
        return "roles"
    quoted = frozenset(token.form for quote in quotes for token in quote)
    changed = changed_in_frame(tokens, quotes, evidence.names, evidence.around.titles - quoted)
    return "roles" if changed == "name" else changed


def _changes_date(tokens: Sequence[Token], evidence: Evidence) -> bool:
    quoted = frozenset(token.form for quote in evidence.quotes for token in quote) | evidence.around.titles
    dates = {form for mention in mentions_in(tokens, evidence.names) for form in mention.forms if form in DATE_WORDS}
    return not dates <= quoted


def _misquotes(claim: str, texts: Sequence[Sequence[Token]]) -> bool:
    """Return whether the claim has words in quotation marks that no text contains one after the other."""
    for match in _QUOTED.finditer(claim):
        wanted = [comparable(match[1][word.start : word.end]) for word in words(match[1])]
        if len(wanted) >= MIN_QUOTED_WORDS and not any(_contains(text, wanted) for text in texts):
            return True
    return False


def _contains(text: Sequence[Token], wanted: Sequence[str]) -> bool:
    forms = [comparable(token.raw) for token in text]
    return any(
        forms[at] == wanted[0] and forms[at : at + len(wanted)] == list(wanted) for at in range(len(forms) - len(wanted) + 1)
    )
