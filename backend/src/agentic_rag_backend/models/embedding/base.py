"""The embedder port."""

from __future__ import annotations

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


class Embedder(Protocol):
    """Texts in, unit-length vectors out. Concurrent calls are welcome: an adapter may put them into one batch.

    A text longer than the model reads is embedded in windows and pooled, never cut silently.
    """

    @property
    def fingerprint(self) -> str:
        """Name model, weights and dimension; stored vectors are only comparable under an equal fingerprint."""

    @property
    def dimensions(self) -> int:
        """Length of every vector."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed passages: float32, shape (len(texts), dimensions), rows of length 1, in the order given.

        Raises:
            ModelUnavailable: the model did not answer in its time.
            ModelInputRefused: the model refuses at least one text; the error does not name it.
        """

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed one question, before anything that is waiting: float32, shape (dimensions,).

        Only its first `query_characters` are read, so that no question costs much more than another.
        """

    def query_characters(self, text: str) -> int:
        """Return how many characters of a question `embed_query` reads: all of them, unless it is very long."""

    async def close(self) -> None:
        """Release threads and connections."""


class Tokenizer(Protocol):
    """Positions of a model's word pieces in a text; chunk sizes are counted with it."""

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the [start, end) character offsets of each word piece, in order, special tokens left out."""
