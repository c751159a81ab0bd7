"""The embedder port, and the clock of an embedder's work."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EmbedderStats:
    """Counters of an embedder since its creation; adapters offer them as ``stats``.

    ``busy_s`` is wall-clock time with at least one passage in work. An ingestion's total time divided by it shows the cost of
    everything except the embedder. ``windows`` ≥ ``texts``: long texts take several.
    """

    texts: int = 0
    windows: int = 0
    queries: int = 0
    busy_s: float = 0.0


class TextEncoder(Protocol):
    """Encodes texts as unit-length vectors. Concurrent calls are expected; an adapter may combine them into one batch.

    A text longer than the model's input is encoded in windows and pooled, never truncated silently.
    """

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed passages: float32, shape (len(texts), dimensions), rows of length 1, in the given order.

        Raises:
            ModelUnavailable: the model did not answer in time.
            ModelInputRefused: the model refuses at least one text. The error does not say which.
        """

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed one question with priority over waiting passages: float32, shape (dimensions,).

        Only its first characters are read (see `Embedder.query_characters`), so the cost per question is bounded.
        """


class Embedder(TextEncoder, Protocol):
    """The encoder of the indexes, whose vectors are stored."""

    @property
    def fingerprint(self) -> str:
        """Identity of model, weights and dimension. Vectors with different fingerprints cannot be compared."""

    @property
    def dimensions(self) -> int:
        """Length of every vector."""

    @property
    def languages(self) -> tuple[str, ...] | None:
        """ISO 639-1 codes of the languages that the model was trained for. None: many, or unknown."""

    def query_characters(self, text: str) -> int:
        """Return the number of characters of a question that `embed_query` reads. It is less than all for very long questions
        only.
        """

    def query_tokens(self, text: str) -> int:
        """Return the tokens that a remote model is expected to bill for a question. 0 for a model in this process."""

    async def close(self) -> None:
        """Release threads and connections."""


@dataclass(frozen=True, slots=True)
class TextVectors:
    """A text's vector, shape (dimensions,), and the vectors of its words, shape (words, dimensions). All have length 1."""

    whole: NDArray[np.float32]
    words: Vectors


class WordEncoder(TextEncoder, Protocol):
    """Encodes texts together with the words in them, each in its context. The encoder of questions and evidence, not of indexes:
    its vectors are never stored.
    """

    async def encode_words(self, texts: Sequence[str], spans: Sequence[Sequence[tuple[int, int]]]) -> list[TextVectors]:
        """Encode texts with priority over waiting passages.

        Args:
            spans: for each text, the [start, end) character offsets of its words. Of a text longer than one window of the model,
                the words after the window have vectors of zeros.

        Raises:
            ModelUnavailable: the encoder is closed.
        """


class TokenEncoder(Protocol):
    """Encodes texts as the vectors of their word pieces, each in its context. Its vectors are never stored."""

    async def encode_tokens(self, texts: Sequence[str]) -> list[Vectors]:
        """Encode texts with priority over waiting passages: for each text float32, shape (word pieces, dimensions), rows of
        length 1, without special tokens.

        Of a text longer than one window of the model, only the first window is encoded.

        Raises:
            ModelUnavailable: the encoder is closed.
        """


class BusyClock:
    """Counts texts, and the wall-clock seconds during which at least one passage was being embedded."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._since = 0.0
        self._busy_s = 0.0
        self._counts = {"texts": 0, "windows": 0, "queries": 0}

    def __enter__(self) -> None:
        with self._lock:
            if self._running == 0:
                self._since = time.perf_counter()
            self._running += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._running -= 1
            if self._running == 0:
                self._busy_s += time.perf_counter() - self._since

    def add_counts(self, **added: int) -> None:
        """Add to the counts."""
        with self._lock:
            for name, number in added.items():
                self._counts[name] += number

    def read_stats(self) -> EmbedderStats:
        """Return the counts and times so far."""
        with self._lock:
            current = time.perf_counter() - self._since if self._running else 0.0
            return EmbedderStats(busy_s=self._busy_s + current, **self._counts)
