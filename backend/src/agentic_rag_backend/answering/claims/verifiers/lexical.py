"""Checks claims by their words, without a model, in any language.

A claim holds under three conditions. The words of a quote of one or two sentences of the cited passages cover enough of its
words, each weighted by rarity among the evidence (containment, the direction of entailment). The quotes also cover enough of
each of its clauses. It contradicts the quotes in nothing that words show: numbers, names, denials, hedges, roles and quoted
words (`conflicts`).

A passage that shows no language counts as English. A claim is compared with the passages in its own language. Only an embedder
that knows both compares it with others (`translation`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from agentic_rag_backend.answering.claims.assertion import asserts_more
from agentic_rag_backend.answering.claims.base import Reason, SupportingSpan, Verdict
from agentic_rag_backend.answering.claims.comparison.conflicts import Evidence, Surroundings, find_conflict, misplaces_number
from agentic_rag_backend.answering.claims.comparison.polarity import denies_otherwise, hides_hedge
from agentic_rag_backend.answering.claims.passages import Coverage, IndexedPassage, index_passage
from agentic_rag_backend.answering.claims.reading import Claim
from agentic_rag_backend.answering.claims.tokens import (
    Token,
    content_of,
    mentions_in,
    names_in,
    read_tokens,
    references_in,
    without_references,
)
from agentic_rag_backend.answering.claims.verifiers.verbatim import Copy, VerbatimPassages, has_verb
from agentic_rag_backend.answering.evidence.context import Passage
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.language.languages import ENGLISH, language_near
from agentic_rag_backend.language.vocabulary.lexicon import Language, language_of_code

MIN_SUPPORT = 0.6
"""Least share of a claim's weighted words that the quotes under it must cover together."""
MIN_CLAUSE_SUPPORT = 0.4
"""Least share of the words of each clause that the quotes must cover."""
MIN_STATEMENT_SUPPORT = 0.5
"""Least share of the words that are no names or numbers: two names alone state nothing."""
MIN_PASSAGE_SHARE = 0.25
"""A cited passage that covers less than this share of the claim does not support it. Its marker is dropped."""
MIN_UNCITED_SUPPORT = 0.8
"""Share that another passage must cover to support a claim without valid citations."""
MIN_NEAREST = 0.5
"""Share that a quote must cover to be shown with a claim that cites no passage and is not supported."""
SHORT_CLAUSE = 6
"""A clause of at most so many words that carry meaning is supported only if a quote has all of them: "A captain broke a wrist"
differs from its quote in one word."""
MAX_CLAIM_CHARACTERS = 1200
"""A longer text in another language than English is not one sentence, and is not compared."""
_LEAST_DIFFERENT = 2
"""Function words that show that a claim is in another language than its passage."""
_CLAUSE_WORDS = 3


