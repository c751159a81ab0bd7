"""Check sentences against passages: find the verbatim support of a claim. Plain functions of values.

A claim holds under three conditions. The words of a window of one or two sentences of the cited passage cover enough of its
words, each weighted by rarity among the evidence (containment, the direction of entailment). Every name and number in it
occurs in the cited passages. It denies nothing that they affirm, and affirms nothing that they deny.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from agentic_rag_backend.domain.text.sentences import Sentence, split_sentences
from agentic_rag_backend.domain.text.words import NEGATIONS, Word, content_forms, inverse_frequency, names_and_numbers, words
from agentic_rag_backend.generation.claims.reading import Claim
from agentic_rag_backend.generation.context import Passage

MIN_SUPPORT = 0.6
"""Least share of a claim's weighted words that the quotes under it must cover together."""
MIN_OWN_SHARE = 0.25
"""A cited passage that covers less than this share of the claim does not support it. Its marker is dropped."""
MIN_UNCITED_SUPPORT = 0.8
"""Share that another passage must cover to support a claim without valid citations."""
LONGEST_QUOTE = 600
"""In characters. Two sentences are joined into one quote only if the quote is shorter."""
_BRACKETED_NUMBER = re.compile(r"\[\s*\d[\d\s,;–-]*\]")


@dataclass(frozen=True, slots=True)
class SupportingSpan:
    """A verbatim span of a passage that supports a claim: ``passage.text[start:end]``; ``score`` is the share it covers."""

    passage: Passage
    start: int
    end: int
    score: float
    covered: frozenset[str]

    @property
    def quote(self) -> str:
        """The words of the document."""
        return self.passage.text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class _Window:
    start: int
    end: int
    words: tuple[Word, ...]
    forms: frozenset[str]


class IndexedPassage:
    """A passage with its words and its possible quote windows; computed at the first use."""

    def __init__(self, passage: Passage) -> None:
        self.passage = passage

    @cached_property
    def sentences(self) -> list[Sentence]:
        """Its sentences."""
        return split_sentences(self.passage.text)

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """Its words, without bracketed references such as "[3]"."""
        spans = [match.span() for match in _BRACKETED_NUMBER.finditer(self.passage.text)]
        found = words(self.passage.text)
        return tuple(word for word in found if not any(start <= word.start < end for start, end in spans))

    @cached_property
    def forms(self) -> frozenset[str]:
        """The forms of its words and its title's."""
        return frozenset(word.form for word in self.words) | frozenset(word.form for word in words(self.passage.title))

    @cached_property
    def windows(self) -> list[_Window]:
        """Each sentence, and each two neighbours that are short enough."""
        single = [self._window(sentence.start, sentence.end) for sentence in self.sentences]
        double = [
            self._window(first.start, second.end)
            for first, second in zip(self.sentences, self.sentences[1:], strict=False)
            if second.end - first.start <= LONGEST_QUOTE
        ]
        return single + double

    def _window(self, start: int, end: int) -> _Window:
        inside = tuple(word for word in self.words if start <= word.start < end)
        return _Window(start, end, inside, frozenset(word.form for word in inside))


