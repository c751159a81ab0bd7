"""Passages and claims in other languages prepared for checks: their words, their possible quotes, and coverage."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from agentic_rag_backend.generation.claims.base import SupportingSpan
from agentic_rag_backend.generation.claims.languages.forms import FormIndex
from agentic_rag_backend.generation.claims.languages.lexicon import Lexicon, lexicon_of
from agentic_rag_backend.generation.claims.languages.terms import Term, is_character, read_terms
from agentic_rag_backend.generation.context import Passage
from agentic_rag_backend.language.languages import language_near, language_of_passage
from agentic_rag_backend.language.sentences import split_sentences

LONGEST_QUOTE = 600
"""In characters. Two sentences are joined into one quote only if the quote is shorter."""
SECOND_SENTENCE = 0.05
"""Least gain in coverage for which a quote gets a second sentence."""
MAX_FORMS = 200
"""Words of a claim that are compared with words of another form. Further ones must be equal."""
_JOINING = frozenset(
    ["und", "et", "y", "e", "och", "en", "i", "and", "mais", "aber", "but", "oder", "ou", "sowie", "pero", "ma", "mas"]
)
_WORD = re.compile(r"[^\W\d_]+")
LEAST_DIFFERENT = 2
"""Function words that show that a claim is in another language than an English passage."""


def language_of_claim(text: str, near: str | None) -> str | None:
    """Return the language of a claim about a passage in the language ``near``."""
    return language_near(text, near, least=LEAST_DIFFERENT)


@dataclass(frozen=True)
class Clause:
    """Terms ``start`` to ``end`` (exclusive) of a text, between punctuation or conjunctions, and the text itself."""

    start: int
    end: int
    text: str
    terms: tuple[Term, ...]


class ReadText:
    """A text in a language, with its words and clauses."""

    def __init__(self, text: str, language: str | None) -> None:
        self.text = text
        self.language = language
        self.lexicon: Lexicon = lexicon_of(language)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Its words."""
        return read_terms(self.text, self.lexicon)

    @cached_property
    def content(self) -> frozenset[int]:
        """The numbers of its words that carry meaning."""
        return frozenset(number for number, term in enumerate(self.terms) if term.content)

    def clauses(self, terms: Sequence[Term] | None = None) -> list[Clause]:
        """Return the clauses of all or some consecutive terms."""
        found: list[Clause] = []
        terms = self.terms if terms is None else terms
        start = 0
        for end in range(1, len(terms) + 1):
            if end == len(terms) or terms[end].breaks or terms[end].first or terms[end].form in _JOINING:
                part = tuple(terms[start:end])
                found.append(Clause(start, end, self.text[part[0].start : part[-1].end], part))
                start = end
        return found


def units_of(terms: Sequence[Term]) -> frozenset[str]:
    """Return the forms of words and numbers that carry meaning, and all pairs of neighbouring characters."""
    words = {term.form for term in terms if term.content and not is_character(term)}
    words.update(pair for index in range(len(terms)) if (pair := pair_at(terms, index)))
    return frozenset(words)


def pair_at(terms: Sequence[Term], index: int) -> str:
    """Return the character at a place and the next one; empty if there are no such two."""
    after = terms[index + 1] if 0 <= index < len(terms) - 1 else None
    if after is None or not after.glued or after.breaks or len(after.raw) > 1 or len(terms[index].raw) > 1:
        return ""
    return terms[index].raw + after.raw


@dataclass(frozen=True, slots=True)
class Window:
    """A possible quote: one or two sentences."""

    start: int
    end: int
    units: frozenset[str]


