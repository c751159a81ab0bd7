"""Sizes of any part of a text in word pieces, from one tokenisation of the whole."""

from __future__ import annotations

import re

import numpy as np

from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer

_BLOCK_CHARACTERS = 262_144
_SPACE = re.compile(r"\s")


class Measure:
    """Where the units of a text begin: its word pieces, or its characters.

    Texts are tokenised in blocks cut before white space, so memory is a few bytes a character whatever the length.
    """

    def __init__(self, text: str, tokenizer: WordPieceTokenizer, *, unit: str) -> None:
        self._length = len(text)
        self._tokens = _token_starts(text, tokenizer)
        self._characters = unit == "characters"

    def count_tokens(self, start: int, end: int) -> int:
        """Return how many word pieces begin in [start, end)."""
        low, high = np.searchsorted(self._tokens, (start, end))
        return int(high - low)

    def measure_span(self, start: int, end: int) -> int:
        """Return the size of [start, end) in the unit."""
        return end - start if self._characters else self.count_tokens(start, end)

    def find_end(self, start: int, size: int) -> int:
        """Return the largest end for which [start, end) has at most ``size`` units."""
        if self._characters:
            return min(start + size, self._length)
        index = int(np.searchsorted(self._tokens, start)) + size
        return int(self._tokens[index]) if index < len(self._tokens) else self._length

    def find_start(self, end: int, size: int) -> int:
        """Return the smallest start for which [start, end) has at most ``size`` units."""
        if self._characters:
            return max(end - size, 0)
        index = int(np.searchsorted(self._tokens, end)) - size
        return int(self._tokens[index]) if 0 <= index < len(self._tokens) else 0 if index < 0 else end


def _token_starts(text: str, tokenizer: WordPieceTokenizer) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    blocks = []
    start = 0
    while start < len(text):
        space = _SPACE.search(text, min(start + _BLOCK_CHARACTERS, len(text)), start + 2 * _BLOCK_CHARACTERS)
        end = space.start() if space else start + 2 * _BLOCK_CHARACTERS
        spans = tokenizer.spans(text[start:end])
        blocks.append(np.fromiter((span[0] for span in spans), dtype=np.int64, count=len(spans)) + start)
        start = end
    return np.concatenate(blocks) if blocks else np.empty(0, dtype=np.int64)
