"""The chunker port, its input and its output."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.domain.document import ChunkingOptions


@dataclass(frozen=True, slots=True)
class Piece:
    """A passage [start, end) of the text, without white space at its ends, and the headings above it, outermost first.

    ``header`` is the header of the table or list within which it begins, otherwise empty. ``parent`` is the passage
    that is read when this one is found. None: only this one. ``statements`` are what search finds it by, instead of its text. If
    there are none, it is found by its text. ``functions`` are the definitions of source code in it; see `Location`.
    """

    start: int
    end: int
    size_tokens: int
    headings: tuple[str, ...] = ()
    header: str = ""
    parent: tuple[int, int] | None = None
    statements: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()


class Chunker(Protocol):
    """Cuts the text of a document. Pure and blocking: called in a worker thread.

    Pieces come in reading order and together hold every character of the text that is not white space.
    """

    def __call__(self, parsed: ParsedDocument, options: ChunkingOptions) -> Iterable[Piece]: ...
