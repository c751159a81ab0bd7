"""The encoder of questions and evidence: the bundled weights, whatever embeds the indexes.

What judges an answer is fitted to the similarities of one encoder. It also makes no paid calls, which another embedder might.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.models.embedding.base import Embedder, TextVectors, Vectors
from agentic_rag_backend.models.embedding.bundled import BundledEmbedder


class EvidenceEncoder:
    """Encodes with the bundled weights. Unless ``embedder`` has them, they are loaded for the first question: a second, 100 MB.

    Args:
        embedder: the installation's. It is used if it has the bundled weights.
    """

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._shared = embedder if isinstance(embedder, BundledEmbedder) and embedder.is_bundled else None
        self._own: BundledEmbedder | None = None
        self._loading = asyncio.Lock()

    async def encode_words(self, texts: Sequence[str], spans: Sequence[Sequence[tuple[int, int]]]) -> list[TextVectors]:
        """See `WordEncoder`."""
        return await (await self._load_bundled_embedder()).encode_words(texts, spans)

    async def encode_tokens(self, texts: Sequence[str]) -> list[Vectors]:
        """See `TokenEncoder`."""
        return await (await self._load_bundled_embedder()).encode_tokens(texts)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See `TextEncoder`."""
        return await (await self._load_bundled_embedder()).embed(texts)

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """See `TextEncoder`."""
        return await (await self._load_bundled_embedder()).embed_query(text)

    async def close(self) -> None:
        """Release the weights that it loaded itself."""
        if self._own is not None:
            await self._own.close()

    async def _load_bundled_embedder(self) -> BundledEmbedder:
        if loaded := self._shared or self._own:
            return loaded
        async with self._loading:
            if self._own is None:
                self._own = await asyncio.to_thread(BundledEmbedder, threads=1, arithmetic=None)
        return self._own
