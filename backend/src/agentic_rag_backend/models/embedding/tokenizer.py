"""The word pieces of the bundled model, which also determine chunk sizes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import tokenizers

from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.models.embedding.model_files import TOKENIZER_FILE, locate_file

PIECE_CHARACTERS = 32_768
"""Text is tokenised in pieces of about this many characters, so that memory does not grow with the text."""
UNKNOWN_WORD_CHARACTERS = 16
"""A longer word that the vocabulary lacks counts as one word piece per this many characters: sizes stay bounded."""

_SPACE = re.compile(r"\s")


def split_pieces(text: str) -> Iterator[tuple[int, str]]:
    """Yield ``(offset, piece)`` for ``text``, split before white space into pieces of at most twice `PIECE_CHARACTERS`.

    A longer run without white space is split inside. Nothing is left out.
    """
    start = 0
    while len(text) - start > PIECE_CHARACTERS:
        space = _SPACE.search(text, start + PIECE_CHARACTERS, start + 2 * PIECE_CHARACTERS)
        end = space.start() if space else min(start + 2 * PIECE_CHARACTERS, len(text))
        yield start, text[start:end]
        start = end
    if start < len(text):
        yield start, text[start:]


def load_tokenizer(path: Path) -> tokenizers.Tokenizer:
    """Return the tokenizer of ``path`` without the file's truncation and padding, which would change texts silently.

    Raises:
        ConfigurationError: the file is not a tokenizer.
    """
    try:
        loaded = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises a bare Exception for every malformed file
        raise ConfigurationError(f"{path} is not a tokenizer file: {error}") from error
    loaded.no_truncation()
    loaded.no_padding()
    return loaded


class WordPieceTokenizer:
    """Word piece spans of any text, in time and memory linear in its length. Thread-safe.

    Args:
        path: a ``tokenizer.json``; None: the bundled model's.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._tokenizer = load_tokenizer(path if path is not None else locate_file(TOKENIZER_FILE, None).path)
        unknown = getattr(self._tokenizer.model, "unk_token", None)
        self._unknown = None if unknown is None else self._tokenizer.token_to_id(unknown)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the [start, end) character offsets of each word piece, in order, without special tokens."""
        spans: list[tuple[int, int]] = []
        for offset, piece in split_pieces(text):
            encoding = self._tokenizer.encode(piece, add_special_tokens=False)
            longest = max((end - start for start, end in encoding.offsets), default=0)
            if longest > UNKNOWN_WORD_CHARACTERS:
                spans.extend(self._bound_spans(encoding, offset))
            else:
                spans.extend((offset + start, offset + end) for start, end in encoding.offsets)
        return spans

    def _bound_spans(self, encoding: tokenizers.Encoding, offset: int) -> Iterator[tuple[int, int]]:
        for identifier, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            step = UNKNOWN_WORD_CHARACTERS if identifier == self._unknown else max(1, end - start)
            for begin in range(start, end, step) or (start,):
                yield offset + begin, offset + min(begin + step, end)
