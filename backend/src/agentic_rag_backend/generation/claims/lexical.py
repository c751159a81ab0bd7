"""Checks claims by their words, without a model.

A claim holds under three conditions. The words of a quote of one or two sentences of the cited passages cover enough of its
words, each weighted by rarity among the evidence (containment, the direction of entailment). The quotes also cover enough of
each of its clauses. It contradicts the quotes in nothing that words show: numbers, names, denials, hedges, roles and quoted
words (`conflicts`).

Passages in other languages have checks of their own (`languages`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.generation.claims.base import Reason, SupportingSpan, Verdict
from agentic_rag_backend.generation.claims.conflicts import Evidence, conflict
from agentic_rag_backend.generation.claims.entries import check_entry, misplaces_number
from agentic_rag_backend.generation.claims.languages.across import Candidate
from agentic_rag_backend.generation.claims.languages.verdicts import PassageLanguages
from agentic_rag_backend.generation.claims.names import Surroundings
from agentic_rag_backend.generation.claims.passages import Coverage, IndexedPassage
from agentic_rag_backend.generation.claims.reading import Claim
from agentic_rag_backend.generation.claims.thresholds import (
    MIN_CLAUSE_SUPPORT,
    MIN_OWN_SHARE,
    MIN_STATEMENT_SUPPORT,
    MIN_SUPPORT,
)
from agentic_rag_backend.generation.claims.tokens import (
    Token,
    content_of,
    names_in,
    read_tokens,
    references_in,
    without_references,
)
from agentic_rag_backend.generation.context import Passage

MIN_UNCITED_SUPPORT = 0.8
"""Share that another passage must cover to support a claim without valid citations."""
_CLAUSE_WORDS = 3
_CONJUNCTIONS = frozenset(["and", "but", "or", "while", "whereas", "although", "because", "so", "which", "who", "where"])


class LexicalVerifier:
    """Checks claims against the passages of one answer. ``left_s`` is not used: no model is called."""

    def __init__(self, passages: Sequence[Passage], left_s: float | None = None) -> None:
        self._by_marker = {passage.marker: IndexedPassage(passage) for passage in passages}
        self._coverage = Coverage(list(self._by_marker.values()))
        self._references = references_in(passage.text for passage in passages)
        self._languages = PassageLanguages(passages)

    @property
    def whole(self) -> bool:
        """Each claim is checked by itself."""
        return False

    @property
    def failures(self) -> tuple[str, ...]:
        """No part can fail."""
        return ()

    @property
    def usage(self) -> Usage:
        """No model is called."""
        return Usage()

    async def verify(self, claims: Sequence[Claim]) -> list[Verdict]:
        """Return the verdict of each claim."""
        if self._languages.others:
            # The first claim builds an index of the words of its passages.
            return await asyncio.to_thread(lambda: [self.check(claim) for claim in claims])
        return [self.check(claim) for claim in claims]

    def check(self, claim: Claim) -> Verdict:
        """Return the verdict: the passages that support the claim, in the order of its markers, or the reason against it.

        Markers of missing passages, or of passages that do not support the claim, are left out. A claim without markers,
        or with failed markers only, is cited again if one passage supports it strongly.
        """
        verdict = self._check(replace(claim, text=without_references(claim.text, self._references)))
        return replace(verdict, claim=claim)

    def _check(self, claim: Claim) -> Verdict:
        tokens = read_tokens(claim.text)
        if not content_of(tokens):
            return Verdict(claim, reason="unsupported")
        cited = [self._by_marker[marker] for marker in claim.markers if marker in self._by_marker]
        entry = check_entry(claim.text, [*cited, *(held for held in self._by_marker.values() if held not in cited)])
        if entry is not None:
            return Verdict(claim, (entry,)) if isinstance(entry, SupportingSpan) else Verdict(claim, reason=entry)
        if not self._languages.others:
            return self._check_english(claim, tokens, cited, list(self._by_marker.values()))
        english = [held for marker, held in self._by_marker.items() if marker not in self._languages.others]
        verdict = self._check_english(claim, tokens, [held for held in cited if held in english], english)
        return verdict if verdict.holds else self._languages.check(claim, verdict)

    def across(self, verdict: Verdict) -> list[Candidate]:
        """Return the quotes in another language than the claim's, with what it contradicts in each; of cited passages first.

        None for a claim that contradicts a passage in its own language. A translation shares names and numbers only, so that a
        passage in English that covers enough of a claim is in its language.
        """
        tokens = read_tokens(verdict.claim.text)
        english = {marker: held for marker, held in self._by_marker.items() if marker not in self._languages.others}
        covering = (marker for marker, held in english.items() if self._coverage.align(tokens, held).score >= MIN_SUPPORT)
        return self._languages.across(verdict, frozenset(covering))

    def _check_english(
        self, claim: Claim, tokens: Sequence[Token], cited: Sequence[IndexedPassage], held: Sequence[IndexedPassage]
    ) -> Verdict:
        supports, reason = self._checked(claim, tokens, cited, MIN_SUPPORT)
        if reason is None:
            return Verdict(claim, supports)
        ranked = sorted(held, key=lambda each: -self._coverage.align(tokens, each).score)
        for other in ranked:
            supports, why = self._checked(claim, tokens, [other], MIN_UNCITED_SUPPORT)
            if why is None:
                return Verdict(claim, supports)
            reason = why if reason == "unsupported" else reason
        return Verdict(claim, reason=reason)

    def paraphrased(self, claim: Claim, *, least: float) -> list[SupportingSpan]:
        """Return the quotes that cover at least ``least`` of a claim and contradict it in nothing, best first."""
        tokens = read_tokens(claim.text)
        english = [passage for marker, passage in self._by_marker.items() if marker not in self._languages.others]
        held = [self._checked(claim, tokens, [passage], least) for passage in english]
        found = [support for supports, reason in held if reason is None for support in supports]
        return sorted(found, key=lambda support: (support.passage.marker not in claim.markers, -support.score))

    def is_prose(self, quote: SupportingSpan) -> bool:
        """Return whether a quote is in English, or shows no language, and has no row of a table."""
        marker = quote.passage.marker
        return marker not in self._languages.others and not self._by_marker[marker].rows(quote.start, quote.end)

    def _checked(
        self, claim: Claim, tokens: Sequence[Token], cited: Sequence[IndexedPassage], least: float
    ) -> tuple[tuple[SupportingSpan, ...], Reason | None]:
        aligned = [(held, self._coverage.align(tokens, held)) for held in cited]
        kept = [(held, support) for held, support in aligned if support.score >= MIN_OWN_SHARE]
        supports = tuple(support for _, support in kept)
        covered = frozenset().union(*(support.covered for support in supports))
        share = self._coverage.share(content_of(tokens), covered)
        if not kept or share < min(least, MIN_SUPPORT):
            return (), "unsupported"
        rows = [row for held, support in kept for row in held.rows(support.start, support.end)]
        reason = "number" if misplaces_number(tokens, rows) else conflict(claim.text, tokens, _evidence(tokens, kept))
        if reason is None and (share < least or not self._covers_parts(tokens, covered, min(1.0, least / MIN_SUPPORT))):
            reason = "unsupported"
        return (supports, None) if reason is None else ((), reason)

    def _covers_parts(self, tokens: Sequence[Token], covered: frozenset[str], strictness: float) -> bool:
        """Return whether the quotes cover enough of each clause, and of the words that are no names or numbers."""
        names = frozenset(form for held in self._by_marker.values() for form in held.names) | names_in(tokens)
        if not self._covers(_statement(tokens, names), covered, strictness * MIN_STATEMENT_SUPPORT):
            return False
        clauses = _clauses(tokens)
        if any(
            not self._covers(content_of(clause), covered, strictness * MIN_CLAUSE_SUPPORT)
            for clause in clauses
            if len(content_of(clause)) >= _CLAUSE_WORDS
        ):
            return False
        # "…, and Mira Voss resigned": a name that is covered hides that the clause is new.
        added = (_statement(clause, names) for clause in clauses[1:])
        return all(own <= covered for own in added if len(own) < _CLAUSE_WORDS)

    def _covers(self, forms: frozenset[str], covered: frozenset[str], least: float) -> bool:
        return not forms or self._coverage.share(forms, covered) >= least


def _statement(tokens: Sequence[Token], names: frozenset[str]) -> frozenset[str]:
    """Return the forms of the words that carry meaning and are no names or numbers."""
    return frozenset(token.form for token in tokens if token.content and not token.number) - names


def _clauses(tokens: Sequence[Token]) -> list[list[Token]]:
    """Return the parts between semicolons, sentences, and commas before a conjunction."""
    clauses: list[list[Token]] = [[]]
    for token in tokens:
        ends = token.first or ";" in token.gap or ("," in token.gap and token.form in _CONJUNCTIONS)
        if ends and clauses[-1]:
            clauses.append([])
        clauses[-1].append(token)
    return clauses


def _evidence(claim: Sequence[Token], kept: Sequence[tuple[IndexedPassage, SupportingSpan]]) -> Evidence:
    known = frozenset().union(*(held.names for held, _ in kept))
    before = frozenset(token.form for held, support in kept for token in held.within(0, support.start))
    titles = frozenset().union(*(held.title_forms | held.labels(support.start, support.end) for held, support in kept))
    return Evidence(
        quotes=[held.within(support.start, support.end) for held, support in kept],
        texts=[text for held, _ in kept for text in (held.tokens, held.title)],
        around=Surroundings(titles, before),
        names=known | names_in(claim, known),
        known=known,
    )
