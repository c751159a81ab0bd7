"""Dates and numbers that sentences give of an entity: "The array was opened on 14 June 2014"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.language.dates import find_years
from agentic_rag_backend.language.occasions import BESIDE, DISTINGUISHING
from agentic_rag_backend.language.sentences import Sentence, split_sentences
from agentic_rag_backend.language.values import Amount, Moment, Span, placed_amounts, placed_moments
from agentic_rag_backend.language.word_classes import FINITE, VERBS
from agentic_rag_backend.language.words import STOP_WORDS, Word, all_forms, words

MAX_BETWEEN = 8
"""Words between the name of an entity and a value of it, at most."""
MAX_VALUES = 6
"""Values of a sentence that are read. A sentence with more is a list."""
_DIGIT = re.compile(r"\d")
_BREAKS = frozenset(";:()[]|—\n")
_VERB_FORMS = VERBS | FINITE | STOP_WORDS | all_forms("cost")
_CLAUSE_ENDS = _BREAKS | {",", "."}
_NO_PREDICATE = all_forms(
    "officially formally finally first monday tuesday wednesday thursday friday saturday sunday crown pounds"
)
_BOUNDS = frozenset(
    {"from", "until", "till", "between", "after", "before", "by", "since", "to", "through", "every", "over", "than"}
)
"""Words before a value that make it a bound."""
_HEDGED = all_forms("not never may might could would will should perhaps possibly about planned expected proposed")
_WORDS_OF_SENTENCE = 60
_INTRODUCTIONS = frozenset({"the", "a", "an", "on", "in", "by", "later", "however", "finally", "then"})
"""Words that may stand before the subject of a sentence."""
_PRONOUNS = frozenset({"it", "he", "she", "they", "its", "his", "her", "their"})

ValueKind = Literal["date", "number"]


@dataclass(frozen=True)
class ReadSentence:
    """A sentence of a chunk, with its words and values."""

    passage: VisibleChunk
    sentence: Sentence
    words: tuple[Word, ...]
    dates: tuple[tuple[Moment, Span], ...]
    amounts: tuple[tuple[Amount, Span], ...]
    years: frozenset[int]


@dataclass(frozen=True)
class ValueStatement:
    """A value that a sentence gives of an entity. ``predicate`` are the words that say of what of the entity it is the value."""

    read: ReadSentence
    kind: ValueKind
    value: Moment | Amount
    measure: str
    """The unit of a number, or the counted thing; empty for a date."""
    predicate: frozenset[str]
    distinguishing: frozenset[str]

    @property
    def document_id(self) -> str:
        """The document."""
        return self.read.passage.chunk.document_id


def read_sentences(passage: VisibleChunk) -> list[ReadSentence]:
    """Return the sentences of a chunk that have one to `MAX_VALUES` dates and numbers."""
    found = []
    for sentence in split_sentences(passage.chunk.text):
        text = sentence.text
        if _DIGIT.search(text) is None:
            continue
        dates, amounts = placed_moments(text), placed_amounts(text)
        if 1 <= len(dates) + len(amounts) <= MAX_VALUES and "|" not in text:
            every = tuple(words(text))
            if len(every) <= _WORDS_OF_SENTENCE:
                found.append(ReadSentence(passage, sentence, every, tuple(dates), tuple(amounts), frozenset(find_years(text))))
    return found


def statements_about(read: ReadSentence, names: Sequence[Sequence[str]], *, topic: bool = False) -> Iterator[ValueStatement]:
    """Yield the values that a sentence gives of an entity.

    Args:
        names: the entity's names, each as the forms of its words.
        topic: whether the title or a heading above the chunk names the entity. "It was opened" is then about the entity.
    """
    subject = subject_of(read.sentence.text, read.words, names, [span for _, span in read.dates])
    if subject is None:
        if not topic or not read.words or read.words[0].form not in _PRONOUNS:
            return
        subject = 0, 1
    for moment, span in read.dates:
        if moment.years is not None:
            yield from _statement(read, "date", moment, span, subject)
    for amount, span in read.amounts:
        yield from _statement(read, "number", amount, span, subject)


def _statement(
    read: ReadSentence, kind: ValueKind, value: Moment | Amount, span: Span, subject: tuple[int, int]
) -> Iterator[ValueStatement]:
    text, every = read.sentence.text, read.words
    first = next((number for number, word in enumerate(every) if word.start >= span[0]), len(every))
    last = next((number for number, word in enumerate(every) if word.start >= span[1]), len(every))
    begin, end = subject
    if end <= first:
        between = _after_values(every[end:first], [each for _, each in (*read.dates, *read.amounts)])
        gap = text[between[0].start if between else span[0] : span[0]]
        bounded = between[-1:]
    else:
        # "On 2 September 2014 the array was opened": the words after the name say of what.
        between = every[end : end + 1 + BESIDE]
        gap = text[every[end - 1].end : between[-1].end] if between else ""
        bounded = every[first - 1 : first] if first else ()
        if last > begin or begin - last > BESIDE:
            return
    stopped = not _BREAKS.isdisjoint(gap) or gap.count(",") > 1 or len(between) > MAX_BETWEEN
    if stopped or any(word.form in _BOUNDS for word in bounded) or any(word.form in _HEDGED for word in between):
        return
    predicate = frozenset(
        word.form
        for word in between
        if word.content and not word.name and word.form not in _NO_PREDICATE and word.form not in STOP_WORDS
    )
    measure = "" if kind == "date" else _measure(value, every[last : last + BESIDE], text[span[0] : span[1]])
    if kind == "number" and measure and not predicate and between:
        # "The array has six turbines" says what is counted after the number.
        predicate = frozenset({measure})
    if not predicate or (kind == "number" and not measure):
        return
    clause = next((at for at in range(span[1], len(text)) if text[at] in _CLAUSE_ENDS), len(text))
    around = every[max(begin - BESIDE, 0) : last] + tuple(word for word in every[last : last + BESIDE] if word.start < clause)
    distinguishing = frozenset(word.form for word in around if word.form in DISTINGUISHING) - predicate
    yield ValueStatement(read, kind, value, measure, predicate, distinguishing)


def subject_of(text: str, every: Sequence[Word], names: Sequence[Sequence[str]], spans: Sequence[Span]) -> tuple[int, int] | None:
    """Return the numbers of the first and after the last word of the entity's name, if it is the subject of the sentence.

    It is the first name, not part of a longer one, and only articles, adverbs and dates (``spans``) stand before it. A later name
    is mostly about something else: "the route to London was opened", "a member of the House for the 3rd district".
    """
    start = next((at for at, word in enumerate(every) if not _introduces(word, spans)), len(every))
    for name in names:
        end = start + len(name)
        if [word.form for word in every[start:end]] == list(name) and not _continues(every, start, end):
            return (start, end) if _is_verb(text, every[end : end + 1]) else None
    return None


def _is_verb(text: str, following: Sequence[Word]) -> bool:
    """Return whether the word after a name is a verb or a small word. The subject of "The Acme outlet" is not Acme."""
    if not following:
        return True
    form, written = following[0].form, text[following[0].start : following[0].end]
    return not form.isalpha() or form in _VERB_FORMS or written.endswith(("ed", "s"))


def _introduces(word: Word, spans: Sequence[Span]) -> bool:
    return word.form in _INTRODUCTIONS or _within(word, spans)


def _continues(every: Sequence[Word], start: int, end: int) -> bool:
    """Return whether the name goes on to the left or the right: "Mirrow Narrows" in "Mirrow Narrows Tidal Array"."""
    before = start > 0 and _is_name(every[start - 1]) and every[start - 1].end + 1 == every[start].start
    after = end < len(every) and _is_name(every[end]) and every[end - 1].end + 1 == every[end].start
    return before or after


def _is_name(word: Word) -> bool:
    return word.name and not word.form[0].isdigit()


def _after_values(between: Sequence[Word], spans: Sequence[Span]) -> Sequence[Word]:
    """Return the words after the last other value: of "born in 1950 and died in 2001", "died" is about 2001."""
    last = max((number for number, word in enumerate(between) if _within(word, spans)), default=-1)
    return between[last + 1 :]


def _measure(value: Moment | Amount, following: Sequence[Word], written: str) -> str:
    unit = value.unit if isinstance(value, Amount) else ""
    currency = next((sign for sign in "$£€¥" if sign in written), "")
    noun = next((word.form for word in following if word.content and not word.name), "")
    return unit or currency or noun


def _within(word: Word, spans: Sequence[Span]) -> bool:
    return any(start <= word.start < end for start, end in spans)
