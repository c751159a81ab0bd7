"""Proposition chunking: a chunk is found by self-contained statements of a language model, and its text stays the document's own.

The idea of propositions as units of retrieval is from "Dense X Retrieval" (Chen et al. 2023). Here a statement never replaces
text. It belongs to the sentence that states it, and a chunk is a run of sentences with at most five statements. A statement that
its sentences do not say is dropped. A sentence without a statement is found by its own words. The passage around a chunk is its
parent, because a single sentence is seldom understood alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentic_rag_backend.documents.chunking.base import Piece
from agentic_rag_backend.documents.chunking.joining import fit_starts, fits_chunk, pieces_of
from agentic_rag_backend.documents.chunking.sentence_windows import SentenceWindow, gaps_of, number_sentences
from agentic_rag_backend.domain.document import ChunkingOptions
from agentic_rag_backend.models.llm.base import INTEGER, TEXT, list_of, object_of
from agentic_rag_backend.prompts import built_in, fence
from agentic_rag_backend.prompts.inquiry import Inquiry

MAX_STATEMENTS = 5
"""Statements of a chunk."""
MAX_STATEMENT_CHARACTERS = 400
WINDOW_TOKENS = 600
"""Estimated tokens of a window. The reply is longer than its sentences."""
_MAX_SOURCES = 6
_REPLY_TOKENS = 1500
_STATEMENTS, _STATEMENT, _SENTENCES = "statements", "statement", "sentences"
_SCHEMA = object_of({_STATEMENTS: list_of(object_of({_STATEMENT: TEXT, _SENTENCES: list_of(INTEGER)}))})

IsStated = Callable[[str, str, str], bool]
"""Returns whether a statement is said by a source text, in a document with a title."""


def make_inquiry(title: str, text: str, units: Sequence[Piece], window: SentenceWindow) -> Inquiry:
    """Return the request for the statements of a window."""
    return Inquiry(
        prompt=built_in("chunk_statements"),
        values={
            "about": fence("about", _describe_topic(title, units[window.first])),
            "sentences": number_sentences(text, units, window),
        },
        schema=_SCHEMA,
        max_tokens=_REPLY_TOKENS,
        accepts=lambda reply: any(_read_unit_numbers(item, window) for item in _read_items(reply)),
    )


def statements_of(
    title: str,
    text: str,
    units: Sequence[Piece],
    advice: Sequence[tuple[SentenceWindow, Mapping[str, Any] | None]],
    is_stated: IsStated,
) -> dict[int, list[str]]:
    """Return the statements by the unit that states them, the last one of the units that the model names for a statement."""
    by_unit: defaultdict[int, list[str]] = defaultdict(list)
    for window, reply in advice:
        for item in _read_items(reply or {}):
            places = _read_unit_numbers(item, window)
            statement = " ".join(str(item.get(_STATEMENT, "")).split())
            if not places or not statement or len(statement) > MAX_STATEMENT_CHARACTERS:
                continue
            unit_statements = by_unit[places[-1]]
            source = "\n".join(text[units[number].start : units[number].end] for number in places)
            room = len(unit_statements) < MAX_STATEMENTS and statement not in unit_statements
            if room and is_stated(statement, source, _describe_topic(title, units[places[-1]])):
                unit_statements.append(statement)
    return {unit: unit_statements for unit, unit_statements in by_unit.items() if unit_statements}


def cut_pieces(
    text: str, units: Sequence[Piece], statements: Mapping[int, Sequence[str]], options: ChunkingOptions
) -> Iterator[Piece]:
    """Yield the chunks with their statements and parents. A chunk in which no sentence has a statement has none."""
    gaps = gaps_of(text, units)
    parents = fit_starts((), gaps, units, replace(options, chunk_size=options.parent_size))
    starts = _find_starts(units, statements, set(parents), options)
    for begin, end, piece in zip(
        starts, [*starts[1:], len(units)], pieces_of(starts, units, replace(options, overlap=0)), strict=True
    ):
        above = max(start for start in parents if start <= begin)
        parent_end = next((start for start in parents if start > begin), len(units)) - 1
        sentences = [
            sentence
            for unit in range(begin, end)
            for sentence in _statements_or_text(text, units[unit], statements.get(unit, ()))
        ]
        has_statements = any(unit in statements for unit in range(begin, end))
        yield replace(
            piece, parent=(units[above].start, units[parent_end].end), statements=tuple(sentences) if has_statements else ()
        )


def _find_starts(
    units: Sequence[Piece], statements: Mapping[int, Sequence[str]], parents: set[int], options: ChunkingOptions
) -> list[int]:
    """Return the first units of chunks: at the beginning of parents and sections, and where a chunk is full."""
    starts: list[int] = []
    count = 0
    for unit in range(len(units)):
        unit_count = len(statements.get(unit, ())) or 1
        new = not starts or unit in parents or units[unit].headings != units[unit - 1].headings
        if new or count + unit_count > MAX_STATEMENTS or not fits_chunk(units, starts[-1], unit, options):
            starts.append(unit)
            count = 0
        count += unit_count
    return starts


def _statements_or_text(text: str, unit: Piece, statements: Sequence[str]) -> Sequence[str]:
    """Return the statements of a unit, or its own words."""
    return statements or (" ".join(text[unit.start : unit.end].split()),)


def _describe_topic(title: str, unit: Piece) -> str:
    """Return the title and the headings above a unit, which sentences may refer to."""
    return " – ".join(dict.fromkeys(part for part in (title.strip(), *unit.headings) if part))


def _read_items(reply: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    items = reply.get(_STATEMENTS)
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []


def _read_unit_numbers(item: Mapping[str, Any], window: SentenceWindow) -> list[int]:
    """Return the units that a statement names, in ascending order; empty if a number is not of the window."""
    numbers = item.get(_SENTENCES)
    if not isinstance(numbers, list) or not 0 < len(numbers) <= _MAX_SOURCES:
        return []
    if any(isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= window.count for number in numbers):
        return []
    return sorted({window.first + number - 1 for number in numbers})
