"""Windows of numbered sentences, as a language model reads a document that is longer than its prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from agentic_rag_backend.documents.chunking.base import Piece
from agentic_rag_backend.documents.chunking.joining import Gaps
from agentic_rag_backend.language.tokens import estimate_tokens
from agentic_rag_backend.prompts import fence

WINDOW_TOKENS = 2000
"""Estimated tokens of the sentences of one window."""
WINDOW_UNITS = 100
_SHOWN_CHARACTERS = 600
"""A longer sentence or row is shown by its beginning."""
_NUMBER_TOKENS = 3
_SECTION, _PARAGRAPH = 2.0, 1.0
_LATER = 1e-6
"""Of two equal gaps, the later one is better: it makes fewer chunks."""


@dataclass(frozen=True, slots=True)
class SentenceWindow:
    """The units [first, end) of a document, which the model sees as 1, 2, …"""

    first: int
    end: int

    @property
    def count(self) -> int:
        """Number of units."""
        return self.end - self.first


def windows_of(text: str, units: Sequence[Piece], *, tokens: int = WINDOW_TOKENS) -> list[SentenceWindow]:
    """Divide the units into windows of at most ``tokens``, estimated.

    A window ends where a section or paragraph ends, if one does in its second half.
    """
    gaps = gaps_of(text, units)
    windows: list[SentenceWindow] = []
    start = 0
    while start < len(units):
        end, characters = start, 0
        while end < len(units) and end - start < WINDOW_UNITS:
            characters += estimate_tokens(_shorten_sentence(text, units[end])) + _NUMBER_TOKENS
            if characters > tokens and end > start:
                break
            end += 1
        if end < len(units):
            least = start + max(1, (end - start) // 2)
            end = least + int(np.argmax(gaps[least - 1 : end]))
        windows.append(SentenceWindow(start, end))
        start = end
    return windows


def gaps_of(text: str, units: Sequence[Piece]) -> Gaps:
    """Return the rank of each gap between neighbouring units: the end of a section, of a paragraph, or of a sentence."""
    ranks = [
        _SECTION if after.headings != before.headings else _PARAGRAPH if text.count("\n", before.end, after.start) > 1 else 0.0
        for before, after in pairwise(units)
    ]
    return np.array(ranks, dtype=np.float64) + _LATER * np.arange(len(ranks))


def number_sentences(text: str, units: Sequence[Piece], window: SentenceWindow) -> str:
    """Return the fenced sentences of a window, each on a line with its number."""
    lines = [f"{number}. {_shorten_sentence(text, unit)}" for number, unit in enumerate(units[window.first : window.end], 1)]
    return fence("sentences", "\n".join(lines))


def _shorten_sentence(text: str, unit: Piece) -> str:
    line = " ".join(text[unit.start : unit.end].split())
    return line if len(line) <= _SHOWN_CHARACTERS else f"{line[:_SHOWN_CHARACTERS]} …"
