"""Chooses the rows and lists that a question is about, and the values of each that an answer states.

The rows of a table compete: a row is found by its cells, and a column by its name. A row that lacks the requested value, or that
is one of many alike, does not answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import groupby

from agentic_rag_backend.domain.text.answers import Span, answer_spans, may_answer
from agentic_rag_backend.domain.text.entries.base import Entry, Value, cells_in_sentence, sentence_of
from agentic_rag_backend.domain.text.questions import AnswerKind
from agentic_rag_backend.domain.text.words import content_forms
from agentic_rag_backend.generation.answerability.matches import Matches

MAX_ALIKE = 6
"""Rows that an answer states if the question does not distinguish them. Of more, none answers."""
MAX_VALUES = 8
"""Values of an entry that an answer states if the question names none."""
_YEAR = re.compile(r"\b(?:1[5-9]|20|21)\d\d\b")
_TOTAL = re.compile(
    r"\b(?:total|sum|altogether|in all|overall|combined|together|average|mean|median|per (?:year|month|day)|on average|"
    r"(?:increase|decrease|difference|change|gr[eo]w(?:n|th)?|rise|rose|drop|dropp?ed|fell|fall)\b)\b",
    re.IGNORECASE,
)
"""Questions for a number that is computed from several cells."""
_KINDS = frozenset(
    {
        *(AnswerKind.TIME, AnswerKind.MONEY, AnswerKind.PERCENT, AnswerKind.MEASURE, AnswerKind.COLOUR),
        *(AnswerKind.PHONE, AnswerKind.EMAIL, AnswerKind.WEBSITE),
    }
)
"""Kinds of answers that a value shows by its form."""
_NAMES = frozenset({AnswerKind.NAME, AnswerKind.PLACE})
_WORDED = _NAMES | {AnswerKind.COLOUR}
"""Kinds of answers that a number never is."""
_BEGINS_TEXT = re.compile(r"\w+ [a-z]")
"""A cell that is text: its second word is in lower case."""
Terms = frozenset[int]
"""Numbers of a question's terms."""


@dataclass(frozen=True, slots=True)
class ChosenEntry:
    """An entry with the values that the question is about.

    ``found`` are the question's terms to which words of its cells are related, and ``exact`` those that its cells contain. Terms
    that name a column are not among them.
    """

    passage: int
    entry: Entry
    values: tuple[Value, ...]
    found: Terms
    exact: Terms
    alike: tuple[ChosenEntry, ...] = ()
    """Further rows of its table that the question does not distinguish from it."""

    @property
    def sentence(self) -> str:
        """The sentence that states its values."""
        return sentence_of(self.entry, self.values)

    @property
    def context(self) -> str:
        """Text above it that is about it."""
        return self.entry.context

    def items(self, asked: AnswerKind, question: str) -> list[Span] | None:
        """Return the items of its sentence that may answer, see `answer_spans`.

        The name of a column is no answer, unless the question contains the value below it: 17 in the column 2014 says how many,
        and not when. A word that begins a text in lower case ("Claims for gear") is no name.
        """
        text = self.sentence
        found = answer_spans(text, asked, question)
        if not found:
            return found
        cells = cells_in_sentence(self.entry, self.values)
        known = content_forms(question)
        if not any(content_forms(value.text) & known for value in self.values):
            found = [(start, end) for start, end in found if any(start < last and first < end for first, last in cells)]
        if asked in _NAMES:
            begin = {first for first, last in cells if _BEGINS_TEXT.match(text, first, last)}
            found = [(start, end) for start, end in found if start not in begin or " " in text[start:end]]
        return found


