"""Keeps the vectors of questions and of sentences that were compared: later answers from the same passages encode less."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.fairness import current_actor
from agentic_rag_backend.models.embedding.base import TextVectors, Vectors, WordEncoder
from agentic_rag_backend.retrieval.caching import TenantCache
from agentic_rag_backend.telemetry.metrics import SENTENCES_CACHE, count_cache_use

Spans = Sequence[tuple[int, int]]


class CachedWordEncoder:
    """Cache of `WordEncoder.encode_words` and `TextEncoder.embed`. Texts are kept as digests, not in words.

    The acting tenant (see `fairness.current_actor`) is a part of the key: the time of an answer must not show whether another
    tenant has the same sentence. Without a tenant, nothing is kept.

    Args:
        encoder: encodes the texts that are not kept. A text's vectors must not depend on the other texts of the call.
        max_bytes: bound of the kept vectors. 0: none are kept.
    """

    def __init__(self, encoder: WordEncoder, *, max_bytes: int) -> None:
        self._encoder = encoder
        self.entries = TenantCache[TextVectors](SENTENCES_CACHE, max_bytes)

    async def encode_words(self, texts: Sequence[str], spans: Sequence[Spans]) -> list[TextVectors]:
        """See `WordEncoder`. The vectors are read-only if they are kept."""

        async def encode(numbers: Sequence[int]) -> list[TextVectors]:
            return await self._encoder.encode_words([texts[at] for at in numbers], [spans[at] for at in numbers])

        return await self._embed_with_cache([_key_of(text, words) for text, words in zip(texts, spans, strict=True)], encode)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See `TextEncoder`."""
        if not texts:
            return await self._encoder.embed(texts)

        async def embed(numbers: Sequence[int]) -> list[TextVectors]:
            rows = await self._encoder.embed([texts[at] for at in numbers])
            # Copies, because a row would keep all rows in memory.
            return [TextVectors(row.copy(), np.empty((0, len(row)), np.float32)) for row in rows]

        return np.stack(
            [vectors.whole for vectors in await self._embed_with_cache([_key_of(text, None) for text in texts], embed)]
        )

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """See `TextEncoder`."""
        return await self._encoder.embed_query(text)

    async def _embed_with_cache(
        self, keys: Sequence[bytes], encode: Callable[[Sequence[int]], Awaitable[list[TextVectors]]]
    ) -> list[TextVectors]:
        """Return the vectors of each key. ``encode`` makes those of the given places."""
        tenant = current_actor().tenant
        if tenant is None or not self.entries.enabled:
            return await encode(range(len(keys)))
        entries = {key: self.entries.get(tenant, key) for key in keys}
        absent = [index for index, key in enumerate(keys) if entries[key] is None]
        count_cache_use(SENTENCES_CACHE, "miss" if absent else "hit")
        if absent:
            entries |= self._keep_entries(tenant, [keys[index] for index in absent], await encode(absent))
        return [vectors for key in keys if (vectors := entries[key]) is not None]

    def _keep_entries(self, tenant: TenantId, keys: Sequence[bytes], encoded: Sequence[TextVectors]) -> dict[bytes, TextVectors]:
        entries = dict(zip(keys, encoded, strict=True))
        for vectors in entries.values():
            for rows in (vectors.whole, vectors.words):
                rows.setflags(write=False)  # several answers read them
        sizes = {key: (vectors, vectors.whole.nbytes + vectors.words.nbytes) for key, vectors in entries.items()}
        self.entries.put_all(tenant, sizes)
        return entries


def _key_of(text: str, spans: Spans | None) -> bytes:
    """Return the key of a text and its words; None: of the text as a passage."""
    words = None if spans is None else [*map(tuple, spans)]
    return hashlib.sha256(f"{words}\n{text}".encode("utf-8", "surrogatepass")).digest()
