"""Passages prepared for claim checks: their words, their possible quotes, and the quote that covers most of a claim."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from agentic_rag_backend.answering.claims.base import SupportingSpan
from agentic_rag_backend.answering.claims.tokens import Token, content_of, names_in, read_tokens
from agentic_rag_backend.answering.evidence.context import Passage
from agentic_rag_backend.language.entries.base import Entry
from agentic_rag_backend.language.entries.reading import EntryReading, read_entries
from agentic_rag_backend.language.languages import ENGLISH, foreign_script_of, language_of_passage
from agentic_rag_backend.language.sentences import Sentence, split_sentences
from agentic_rag_backend.language.vocabulary.lexicon import Language, language_of_code
from agentic_rag_backend.language.words import inverse_frequency

LONGEST_QUOTE = 600
"""In characters. Two sentences are joined into one quote only if the quote is shorter."""
SECOND_SENTENCE = 0.05
"""Least gain in coverage for which a quote gets a second sentence, if one sentence does not cover `ENOUGH`."""
ENOUGH = 0.6
UNKNOWN = "und"
"""Code of a language that is written in a script of several languages."""
_MIN_LETTERS = 8
_WORD = re.compile(r"[^\W\d_]+")
FURTHER_WORDS = 3
"""Least number of further words for a second sentence if the first covers `ENOUGH`: a changed name alone gains fewer."""


@dataclass(frozen=True, slots=True)
class QuoteWindow:
    """A possible quote: a span of the passage, and its words."""

    start: int
    end: int
    double: bool
    forms: frozenset[str]
    labels: frozenset[str] = frozenset()
    """Forms of the names of columns, if it is a row of a table."""


class IndexedPassage:
    """A passage with its words in its language, English by default, and its possible quotes; computed at the first use."""

    def __init__(self, passage: Passage, language: Language | None = None) -> None:
        self.passage = passage
        self.language = language or language_of_code(ENGLISH)

    @cached_property
    def _reading(self) -> EntryReading:
        return read_entries(self.passage.text, self.passage.header)

    @property
    def entries(self) -> Sequence[Entry]:
        """Its rows of tables, and its lists."""
        return self._reading.entries

    @cached_property
    def sentences(self) -> list[Sentence]:
        """Its sentences."""
        return split_sentences(self.passage.text)

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """Its words, without bracketed references such as "[3]"."""
        return read_tokens(self.passage.text, self.language)

    @cached_property
    def forms(self) -> frozenset[str]:
        """The forms of its words."""
        return frozenset(token.form for token in self.tokens)

    @cached_property
    def title(self) -> tuple[Token, ...]:
        """The words of its title."""
        return read_tokens(self.passage.title, self.language)

    @cached_property
    def title_forms(self) -> frozenset[str]:
        """The forms of its title's words."""
        return frozenset(token.form for token in self.title)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names in its text and title."""
        return names_in(self.tokens) | frozenset(token.form for token in self.title if token.capital and token.content)

    @cached_property
    def windows(self) -> list[QuoteWindow]:
        """Each sentence, then each two neighbours that are short enough; the shorter first."""
        spans = [(sentence.start, sentence.end, False) for sentence in self.sentences]
        spans += [
            (sentence.start, next_sentence.end, True)
            for sentence, next_sentence in zip(self.sentences, self.sentences[1:], strict=False)
            if next_sentence.end - sentence.start <= LONGEST_QUOTE
        ]
        spans.sort(key=lambda span: (span[2], span[1] - span[0], span[0]))
        return [
            QuoteWindow(*span, frozenset(token.form for token in self.within(*span[:2])), self.labels_in(*span[:2]))
            for span in spans
        ]

    def without_words(self, text: str) -> str:
        """Return ``text`` without the words that the passage or its title has."""
        return _WORD.sub(lambda word: "" if word[0].lower() in self._words else word[0], text)

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(word.lower() for text in (self.passage.text, self.passage.title) for word in _WORD.findall(text))

    def rows_in(self, start: int, end: int) -> list[Entry]:
        """Return the rows of tables of which a span contains a part."""
        first = bisect_right(self._row_ends, start)
        last = bisect_left(self._row_starts, end)
        return self._rows[first:last]

    def labels_in(self, start: int, end: int) -> frozenset[str]:
        """Return the forms of the names of columns, and of the line above the table, for the rows in a span."""
        texts = {
            text for row in self.rows_in(start, end) for text in (*row.blank, *(value.label for value in row.values), row.context)
        }
        return frozenset(token.form for text in texts for token in read_tokens(text, self.language))

    @cached_property
    def _rows(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.row]

    @cached_property
    def _row_starts(self) -> list[int]:
        return [row.start for row in self._rows]

    @cached_property
    def _row_ends(self) -> list[int]:
        return [row.end for row in self._rows]

    @cached_property
    def _starts(self) -> list[int]:
        return [token.start for token in self.tokens]

    def within(self, start: int, end: int) -> tuple[Token, ...]:
        """Return the words of a span."""
        return self.tokens[bisect_left(self._starts, start) : bisect_left(self._starts, end)]


def index_passage(passage: Passage) -> IndexedPassage:
    """Return a passage with its language: what its text shows, or its metadata, or its script. None of them: English."""
    code = language_of_passage(passage.text) or passage.language
    if not code and foreign_script_of(passage.text, least=_MIN_LETTERS) is not None:
        code = UNKNOWN
    return IndexedPassage(passage, language_of_code(code or ENGLISH))


class Coverage:
    """The share of a claim that words cover, each word weighted by its rarity among the passages of one answer."""

    def __init__(self, passages: Sequence[IndexedPassage]) -> None:
        self._rarity: Mapping[str, float] = inverse_frequency(window.forms for passage in passages for window in passage.windows)
        self._unseen = max(self._rarity.values(), default=1.0)

    def share_of(self, forms: frozenset[str], covered: frozenset[str]) -> float:
        """Return the share of ``forms`` that is in ``covered``, in [0, 1]."""
        total = sum(self._weight_of(form) for form in forms)
        return sum(self._weight_of(form) for form in forms & covered) / total if total else 0.0

    def align_claim(self, claim: Sequence[Token], passage: IndexedPassage) -> SupportingSpan:
        """Return the quote that covers most of the claim; of equals the shorter, then the earlier."""
        forms = content_of(claim)
        best = SupportingSpan(passage.passage, 0, 0, 0.0, frozenset())
        for window in passage.windows:
            covered = forms & window.forms
            # The title resolves "he", and a header names the columns: their words count if the quote covers the rest.
            covered = covered | (forms & (passage.title_forms | window.labels)) if covered else covered
            score = self.share_of(forms, covered)
            if best.score >= ENOUGH and window.double and len(covered - best.covered) < FURTHER_WORDS:
                continue
            if score > best.score + (SECOND_SENTENCE if best.score else 0.0):
                best = SupportingSpan(passage.passage, window.start, window.end, score, covered)
        return best

    def _weight_of(self, form: str) -> float:
        return self._rarity.get(form, self._unseen)
