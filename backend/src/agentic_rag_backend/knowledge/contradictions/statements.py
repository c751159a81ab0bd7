"""Dates and numbers that sentences give of an entity: "The array was opened on 14 June 2014"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.language.sentences import Sentence, split_sentences
from agentic_rag_backend.language.times import find_years
from agentic_rag_backend.language.values import Amount, Moment, Span, placed_amounts, placed_moments
from agentic_rag_backend.language.vocabulary.word_classes import BESIDE, DISTINGUISHING, FINITE, VERBS
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
    sentences = []
    for sentence in split_sentences(passage.chunk.text):
        text = sentence.text
        if _DIGIT.search(text) is None:
            continue
        dates, amounts = placed_moments(text), placed_amounts(text)
        if 1 <= len(dates) + len(amounts) <= MAX_VALUES and "|" not in text:
            sentence_words = tuple(words(text))
            if len(sentence_words) <= _WORDS_OF_SENTENCE:
                sentences.append(
                    ReadSentence(passage, sentence, sentence_words, tuple(dates), tuple(amounts), frozenset(find_years(text)))
                )
    return sentences


def statements_about(sentence: ReadSentence, names: Sequence[Sequence[str]], *, topic: bool = False) -> Iterator[ValueStatement]:
    """Yield the values that a sentence gives of an entity.

    Args:
        names: the entity's names, each as the forms of its words.
        topic: whether the title or a heading above the chunk names the entity. "It was opened" is then about the entity.
    """
    subject = subject_of(sentence.sentence.text, sentence.words, names, [span for _, span in sentence.dates])
    if subject is None:
        if not topic or not sentence.words or sentence.words[0].form not in _PRONOUNS:
            return
        subject = 0, 1
    for moment, span in sentence.dates:
        if moment.years is not None:
            yield from _read_statement(sentence, "date", moment, span, subject)
    for amount, span in sentence.amounts:
        yield from _read_statement(sentence, "number", amount, span, subject)


def _read_statement(
    sentence: ReadSentence, kind: ValueKind, value: Moment | Amount, span: Span, subject: tuple[int, int]
) -> Iterator[ValueStatement]:
    text, all_words = sentence.sentence.text, sentence.words
    value_start = next((number for number, word in enumerate(all_words) if word.start >= span[0]), len(all_words))
    value_end = next((number for number, word in enumerate(all_words) if word.start >= span[1]), len(all_words))
    begin, end = subject
    if end <= value_start:
        between = _after_values(
            all_words[end:value_start], [value_span for _, value_span in (*sentence.dates, *sentence.amounts)]
        )
        gap = text[between[0].start if between else span[0] : span[0]]
        bounded = between[-1:]
    else:
        # "On 2 September 2014 the array was opened": the words after the name say of what.
        between = all_words[end : end + 1 + BESIDE]
        gap = text[all_words[end - 1].end : between[-1].end] if between else ""
        bounded = all_words[value_start - 1 : value_start] if value_start else ()
        if value_end > begin or begin - value_end > BESIDE:
            return
    stopped = not _BREAKS.isdisjoint(gap) or gap.count(",") > 1 or len(between) > MAX_BETWEEN
    if stopped or any(word.form in _BOUNDS for word in bounded) or any(word.form in _HEDGED for word in between):
        return
    predicate = frozenset(
        word.form
        for word in between
        if word.content and not word.name and word.form not in _NO_PREDICATE and word.form not in STOP_WORDS
    )
    measure = "" if kind == "date" else _measure_of(value, all_words[value_end : value_end + BESIDE], text[span[0] : span[1]])
    if kind == "number" and measure and not predicate and between:
        # "The array has six turbines" says what is counted after the number.
        predicate = frozenset({measure})
    if not predicate or (kind == "number" and not measure):
        return
    clause = next((at for at in range(span[1], len(text)) if text[at] in _CLAUSE_ENDS), len(text))
    around = all_words[max(begin - BESIDE, 0) : value_end] + tuple(
        word for word in all_words[value_end : value_end + BESIDE] if word.start < clause
    )
    distinguishing = frozenset(word.form for word in around if word.form in DISTINGUISHING) - predicate
    yield ValueStatement(sentence, kind, value, measure, predicate, distinguishing)


def subject_of(
    text: str, all_words: Sequence[Word], names: Sequence[Sequence[str]], spans: Sequence[Span]
) -> tuple[int, int] | None:
    """Return the numbers of the first and after the last word of the entity's name, if it is the subject of the sentence.

    It is the first name, not part of a longer one, and only articles, adverbs and dates (``spans``) stand before it. A later name
    is mostly about something else: "the route to London was opened", "a member of the House for the 3rd district".
    """
    start = next((at for at, word in enumerate(all_words) if not _is_introduction(word, spans)), len(all_words))
    for name in names:
        end = start + len(name)
        if [word.form for word in all_words[start:end]] == list(name) and not _name_continues(all_words, start, end):
            return (start, end) if _is_verb(text, all_words[end : end + 1]) else None
    return None


def _is_verb(text: str, following: Sequence[Word]) -> bool:
    """Return whether the word after a name is a verb or a small word. The subject of "The Acme outlet" is not Acme."""
    if not following:
        return True
    form, spelling = following[0].form, text[following[0].start : following[0].end]
    return not form.isalpha() or form in _VERB_FORMS or spelling.endswith(("ed", "s"))


def _is_introduction(word: Word, spans: Sequence[Span]) -> bool:
    return word.form in _INTRODUCTIONS or is_within(word, spans)


def _name_continues(all_words: Sequence[Word], start: int, end: int) -> bool:
    """Return whether the name goes on to the left or the right: "Mirrow Narrows" in "Mirrow Narrows Tidal Array"."""
    before = start > 0 and _is_name(all_words[start - 1]) and all_words[start - 1].end + 1 == all_words[start].start
    after = end < len(all_words) and _is_name(all_words[end]) and all_words[end - 1].end + 1 == all_words[end].start
    return before or after


def _is_name(word: Word) -> bool:
    return word.name and not word.form[0].isdigit()


def _after_values(between: Sequence[Word], spans: Sequence[Span]) -> Sequence[Word]:
    """Return the words after the last other value: of "born in 1950 and died in 2001", "died" is about 2001."""
    last_value = max((number for number, word in enumerate(between) if is_within(word, spans)), default=-1)
    return between[last_value + 1 :]


def _measure_of(value: Moment | Amount, following: Sequence[Word], spelling: str) -> str:
    unit = value.unit if isinstance(value, Amount) else ""
    currency = next((sign for sign in "$£€¥" if sign in spelling), "")
    noun = next((word.form for word in following if word.content and not word.name), "")
    return unit or currency or noun


def is_within(word: Word, spans: Sequence[Span]) -> bool:
    """Return whether a word begins within one of some spans."""
    return any(start <= word.start < end for start, end in spans)
