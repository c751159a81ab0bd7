"""Passages prepared for claim checks: their words, their possible quotes, and the quote that covers most of a claim."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from agentic_rag_backend.generation.claims.base import SupportingSpan
from agentic_rag_backend.generation.claims.tokens import Token, content_of, names_in, read_tokens
from agentic_rag_backend.generation.context import Passage
from agentic_rag_backend.language.entries.base import Entry
from agentic_rag_backend.language.entries.reading import EntryReading, read_entries
from agentic_rag_backend.language.sentences import Sentence, split_sentences
from agentic_rag_backend.language.words import inverse_frequency

LONGEST_QUOTE = 600
"""In characters. Two sentences are joined into one quote only if the quote is shorter."""
SECOND_SENTENCE = 0.05
"""Least gain in coverage for which a quote gets a second sentence, if one sentence does not cover `ENOUGH`."""
ENOUGH = 0.6
FURTHER_WORDS = 3
"""Least number of further words for a second sentence if the first covers `ENOUGH`: a changed name alone gains fewer."""


@dataclass(frozen=True, slots=True)
class Window:
    """A possible quote: a span of the passage, and its words."""

    start: int
    end: int
    double: bool
    forms: frozenset[str]
    labels: frozenset[str] = frozenset()
    """Forms of the names of columns, if it is a row of a table."""


class IndexedPassage:
    """A passage with its words and its possible quotes; computed at the first use."""

    def __init__(self, passage: Passage) -> None:
        self.passage = passage

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
        return read_tokens(self.passage.text)

    @cached_property
    def forms(self) -> frozenset[str]:
        """The forms of its words."""
        return frozenset(token.form for token in self.tokens)

    @cached_property
    def title(self) -> tuple[Token, ...]:
        """The words of its title."""
        return read_tokens(self.passage.title)

    @cached_property
    def title_forms(self) -> frozenset[str]:
        """The forms of its title's words."""
        return frozenset(token.form for token in self.title)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names in its text and title."""
        return names_in(self.tokens) | frozenset(token.form for token in self.title if token.capital and token.content)

    @cached_property
    def windows(self) -> list[Window]:
        """Each sentence, then each two neighbours that are short enough; the shorter first."""
        spans = [(sentence.start, sentence.end, False) for sentence in self.sentences]
        spans += [
            (first.start, second.end, True)
            for first, second in zip(self.sentences, self.sentences[1:], strict=False)
            if second.end - first.start <= LONGEST_QUOTE
        ]
        spans.sort(key=lambda span: (span[2], span[1] - span[0], span[0]))
        return [
            Window(*span, frozenset(token.form for token in self.within(*span[:2])), self.labels(*span[:2])) for span in spans
        ]

    def rows(self, start: int, end: int) -> list[Entry]:
        """Return the rows of tables of which a span contains a part."""
        first = bisect_right(self._row_ends, start)
        last = bisect_left(self._row_starts, end)
        return self._rows[first:last]

    def labels(self, start: int, end: int) -> frozenset[str]:
        """Return the forms of the names of columns, and of the line above the table, for the rows in a span."""
        texts = {
            text for row in self.rows(start, end) for text in (*row.blank, *(value.label for value in row.values), row.context)
        }
        return frozenset(token.form for text in texts for token in read_tokens(text))

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

    @cached_property
    def _run(self) -> tuple[str, list[int]]:
        """Return the forms of all words as one text, and the place of each in it."""
        places: list[int] = []
        length = 0
        for token in self.tokens:
            places.append(length)
            length += len(token.form) + 1
        return _joined([token.form for token in self.tokens]), places

    def within(self, start: int, end: int) -> tuple[Token, ...]:
        """Return the words of a span."""
        return self.tokens[bisect_left(self._starts, start) : bisect_left(self._starts, end)]

    def exact(self, wanted: Sequence[str]) -> tuple[int, int] | None:
        """Return the sentences that contain ``wanted``, normalised words, one after the other."""
        run, places = self._run
        at = run.find(_joined(wanted)) if wanted else -1
        if at < 0:
            return None
        index = bisect_left(places, at)
        start, end = self.tokens[index].start, self.tokens[index + len(wanted) - 1].end
        inside = [sentence for sentence in self.sentences if sentence.start < end and start < sentence.end]
        whole = (min(inside[0].start, start), max(inside[-1].end, end)) if inside else (start, end)
        return whole if whole[1] - whole[0] <= max(LONGEST_QUOTE, end - start) else (start, end)


def _joined(forms: Sequence[str]) -> str:
    """Return words as one text in which a search finds whole words only."""
    return "\n" + "".join(f"{form}\n" for form in forms)


class Coverage:
    """The share of a claim that words cover, each word weighted by its rarity among the passages of one answer."""

    def __init__(self, passages: Sequence[IndexedPassage]) -> None:
        self._rarity: Mapping[str, float] = inverse_frequency(window.forms for held in passages for window in held.windows)
        self._unseen = max(self._rarity.values(), default=1.0)

    def share(self, forms: frozenset[str], covered: frozenset[str]) -> float:
        """Return the share of ``forms`` that is in ``covered``, in [0, 1]."""
        total = sum(self._weight(form) for form in forms)
        return sum(self._weight(form) for form in forms & covered) / total if total else 0.0

    def align(self, claim: Sequence[Token], held: IndexedPassage) -> SupportingSpan:
        """Return the quote that covers most of the claim; of equals the shorter, then the earlier."""
        forms = content_of(claim)
        exact = held.exact([token.form for token in claim])
        if exact is not None:
            return SupportingSpan(held.passage, *exact, 1.0, forms)
        best = SupportingSpan(held.passage, 0, 0, 0.0, frozenset())
        for window in held.windows:
            covered = forms & window.forms
            # The title resolves "he", and a header names the columns: their words count if the quote covers the rest.
            covered = covered | (forms & (held.title_forms | window.labels)) if covered else covered
            score = self.share(forms, covered)
            if best.score >= ENOUGH and window.double and len(covered - best.covered) < FURTHER_WORDS:
                continue
            if score > best.score + (SECOND_SENTENCE if best.score else 0.0):
                best = SupportingSpan(held.passage, window.start, window.end, score, covered)
        return best

    def _weight(self, form: str) -> float:
        return self._rarity.get(form, self._unseen)