class CitationChecker:
    """Checks claims against one answer's evidence."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._by_marker = {passage.marker: IndexedPassage(passage) for passage in passages}
        windows = [window.forms for held in self._by_marker.values() for window in held.windows]
        self._rarity = inverse_frequency(windows)
        self._unseen = max(self._rarity.values(), default=1.0)

    def check(self, claim: Claim) -> tuple[SupportingSpan, ...]:
        """Return the passages that support the claim, in the order of its markers; none if the claim does not hold.

        Markers of missing passages, or of passages that do not support the claim, are left out. A claim without markers,
        or with failed markers only, is cited again if one passage supports it strongly.
        """
        forms = content_forms(claim.text)
        if not forms:
            return ()
        cited = [self._by_marker[marker] for marker in claim.markers if marker in self._by_marker]
        held = self._hold(claim, forms, cited, MIN_SUPPORT)
        if held:
            return held
        for other in sorted(self._by_marker.values(), key=lambda passage: -self._align(claim, forms, passage).score):
            held = self._hold(claim, forms, [other], MIN_UNCITED_SUPPORT)
            if held:
                return held
        return ()

    def nearest(self, claim: Claim) -> tuple[SupportingSpan, ...]:
        """Return the best span of every passage the claim cites, whether it supports the claim or not."""
        forms = content_forms(claim.text)
        cited = [self._by_marker[marker] for marker in claim.markers if marker in self._by_marker]
        supports = (self._align(claim, forms, passage) for passage in cited)
        return tuple(support for support in supports if support.end > support.start)

    def _hold(
        self, claim: Claim, forms: frozenset[str], cited: Sequence[IndexedPassage], least: float
    ) -> tuple[SupportingSpan, ...]:
        supports = [self._align(claim, forms, passage) for passage in cited]
        kept = [(passage, support) for passage, support in zip(cited, supports, strict=True) if support.score >= MIN_OWN_SHARE]
        if not kept:
            return ()
        covered = frozenset().union(*(support.covered for _, support in kept))
        passage_forms = frozenset().union(*(passage.forms for passage, _ in kept))
        if self._share(forms, covered) < least or not names_and_numbers(claim.text) <= passage_forms:
            return ()
        if _contradicted(claim.text, [words(support.quote) for _, support in kept]):
            return ()
        return tuple(support for _, support in kept)

    def _align(self, claim: Claim, forms: frozenset[str], held: IndexedPassage) -> SupportingSpan:
        """Return the window that covers most of the claim; of equals the shorter, then the earlier."""
        exact = _exact_span(words(_BRACKETED_NUMBER.sub("", claim.text)), held)
        if exact is not None:
            return SupportingSpan(held.passage, *exact, 1.0, forms)
        title = frozenset(word.form for word in words(held.passage.title))
        best = SupportingSpan(held.passage, 0, 0, 0.0, frozenset())
        for window in sorted(held.windows, key=lambda window: (window.end - window.start, window.start)):
            covered = forms & window.forms
            # The title resolves "he": its words count if the window covers the rest.
            covered = covered | (forms & title) if covered else covered
            score = self._share(forms, covered)
            # A second sentence must improve the coverage to be included in the quote.
            if score > best.score + (0.05 if best.score else 0.0):
                best = SupportingSpan(held.passage, window.start, window.end, score, covered)
        return best

    def _share(self, forms: frozenset[str], covered: frozenset[str]) -> float:
        total = sum(self._weight(form) for form in forms)
        return sum(self._weight(form) for form in forms & covered) / total if total else 0.0

    def _weight(self, form: str) -> float:
        weights: Mapping[str, float] = self._rarity
        return weights.get(form, self._unseen)


def _exact_span(claim: Sequence[Word], held: IndexedPassage) -> tuple[int, int] | None:
    """Return the sentence, or the span, of the passage that contains the claim's words one after the other."""
    wanted = [word.form for word in claim]
    forms = [word.form for word in held.words]
    if not wanted:
        return None
    for index in range(len(forms) - len(wanted) + 1):
        if forms[index] == wanted[0] and forms[index : index + len(wanted)] == wanted:
            start, end = held.words[index].start, held.words[index + len(wanted) - 1].end
            inside = [sentence for sentence in held.sentences if sentence.start < end and start < sentence.end]
            whole = (min(inside[0].start, start), max(inside[-1].end, end)) if inside else (start, end)
            return whole if whole[1] - whole[0] <= max(LONGEST_QUOTE, end - start) else (start, end)
    return None


def _contradicted(claim: str, quotes: Sequence[Sequence[Word]]) -> bool:
    """Return whether the claim denies a statement of the quotes, or affirms a statement that they deny."""
    claim_words = words(claim)
    if any(_negates(word) for word in claim_words):
        return not any(_negates(word) for quote in quotes for word in quote)
    forms = {word.form for word in claim_words if word.content}
    for quote in quotes:
        for index, word in enumerate(quote):
            if _negates(word):
                denied = [after.form for after in quote[index + 1 :] if after.content][:2]
                if denied and all(form in forms for form in denied):
                    return True
    return False


def _negates(word: Word) -> bool:
    return word.form in NEGATIONS or word.form.endswith("n't")
