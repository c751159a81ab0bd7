"""Writes synthetic questions by patterns of English sentences, and of rows and lists with labels. No model is called."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from agentic_rag_backend.domain.document import MAX_QUESTION_CHARACTERS, Chunk
from agentic_rag_backend.ingestion.questions.base import PATTERNS, WrittenQuestions
from agentic_rag_backend.knowledge.extraction.lexicon import FUNCTION_WORDS
from agentic_rag_backend.knowledge.model_calls import ResultRecord
from agentic_rag_backend.language.entries.base import Entry, EntryValue
from agentic_rag_backend.language.entries.reading import read_entries
from agentic_rag_backend.plugins.question_grammar.clauses import clauses
from agentic_rag_backend.plugins.question_grammar.forming import Draft, questions_of

_IN_LOOP_CHARACTERS = 20_000
_OF_ROW = 0.9
_MAX_LABEL_WORDS = 5
_ADJECTIVES = ("ed", "al", "ous", "able")
_MAX_ROWS = 50
"""Rows of a chunk that are read. A chunk has at most three questions."""


class PatternQuestions:
    """Writes questions by rules; pure, deterministic, linear in the text's length."""

    @property
    def version(self) -> str:
        """Name of the method and its version."""
        return "patterns-1"

    async def write(self, title: str, chunks: Sequence[Chunk], per_chunk: int, record: ResultRecord) -> list[WrittenQuestions]:
        """See `QuestionWriter`. Long texts are read in a thread."""
        if sum(len(chunk.text) for chunk in chunks) <= _IN_LOOP_CHARACTERS:
            return self._all(title, chunks, per_chunk)
        return await asyncio.to_thread(self._all, title, chunks, per_chunk)

    def _all(self, title: str, chunks: Sequence[Chunk], per_chunk: int) -> list[WrittenQuestions]:
        return [WrittenQuestions(tuple(pattern_questions(title, chunk, per_chunk)), PATTERNS) for chunk in chunks]


def pattern_questions(title: str, chunk: Chunk, per_chunk: int) -> list[str]:
    """Return at most ``per_chunk`` questions that a chunk answers, the most specific ones first.

    They are of different sentences and rows if there are enough of these.
    """
    reading = read_entries(chunk.text, chunk.location.header)
    drafts = [draft for clause in clauses(reading.sentences, title) for draft in questions_of(clause)]
    first_row = len(reading.sentences)
    drafts += _of_rows(reading.entries[:_MAX_ROWS], first_row)
    return _choose_questions([draft for draft in drafts if len(draft.text) <= MAX_QUESTION_CHARACTERS], per_chunk)


def _of_rows(entries: Sequence[Entry], start: int) -> Iterator[Draft]:
    """Yield "What is the room of Petra Sauvage?" for rows: the first one asks for the first column, the next for the next."""
    for number, entry in enumerate(entries):
        values = [value for value in entry.values if _labels(value)]
        if entry.row and entry.subject and values:
            value = values[number % len(values)]
            yield Draft(_of_value(entry.subject.rstrip(" .:"), value), _OF_ROW, start + number)


def _labels(value: EntryValue) -> bool:
    words = value.label.split()
    if not words or len(words) > _MAX_LABEL_WORDS or not any(map(str.isalpha, value.label)):
        return False
    last_word = words[-1].casefold()
    return last_word not in FUNCTION_WORDS and not last_word.endswith(_ADJECTIVES)  # not "the planned of the tender"


def _of_value(subject: str, value: EntryValue) -> str:
    label, number = _lower_label(value.label), value.text[:1].isdigit()
    if number and any(_is_plural(word) for word in label.split()):
        return f"How many {label} are given for {subject}?"
    if number and " " in label:
        return f"What is the {label} figure for {subject}?"
    return f"What is the {label} of {subject}?"


def _is_plural(word: str) -> bool:
    return len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is"))


def _lower_label(label: str) -> str:
    """Return a label within a sentence: "Room" → "room". "GDP per capita" and "Maiden Rock" stay."""
    label = label.rstrip(" .:")
    name = label[:2].isupper() or any(word[0].isupper() for word in label.split()[1:])
    return label if name else f"{label[:1].casefold()}{label[1:]}"


def _choose_questions(drafts: Sequence[Draft], per_chunk: int) -> list[str]:
    """Return the best questions: first the best one of each sentence or row, then others."""
    ranked = sorted(drafts, key=lambda draft: (-draft.rank, draft.number))
    numbers: set[int] = set()
    drafts_of_new_numbers: list[str] = []
    later: list[str] = []
    for draft in ranked:
        (later if draft.number in numbers else drafts_of_new_numbers).append(draft.text)
        numbers.add(draft.number)
    return list(dict.fromkeys([*drafts_of_new_numbers, *later]))[:per_chunk]
