"""Contradictions between a claim and the words quoted for it, in the order in which they are reported."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agentic_rag_backend.generation.claims.assertion import asserts_more
from agentic_rag_backend.generation.claims.base import Reason
from agentic_rag_backend.generation.claims.comparison.frames import changes_frame, swaps_sides
from agentic_rag_backend.generation.claims.comparison.names import Surroundings, changes_name, joins_names
from agentic_rag_backend.generation.claims.comparison.opposites import states_opposite
from agentic_rag_backend.generation.claims.comparison.polarity import denies_otherwise, hides_hedge
from agentic_rag_backend.generation.claims.comparison.quantities import changes_quantity
from agentic_rag_backend.generation.claims.comparison.unspaced import exchanges_sides, replaces_name
from agentic_rag_backend.generation.claims.tokens import Token
from agentic_rag_backend.language.languages import ENGLISH
from agentic_rag_backend.language.vocabulary.lexicon import Language, plain_form

_QUOTED = re.compile('["“”„«「『]([^"“”„«»「」『』]{3,600})(?:["“”»」』]|\\Z)')
"""A quotation. One that the claim does not close ends with the claim."""
_NOT_LETTERS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Evidence:
    """The words that a claim must agree with, in ``language``: ``quotes``, and ``texts`` of the passages and titles.

    ``names`` are all names, ``known`` the ones of the passages. ``originals`` are the texts as they are written.
    """

    language: Language
    quotes: Sequence[Sequence[Token]]
    texts: Sequence[Sequence[Token]]
    originals: Sequence[str]
    around: Surroundings
    names: frozenset[str]
    known: frozenset[str]


def find_conflict(claim: str, tokens: Sequence[Token], evidence: Evidence) -> Reason | None:
    """Return the reason why a claim contradicts its evidence. None if it contradicts nothing; it may still be unsupported."""
    quotes, language = evidence.quotes, evidence.language
    if misquotes(claim, evidence.originals):
        return "quote"
    if changes_quantity(tokens, quotes, evidence.around.titles, language):
        return "number"
    if (
        changes_name(tokens, quotes, evidence.around, evidence.names, language)
        or joins_names(tokens, evidence.texts, evidence.known)
        or (language.unspaced and replaces_name(tokens, quotes, language))
    ):
        return "name"
    if denies_otherwise(tokens, quotes, language) or states_opposite(tokens, quotes, evidence.names, language):
        return "negated"
    if hides_hedge(tokens, quotes, language):
        return "modality"
    qualified = asserts_more(tokens, quotes, language)
    if qualified is not None:
        return qualified
    exchanges = exchanges_sides(tokens, quotes, language) if language.unspaced else False
    if exchanges or (language.code == ENGLISH and swaps_sides(tokens, quotes, evidence.names, language)):
        return "roles"
    quoted = frozenset(token.form for quote in quotes for token in quote)
    return changes_frame(tokens, quotes, evidence.names, evidence.around.titles - quoted, language)


def misquotes(claim: str, texts: Sequence[str]) -> bool:
    """Return whether the claim has words in quotation marks that no text contains. A single word is a title or a nickname."""
    quotations = [match[1] for match in _QUOTED.finditer(claim) if len(match[1].split()) > 1 or not match[1].isascii()]
    if not quotations:
        return False
    plain = [_NOT_LETTERS.sub("", plain_form(text)) for text in texts]
    return any(not any(_NOT_LETTERS.sub("", plain_form(quotation)) in text for text in plain) for quotation in quotations)