class LexicalVerifier:
    """Checks claims against the passages of one answer.

    ``question`` is the one that the claims answer: they may repeat names and numbers of it that no quote has. ``left_s`` is not
    used: no model is called.
    """

    def __init__(self, passages: Sequence[Passage], question: str = "", left_s: float | None = None) -> None:
        self._asked = frozenset(token.form for token in read_tokens(question) if token.content)
        self._by_marker = {passage.marker: index_passage(passage) for passage in passages}
        self._coverage = Coverage(list(self._by_marker.values()))
        self._verbatim = VerbatimPassages(list(self._by_marker.values()))
        self._references = references_in(passage.text for passage in passages)

    @property
    def failures(self) -> tuple[str, ...]:
        """No part can fail."""
        return ()

    @property
    def usage(self) -> Usage:
        """No model is called."""
        return Usage()

    @property
    def passages(self) -> Mapping[int, IndexedPassage]:
        """The passages by marker."""
        return self._by_marker

    async def verify(self, claims: Sequence[Claim]) -> list[Verdict]:
        """Return the verdict of each claim."""
        if any(passage.language.code != ENGLISH for passage in self._by_marker.values()):
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
        plain = replace(claim, text=without_references(claim.text, self._references))
        verdict = self._check_text(plain)
        if verdict.holds:
            return replace(verdict, claim=claim)
        if verdict.reason == "quote" or (verdict.reason in ("name", "number") and self._has_invention(plain)):
            return Verdict(claim, reason=verdict.reason, rejected=True)
        return replace(verdict, claim=claim, supports=self._nearest_quote(plain))

    def _has_invention(self, claim: Claim) -> bool:
        """Return whether a claim has a name or number that neither the passages that it cites have nor the question."""
        evidence = self._cited_passages(claim) or list(self._by_marker.values())
        forms = self._asked.union(*(passage.title_forms for passage in evidence), *(passage.forms for passage in evidence))
        return any(
            token.form not in forms
            for token in read_tokens(claim.text, evidence[0].language if evidence else None)
            if token.number or (token.capital and not token.first)
        )

    def _nearest_quote(self, claim: Claim) -> tuple[SupportingSpan, ...]:
        """Return the quote that shares most words with a claim, of the cited passages; of any passage if it cites none."""
        cites = any(marker in self._by_marker for marker in claim.markers)
        least = 0.0 if cites else MIN_NEAREST
        return tuple(
            span
            for span in self.nearest_quotes(claim)[:1]
            if span.score >= least and (not cites or span.passage.marker in claim.markers)
        )

    def _check_text(self, claim: Claim) -> Verdict:
        if not content_of(read_tokens(claim.text)):
            return Verdict(claim, reason="unsupported")
        copied = self.quotes_copied_by(claim)
        if copied:
            return Verdict(claim, copied)
        part = self._verbatim.find(claim.text, claim.markers)
        if part is not None and (part.qualified or (part.limited and has_verb(claim.text))):
            return Verdict(claim, reason="modality")
        cited = self._cited_passages(claim)
        reasons: dict[Language, Reason] = {}
        for language, passages in self._by_language(claim):
            verdict = self._check_language(claim, language, [passage for passage in cited if passage in passages], passages)
            if verdict.reason is None:
                return verdict
            reasons[language] = verdict.reason
        # The first passage that the claim cites gives the reason; the claim may be in another language.
        languages = [passage.language for passage in cited or self._by_marker.values()]
        nothing: Reason = "language" if languages else "unsupported"
        return Verdict(claim, reason=next((reasons[language] for language in languages if language in reasons), nothing))

    def _cited_passages(self, claim: Claim) -> list[IndexedPassage]:
        return [self._by_marker[marker] for marker in claim.markers if marker in self._by_marker]

    def _by_language(self, claim: Claim) -> Iterator[tuple[Language, list[IndexedPassage]]]:
        """Yield the passages in English, and those in another language that is the claim's."""
        passages = list(self._by_marker.values())
        for language in sorted({passage.language for passage in passages}, key=lambda language: language.code != ENGLISH):
            group = [passage for passage in passages if passage.language is language]
            if language.code != ENGLISH:
                group = [passage for passage in group if self.language_of(claim, passage) is language]
                if len(claim.text) > MAX_CLAIM_CHARACTERS:
                    group = []
            if group:
                yield language, group

    def language_of(self, claim: Claim, passage: IndexedPassage) -> Language:
        """Return the language of a claim about a passage.

        The words that the passage lacks must show another language, too: "van der Rohe" is no Dutch if the passage names him.
        """
        passage_language = passage.language
        for text in (claim.text, passage.without_words(claim.text)):
            language = language_of_code(language_near(text, passage_language.code, least=_LEAST_DIFFERENT))
            if language is passage_language:
                return passage_language
        return language_of_code(language_near(claim.text, passage_language.code, least=_LEAST_DIFFERENT))

    def quotes_copied_by(self, claim: Claim) -> tuple[SupportingSpan, ...]:
        """Return the quotes of which a claim is a copy; of a list, those of its items. Empty if it is none."""
        copy = self._verbatim.find(claim.text, claim.markers)
        copies = [(claim.text, copy)] if copy is not None else self._verbatim.list_items(claim.text, claim.markers) or []
        if not all(_asserts_copy(text, part, item=copy is None) for text, part in copies):
            return ()
        return tuple(dict.fromkeys(part.support for _, part in copies))

    def _check_language(
        self, claim: Claim, language: Language, cited: Sequence[IndexedPassage], passages: Sequence[IndexedPassage]
    ) -> Verdict:
        tokens = read_tokens(claim.text, language)
        supports, reason = self._check_quotes(claim, tokens, cited, MIN_SUPPORT)
        if reason is None:
            return Verdict(claim, supports)
        for passage in sorted(passages, key=lambda passage: -self._coverage.align_claim(tokens, passage).score):
            supports, why = self._check_quotes(claim, tokens, [passage], MIN_UNCITED_SUPPORT)
            if why is None:
                return Verdict(claim, supports)
            reason = why if reason == "unsupported" else reason
        return Verdict(claim, reason=reason)

    def is_covered_by(self, claim: Claim, passage: IndexedPassage) -> bool:
        """Return whether a passage covers so much of a claim that it is in its language. Translations share names only."""
        return self._coverage.align_claim(read_tokens(claim.text, passage.language), passage).score >= MIN_SUPPORT

    def nearest_quotes(self, claim: Claim) -> list[SupportingSpan]:
        """Return the quotes that share most words with a claim, of cited passages first; none without a common word."""
        spans = [
            self._coverage.align_claim(read_tokens(claim.text, passage.language), passage) for passage in self._by_marker.values()
        ]
        spans = [span for span in spans if span.score > 0.0]
        return sorted(spans, key=lambda span: (span.passage.marker not in claim.markers, -span.score))

    def quotes_for_paraphrase(self, claim: Claim, *, least: float) -> list[SupportingSpan]:
        """Return the quotes in English that cover at least ``least`` of a claim and contradict it in nothing, best first."""
        tokens = read_tokens(claim.text)
        english = [passage for passage in self._by_marker.values() if passage.language.code == ENGLISH]
        checked = [self._check_quotes(claim, tokens, [passage], least, every_word=False) for passage in english]
        spans = [support for supports, reason in checked if reason is None for support in supports]
        return sorted(spans, key=lambda support: (support.passage.marker not in claim.markers, -support.score))

    def is_prose(self, quote: SupportingSpan) -> bool:
        """Return whether a quote is in English, or shows no language, and has no row of a table."""
        passage = self._by_marker[quote.passage.marker]
        return passage.language.code == ENGLISH and not passage.rows_in(quote.start, quote.end)

    def _check_quotes(
        self,
        claim: Claim,
        tokens: Sequence[Token],
        cited: Sequence[IndexedPassage],
        least: float,
        *,
        every_word: bool = True,
    ) -> tuple[tuple[SupportingSpan, ...], Reason | None]:
        aligned = [(passage, self._coverage.align_claim(tokens, passage)) for passage in cited]
        chosen = [(passage, support) for passage, support in aligned if support.score >= MIN_PASSAGE_SHARE]
        supports = tuple(support for _, support in chosen)
        covered = frozenset().union(*(support.covered for support in supports))
        share = self._coverage.share_of(content_of(tokens), covered)
        if not chosen or share < min(least, MIN_SUPPORT):
            return (), "unsupported"
        rows = [row for passage, support in chosen for row in passage.rows_in(support.start, support.end)]
        evidence = _collect_evidence(tokens, chosen)
        reason = "number" if misplaces_number(tokens, rows) else find_conflict(claim.text, tokens, evidence)
        if reason is None and every_word and (_lacks_words(tokens, covered, evidence) or _adds_logic(tokens, evidence)):
            reason = "unsupported"
        if reason is None and (share < least or not self._covers_parts(tokens, covered, min(1.0, least / MIN_SUPPORT))):
            reason = "unsupported"
        return (supports, None) if reason is None else ((), reason)

    def _covers_parts(self, tokens: Sequence[Token], covered: frozenset[str], strictness: float) -> bool:
        """Return whether the quotes cover enough of each clause, and of the words that are no names or numbers."""
        names = frozenset(form for passage in self._by_marker.values() for form in passage.names) | names_in(tokens)
        if not self._reaches_share(_statement_of(tokens, names), covered, strictness * MIN_STATEMENT_SUPPORT):
            return False
        clauses = _split_clauses(tokens)
        if any(
            not self._reaches_share(content_of(clause), covered, strictness * MIN_CLAUSE_SUPPORT)
            for clause in clauses
            if len(content_of(clause)) >= _CLAUSE_WORDS
        ):
            return False
        # "…, and Mira Voss resigned": a name that is covered hides that the clause is new.
        added = (_statement_of(clause, names) for clause in clauses[1:])
        return all(forms <= covered for forms in added if len(forms) < _CLAUSE_WORDS)

    def _reaches_share(self, forms: frozenset[str], covered: frozenset[str], least: float) -> bool:
        return not forms or self._coverage.share_of(forms, covered) >= least