@dataclass(frozen=True, slots=True)
class EntryChooser:
    """Chooses entries for one question, whose terms are those of ``matches``."""

    question: str
    asked: AnswerKind
    matches: Matches

    def choose(self, passages: Sequence[tuple[str, str, Sequence[Entry]]]) -> list[ChosenEntry]:
        """Return the entries that may answer, in order. ``passages`` are document, title and entries of each passage."""
        chosen: list[ChosenEntry] = []
        rows: list[tuple[tuple[str, tuple[str, ...]], ChosenEntry]] = []
        seen: set[tuple[str, str]] = set()
        for number, (document, title, entries) in enumerate(passages):
            for entry in entries:
                whole = (document, sentence_of(entry))
                if not entry.values or whole in seen:
                    continue
                seen.add(whole)
                found = self._entry(number, title, entry)
                if found is not None and entry.row:
                    rows.append(((document, _columns(entry)), found))
                elif found is not None:
                    chosen.append(found)
        rows.sort(key=lambda item: item[0])
        for _, table in groupby(rows, key=lambda item: item[0]):
            chosen += self._rows([row for _, row in table])
        return sorted(chosen, key=lambda each: (each.passage, each.entry.start))

    def _entry(self, passage: int, title: str, entry: Entry) -> ChosenEntry | None:
        """Return an entry with the values that the question is about; None if none of them can be the requested one."""
        subject = self._terms(entry.subject)
        labels = {value: self._terms(value.label) for value in entry.values}
        cells = {value: self._terms(value.text) for value in entry.values}
        blank = [self._terms(label) for label in entry.blank]
        # What the row itself is about does not name a column.
        named = _largest([terms - (frozenset() if entry.row else subject) for terms in (*labels.values(), *blank)])
        if self._other_year(title, entry) or (named and not any(terms in named for terms in labels.values()) and entry.row):
            return None
        columns = frozenset().union(*labels.values(), *blank)
        about = columns if entry.row else columns | subject
        values = _values(entry, named, labels, {value: terms - about for value, terms in cells.items()})
        if not named and self.asked in _KINDS:
            # "How long is the boat?" names no column, but asks for a measure.
            values = tuple(value for value in values if may_answer(str(value), self.asked, "")) or values
        if self.asked in _WORDED and not any(map(_worded, values)):
            return None
        texts = (entry.subject, *(value.text for value in entry.values))
        exact = frozenset().union(*(self.matches.equal(content_forms(text)) for text in texts)) - columns
        return ChosenEntry(passage, entry, values, found=subject.union(*cells.values()) - columns, exact=exact)

    def _rows(self, rows: Sequence[ChosenEntry]) -> list[ChosenEntry]:
        """Return the rows of a table that contain most of the question, those alike as one."""
        # "Archive" is only related to "archivist", which another row may contain.
        exact = any(row.exact for row in rows)
        held = [row.exact if exact else row.found for row in rows]
        best = _largest(held) or {frozenset()}
        groups: dict[Terms, list[ChosenEntry]] = {}
        for row, terms in zip(rows, held, strict=True):
            if terms in best:
                groups.setdefault(terms, []).append(row)
        computed = _TOTAL.search(self.question) is not None
        return [
            replace(group[0], alike=tuple(group[1:]))
            for group in groups.values()
            if len(group) == 1 or (len(group) <= MAX_ALIKE and not computed)
        ]

    def _terms(self, text: str) -> Terms:
        return frozenset(row for form in content_forms(text) for row in self.matches.rows(form))

    def _other_year(self, title: str, entry: Entry) -> bool:
        """Return whether the question is about a year, and the entry about other years."""
        asked = set(_YEAR.findall(self.question))
        if not asked:
            return False
        own = set(_YEAR.findall(" ".join((sentence_of(entry), *entry.blank))))
        return bool(own) and not asked <= own | set(_YEAR.findall(f"{title} {entry.context}"))


def _worded(value: Value) -> bool:
    return any(map(str.isalpha, value.text))


def _columns(entry: Entry) -> tuple[str, ...]:
    return tuple(sorted({*(value.label for value in entry.values), *entry.blank}))


def _largest(found: Iterable[Terms]) -> Set[Terms]:
    """Return the sets that are not within another one, without the empty set."""
    sets = {terms for terms in found if terms}
    return {terms for terms in sets if not any(terms < other for other in sets)}


def _values(entry: Entry, named: Set[Terms], labels: Mapping[Value, Terms], own: Mapping[Value, Terms]) -> tuple[Value, ...]:
    """Return the values of the columns that the question names, and those that contain its words; of a row without both, all."""
    if named:
        return tuple(value for value in entry.values if labels[value] in named or own[value])
    if not entry.row:
        best = _largest(own.values())
        if best:
            return tuple(value for value in entry.values if own[value] in best)
    return entry.values[:MAX_VALUES] if entry.row else entry.values