class ReadPassage(ReadText):
    """A passage with its possible quotes."""

    def __init__(self, passage: Passage) -> None:
        super().__init__(passage.text, language_of_passage(passage.text) or passage.language or None)
        self.passage = passage

    @cached_property
    def title(self) -> tuple[Term, ...]:
        """The words of its title."""
        return read_terms(self.passage.title, self.lexicon)

    @cached_property
    def windows(self) -> list[Window]:
        """Each sentence, then each two neighbours that are short enough."""
        spans = [(sentence.start, sentence.end) for sentence in split_sentences(self.text)]
        joined = [(one[0], two[1]) for one, two in pairwise(spans) if two[1] - one[0] <= LONGEST_QUOTE]
        return [Window(*span, units_of(self.within(*span))) for span in (*spans, *joined)]

    def lacking(self, text: str) -> str:
        """Return ``text`` without the words that the passage or its title has."""
        return _WORD.sub(lambda found: "" if found[0].lower() in self._words else found[0], text)

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(word.lower() for each in (self.text, self.passage.title) for word in _WORD.findall(each))

    @cached_property
    def forms(self) -> FormIndex:
        """The words of its text and title, in this order."""
        return FormIndex(term.form for term in (*self.terms, *self.title) if not term.number and not is_character(term))

    def within(self, start: int, end: int) -> tuple[Term, ...]:
        """Return the words of a span."""
        return self.terms[bisect_left(self._starts, start) : bisect_left(self._starts, end)]

    @cached_property
    def _starts(self) -> list[int]:
        return [term.start for term in self.terms]


class Matcher:
    """The words of passages that may be other forms of a claim's words.

    Args:
        vocabulary: words of other texts.
        indexes: the words of passages.
    """

    def __init__(self, claim: ReadText, vocabulary: frozenset[str] = frozenset(), indexes: Sequence[FormIndex] = ()) -> None:
        self._claim = claim
        indexes = [*indexes, FormIndex(sorted(vocabulary))] if vocabulary else indexes
        forms = dict.fromkeys(term.form for term in claim.terms if term.content and not term.number and not is_character(term))
        self._forms: Mapping[str, frozenset[str]] = {
            form: frozenset[str]().union(*(index.alike_to(form) for index in indexes)) for form in list(forms)[:MAX_FORMS]
        }

        self._places: dict[str, list[int]] = {}
        for number in sorted(claim.content):
            for unit in self._units(number):
                self._places.setdefault(unit, []).append(number)

    def covered(self, held: frozenset[str]) -> frozenset[int]:
        """Return the numbers of the claim's words that ``held``, a set of units, contains in the same or another form.

        A character is contained with the one before or after it.
        """
        return frozenset(number for unit in held for number in self._places.get(unit, ()))

    def _units(self, number: int) -> Iterator[str]:
        """Yield the units that contain a word of the claim."""
        terms = self._claim.terms
        if is_character(terms[number]):
            yield from filter(None, {pair_at(terms, number - 1), pair_at(terms, number)})
        else:
            yield from {terms[number].form, *self._forms.get(terms[number].form, ())}


@dataclass(frozen=True, slots=True)
class Alignment:
    """The quote of a passage that covers most of a claim: a span, and the numbers of the claim's words that it covers."""

    held: ReadPassage
    start: int
    end: int
    score: float
    covered: frozenset[int]

    @property
    def support(self) -> SupportingSpan:
        """The quote as a verdict has it."""
        return SupportingSpan(self.held.passage, self.start, self.end, self.score, frozenset())


def align(claim: ReadText, held: ReadPassage, matcher: Matcher) -> Alignment:
    """Return the quote that covers most of the claim; of equals the earlier and shorter."""
    best = Alignment(held, 0, 0, 0.0, frozenset())
    title = matcher.covered(units_of(held.title))
    for window in held.windows:
        covered = matcher.covered(window.units)
        # The title resolves "he", as in English: its words count if the quote covers others.
        covered = covered | title if covered else covered
        score = len(covered) / len(claim.content)
        if score > best.score + (SECOND_SENTENCE if best.score else 0.0):
            best = Alignment(held, window.start, window.end, score, covered)
    return best
