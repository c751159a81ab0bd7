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
from agentic_rag_backend.generation.claims.assertion import asserts_more
from agentic_rag_backend.generation.claims.base import Reason, SupportingSpan, Verdict
from agentic_rag_backend.generation.claims.conflicts import Evidence, conflict
from agentic_rag_backend.generation.claims.entries import check_entry, misplaces_number
from agentic_rag_backend.generation.claims.languages.across import Candidate
from agentic_rag_backend.generation.claims.languages.verdicts import PassageLanguages
from agentic_rag_backend.generation.claims.names import Surroundings
from agentic_rag_backend.generation.claims.passages import Coverage, IndexedPassage
from agentic_rag_backend.generation.claims.polarity import denies_otherwise, hides_hedge
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
    forms_of,
    mentions_in,
    names_in,
    read_tokens,
    references_in,
    without_references,
)
from agentic_rag_backend.generation.claims.verbatim import Copy, VerbatimPassages, has_verb
from agentic_rag_backend.generation.context import Passage

MIN_UNCITED_SUPPORT = 0.8
"""Share that another passage must cover to support a claim without valid citations."""
MIN_NEAREST = 0.5
"""Share that a quote must cover to be shown with a claim that cites no passage and is not supported."""
SHORT_CLAUSE = 6
"""A clause of at most so many words that carry meaning is supported only if a quote has all of them: "A captain broke a wrist"
differs from its quote in one word."""
_LOGIC = {
    form: number
    for number, words in enumerate(
        (
            "because due therefore thus hence cause consequently owing",
            "all every each always any entire whole both everyone everybody everything",
            "only solely just merely alone exclusively",
            "before until till earlier previously",
            "after afterwards later following then since",
            "more greater higher larger longer over above exceed rose increased",
            "less fewer lower smaller shorter under below fell decreased",
            "most majority",
        )
    )
    for form in sorted(forms_of(words))
}
"""Words that say how things go together, by meaning. A claim that has one needs one of the same meaning in its quotes."""
_AMBIGUOUS = forms_of("over above under below since then rose fell any just alone following")
"""Words of `_LOGIC` with other common meanings: in a quote they count, in a claim they need none."""
_CLAUSE_WORDS = 3
_CONJUNCTIONS = frozenset(["and", "but", "or", "while", "whereas", "although", "because", "so", "which", "who", "where"])