def _lacks_words(tokens: Sequence[Token], covered: frozenset[str], evidence: Evidence) -> bool:
    """Return whether a short clause in English has a word that no quote has. Names have a check of their own.

    The forms of other languages are too crude for this. Where nouns have capitals, the passages must have all nouns but the first
    of a sentence, which is often another word for the subject: "Das Unternehmen".
    """
    if evidence.language.capital_nouns:
        forms = frozenset(token.form for text in evidence.texts for token in text)
        nouns = [token for token in tokens if token.first or (token.raw[0].isupper() and token.content and not token.number)]
        later = [noun for before, noun in pairwise(nouns) if not before.first or before.content]
        return any(noun.form not in forms for noun in later if not noun.first)
    if evidence.language.code != ENGLISH:
        return False
    name_forms = frozenset(
        form for mention in mentions_in(tokens, evidence.names) if not mention.number for form in mention.forms
    )
    clauses = [content_of(clause) for clause in _split_clauses(tokens)]
    return any(len(forms) <= SHORT_CLAUSE and not forms <= covered | name_forms for forms in clauses)


def _adds_logic(tokens: Sequence[Token], evidence: Evidence) -> bool:
    """Return whether a claim has a word that says how things go together, and no quote has one of the same meaning."""
    logic = evidence.language.logic
    meanings = {logic.get(token.form) for quote in evidence.quotes for token in quote}
    forms = frozenset(token.form for token in tokens) - evidence.language.ambiguous
    return any(logic[form] not in meanings for form in forms if form in logic)


