"""Checks a claim against passages in its own language, which is not English, by words and without a grammar."""

from __future__ import annotations

from collections.abc import Sequence

from agentic_rag_backend.generation.claims.base import Reason, SupportingSpan
from agentic_rag_backend.generation.claims.languages.conflicts import conflict, names_in
from agentic_rag_backend.generation.claims.languages.passages import Matcher, ReadPassage, ReadText, align
from agentic_rag_backend.generation.claims.languages.roles import Quoted
from agentic_rag_backend.generation.claims.thresholds import (
    MIN_CLAUSE_SUPPORT,
    MIN_OWN_SHARE,
    MIN_STATEMENT_SUPPORT,
    MIN_SUPPORT,
)

MAX_CLAIM_CHARACTERS = 1200
"""A longer text is not one sentence, and is not compared."""
_CLAUSE_WORDS = 2


def check_in_language(
    claim: ReadText, cited: Sequence[ReadPassage], least: float = MIN_SUPPORT
) -> tuple[tuple[SupportingSpan, ...], Reason | None]:
    """Return the quotes that state the claim, or the reason why they do not.

    Args:
        least: least share of the claim's words that the quotes must cover.
    """
    if not claim.content or len(claim.text) > MAX_CLAIM_CHARACTERS:
        return (), "unsupported"
    matcher = Matcher(claim, indexes=[held.forms for held in cited])
    aligned = [align(claim, held, matcher) for held in cited]
    kept = [each for each in aligned if each.score >= MIN_OWN_SHARE]
    covered = frozenset[int]().union(*(each.covered for each in kept))
    share = len(covered) / len(claim.content)
    if not kept or share < min(least, MIN_SUPPORT):
        return (), "unsupported"
    quotes = [Quoted(each.held, each.held.within(each.start, each.end), each.held.within(0, each.start)) for each in kept]
    reason = conflict(claim, quotes, matcher)
    if reason is None and (share < least or not _covers_parts(claim, covered, min(1.0, least / MIN_SUPPORT))):
        reason = "unsupported"
    return (tuple(each.support for each in kept), None) if reason is None else ((), reason)


def _covers_parts(claim: ReadText, covered: frozenset[int], strictness: float) -> bool:
    """Return whether the quotes cover enough of each clause, and of the words that are no names or numbers."""
    named = {id(term) for term in names_in(claim.terms, claim.lexicon)}
    statement = {number for number in claim.content if id(claim.terms[number]) not in named and not claim.terms[number].number}
    if len(statement & covered) < strictness * MIN_STATEMENT_SUPPORT * len(statement):
        return False
    parts = (claim.content.intersection(range(clause.start, clause.end)) for clause in claim.clauses())
    least = strictness * MIN_CLAUSE_SUPPORT
    return all(len(part & covered) >= least * len(part) for part in parts if len(part) >= _CLAUSE_WORDS)