class LexicalVerifier:
    """Checks claims against the passages of one answer.

    ``question`` is the one that the claims answer: they may repeat names and numbers of it that no quote has. ``left_s`` is not
    used: no model is called.
    """

    def __init__(self, passages: Sequence[Passage], question: str = "", left_s: float | None = None) -> None:
        self._asked = frozenset(token.form for token in read_tokens(question) if token.content)
        self._by_marker = {passage.marker: IndexedPassage(passage) for passage in passages}
        self._coverage = Coverage(list(self._by_marker.values()))
        self._verbatim = VerbatimPassages(list(self._by_marker.values()))
        self._references = references_in(passage.text for passage in passages)
        self._languages = PassageLanguages(passages)

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

    def may_change(self, verdict: Verdict) -> bool:
        """Words decide at once."""
        return False

    async def settle(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        """Return the verdicts."""
        return list(verdicts)

    def check(self, claim: Claim) -> Verdict:
        """Return the verdict: the passages that support the claim, in the order of its markers, or the reason against it.

        Markers of missing passages, or of passages that do not support the claim, are left out. A claim without markers,
        or with failed markers only, is cited again if one passage supports it strongly.
        """
        own = replace(claim, text=without_references(claim.text, self._references))
        verdict = self._check(own)
        if verdict.holds:
            return replace(verdict, claim=claim)
        if verdict.reason == "quote" or (verdict.reason in ("name", "number") and self._invents(own)):
            return Verdict(claim, reason=verdict.reason, rejected=True)
        return replace(verdict, claim=claim, supports=self._nearest_cited(own))

    def _invents(self, claim: Claim) -> bool:
        """Return whether a claim has a name or number that neither the passages that it cites have nor the question."""
        held = [self._by_marker[marker] for marker in claim.markers if marker in self._by_marker] or self._by_marker.values()
        known = self._asked.union(*(passage.title_forms for passage in held), *(passage.forms for passage in held))
        return any(
            token.form not in known for token in read_tokens(claim.text) if token.number or (token.capital and not token.first)
        )

    def _nearest_cited(self, claim: Claim) -> tuple[SupportingSpan, ...]:
        """Return the quote that shares most words with a claim, of the cited passages; of any passage if it cites none."""
        cites = any(marker in self._by_marker for marker in claim.markers)
        least = 0.0 if cites else MIN_NEAREST
        return tuple(
            span
            for span in self.nearest(claim)[:1]
            if span.score >= least and (not cites or span.passage.marker in claim.markers)
        )

    def _check(self, claim: Claim) -> Verdict:
        tokens = read_tokens(claim.text)
        if not content_of(tokens):
            return Verdict(claim, reason="unsupported")
        copied = self.copied(claim)
        if copied:
            return Verdict(claim, copied)
        part = self._verbatim.find(claim.text, claim.markers)
        if part is not None and part.qualified:
            return Verdict(claim, reason="modality")
        if part is not None and part.owned and not part.whole and has_verb(claim.text):
            return Verdict(claim, reason="roles")
        cited = [self._by_marker[marker] for marker in claim.markers if marker in self._by_marker]
        entry = check_entry(claim.text, [*cited, *(held for held in self._by_marker.values() if held not in cited)])
        if entry is not None:
            return Verdict(claim, (entry,)) if isinstance(entry, SupportingSpan) else Verdict(claim, reason=entry)
        if not self._languages.others:
            return self._check_english(claim, tokens, cited, list(self._by_marker.values()))
        english = [held for marker, held in self._by_marker.items() if marker not in self._languages.others]
        verdict = self._check_english(claim, tokens, [held for held in cited if held in english], english)
        return verdict if verdict.holds else self._languages.check(claim, verdict)

    def copied(self, claim: Claim) -> tuple[SupportingSpan, ...]:
        """Return the quotes of which a claim is a copy; of a list, those of its items. Empty if it is none."""
        copy = self._verbatim.find(claim.text, claim.markers)
        copies = [(claim.text, copy)] if copy is not None else self._verbatim.items(claim.text, claim.markers) or []
        if not all(_asserted(text, found, item=copy is None) for text, found in copies):
            return ()
        return tuple(dict.fromkeys(found.support for _, found in copies))

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

    def nearest(self, claim: Claim) -> list[SupportingSpan]:
        """Return the quotes that share most words with a claim, of cited passages first; none without a common word."""
        tokens = read_tokens(claim.text)
        spans = [self._coverage.align(tokens, held) for held in self._by_marker.values()]
        spans = [span for span in spans if span.score > 0.0]
        return sorted(spans, key=lambda span: (span.passage.marker not in claim.markers, -span.score))

    def paraphrased(self, claim: Claim, *, least: float, every_word: bool = False) -> list[SupportingSpan]:
        """Return the quotes that cover at least ``least`` of a claim and contradict it in nothing, best first.

        Args:
            every_word: whether short clauses need all of their words in the quote (`SHORT_CLAUSE`).
        """
        tokens = read_tokens(claim.text)
        english = [passage for marker, passage in self._by_marker.items() if marker not in self._languages.others]
        held = [self._checked(claim, tokens, [passage], least, every_word=every_word) for passage in english]
        found = [support for supports, reason in held if reason is None for support in supports]
        return sorted(found, key=lambda support: (support.passage.marker not in claim.markers, -support.score))

    def is_prose(self, quote: SupportingSpan) -> bool:
        """Return whether a quote is in English, or shows no language, and has no row of a table."""
        marker = quote.passage.marker
        return marker not in self._languages.others and not self._by_marker[marker].rows(quote.start, quote.end)

    def _checked(
        self,
        claim: Claim,
        tokens: Sequence[Token],
        cited: Sequence[IndexedPassage],
        least: float,
        *,
        every_word: bool = True,
    ) -> tuple[tuple[SupportingSpan, ...], Reason | None]:
        aligned = [(held, self._coverage.align(tokens, held)) for held in cited]
        kept = [(held, support) for held, support in aligned if support.score >= MIN_OWN_SHARE]
        supports = tuple(support for _, support in kept)
        covered = frozenset().union(*(support.covered for support in supports))
        share = self._coverage.share(content_of(tokens), covered)
        if not kept or share < min(least, MIN_SUPPORT):
            return (), "unsupported"
        rows = [row for held, support in kept for row in held.rows(support.start, support.end)]
        evidence = _evidence(tokens, kept)
        reason = "number" if misplaces_number(tokens, rows) else conflict(claim.text, tokens, evidence)
        if (
            reason is None
            and every_word
            and (_lacks_words(tokens, covered, evidence.names) or _adds_logic(tokens, evidence.quotes))
        ):
            reason = "unsupported"
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


def _lacks_words(tokens: Sequence[Token], covered: frozenset[str], names: frozenset[str]) -> bool:
    """Return whether a short clause has a word that no quote has. Names have a check of their own."""
    named = frozenset(form for mention in mentions_in(tokens, names) if not mention.number for form in mention.forms)
    clauses = [content_of(clause) for clause in _clauses(tokens)]
    return any(len(forms) <= SHORT_CLAUSE and not forms <= covered | named for forms in clauses)


def _adds_logic(tokens: Sequence[Token], quotes: Sequence[Sequence[Token]]) -> bool:
    """Return whether a claim has a word of `_LOGIC`, and no quote has one of the same meaning."""
    stated = {_LOGIC.get(token.form) for quote in quotes for token in quote}
    return any(_LOGIC[token.form] not in stated for token in tokens if token.form in _LOGIC and token.form not in _AMBIGUOUS)


def _asserted(text: str, copy: Copy, *, item: bool) -> bool:
    """Return whether the sentence around a copy asserts it. A short ``item`` of a list states nothing by itself."""
    if copy.qualified:
        return False
    if copy.owned and not copy.whole and has_verb(text):
        return False
    tokens = read_tokens(text)
    if copy.whole or (item and len(content_of(tokens)) < _CLAUSE_WORDS):
        return True
    quote = [read_tokens(copy.support.quote)]
    return not (asserts_more(tokens, quote) or denies_otherwise(tokens, quote) or hides_hedge(tokens, quote))


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