def _asserts_copy(text: str, copy: Copy, *, item: bool) -> bool:
    """Return whether the sentence around a copy asserts it. A short ``item`` of a list states nothing by itself."""
    if copy.qualified or (copy.limited and has_verb(text)):
        return False
    language = copy.language
    tokens = read_tokens(text, language)
    if copy.whole or (item and len(content_of(tokens)) < _CLAUSE_WORDS):
        return True
    quote = [read_tokens(copy.support.quote, language)]
    return not (
        asserts_more(tokens, quote, language) or denies_otherwise(tokens, quote, language) or hides_hedge(tokens, quote, language)
    )


def _statement_of(tokens: Sequence[Token], names: frozenset[str]) -> frozenset[str]:
    """Return the forms of the words that carry meaning and are no names or numbers."""
    return frozenset(token.form for token in tokens if token.content and not token.number) - names


def _split_clauses(tokens: Sequence[Token]) -> list[list[Token]]:
    """Return the parts between semicolons, sentences, and commas before a conjunction."""
    conjunctions = language_of_code(ENGLISH).conjunctions
    clauses: list[list[Token]] = [[]]
    for token in tokens:
        ends = token.first or ";" in token.gap or ("," in token.gap and token.form in conjunctions)
        if ends and clauses[-1]:
            clauses.append([])
        clauses[-1].append(token)
    return clauses


def _collect_evidence(claim: Sequence[Token], chosen: Sequence[tuple[IndexedPassage, SupportingSpan]]) -> Evidence:
    names = frozenset[str]().union(*(passage.names for passage, _ in chosen))
    before = frozenset(token.form for passage, support in chosen for token in passage.within(0, support.start))
    titles = frozenset[str]().union(
        *(passage.title_forms | passage.labels_in(support.start, support.end) for passage, support in chosen)
    )
    return Evidence(
        language=chosen[0][0].language,
        quotes=[passage.within(support.start, support.end) for passage, support in chosen],
        texts=[text for passage, _ in chosen for text in (passage.tokens, passage.title)],
        originals=[text for passage, _ in chosen for text in (passage.passage.text, passage.passage.title)],
        around=Surroundings(titles, before),
        names=names | names_in(claim, names),
        known=names,
    )
