"""`late_interaction`: each word piece of the question looks for the most similar word piece of a passage (MaxSim).

Khattab and Zaharia, "ColBERT: efficient and effective passage search via contextualized late interaction over BERT", SIGIR 2020.
The bundled encoder was not trained for it, but its word pieces are compared in their context all the same.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.domain.query import Hit, Query
from agentic_rag_backend.domain.usage import UsageAccount
from agentic_rag_backend.models.embedding.base import TokenEncoder, Vectors
from agentic_rag_backend.retrieval.rerank.base import Reranking
from agentic_rag_backend.retrieval.rerank.passages import passage_of

TokenVectors = NDArray[np.float16]
OWN_SHARE = 0.5
"""Share of the strategy's score ÷ the best score. The rest is the share of MaxSim."""


class TokenVectorCache:
    """Word piece vectors of passages, the least recently used ones dropped. The vectors are kept as float16.

    A chunk's id names its tenant and its text, so that no tenant can find out the texts of another by the time of a search.

    Args:
        max_bytes: bound of all vectors together.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._held: OrderedDict[tuple[str, str], TokenVectors] = OrderedDict()
        self.size_bytes = 0
        self.hits = 0
        self.misses = 0

    def get(self, key: tuple[str, str]) -> TokenVectors | None:
        """Return the vectors of a chunk's id and text."""
        vectors = self._held.get(key)
        self.hits += vectors is not None
        self.misses += vectors is None
        if vectors is not None:
            self._held.move_to_end(key)
        return vectors

    def put(self, key: tuple[str, str], vectors: TokenVectors) -> None:
        """Keep vectors. Vectors that are larger than the whole cache are not kept."""
        if key in self._held or vectors.nbytes > self._max_bytes:
            return
        self._held[key] = vectors
        self.size_bytes += vectors.nbytes
        while self.size_bytes > self._max_bytes:
            self.size_bytes -= self._held.popitem(last=False)[1].nbytes


class LateInteraction:
    """Scores passages by MaxSim and the strategy's score.

    Args:
        encoder: gives the vectors of word pieces.
        cache: keeps those of passages.
    """

    def __init__(self, encoder: TokenEncoder, cache: TokenVectorCache) -> None:
        self._encoder = encoder
        self.cache = cache

    def check(self) -> None:
        """It can always be used."""

    async def rerank(self, query: Query, candidates: Sequence[Hit], account: UsageAccount) -> Reranking:
        """Return the score of each candidate."""
        texts = [passage_of(hit) for hit in candidates]
        keys = [(hit.id, text) for hit, text in zip(candidates, texts, strict=True)]
        cached = [self.cache.get(key) for key in keys]
        missing_numbers = [number for number, vectors in enumerate(cached) if vectors is None]
        question_vectors, *passage_vectors = await self._encoder.encode_tokens(
            [query.text, *(texts[number] for number in missing_numbers)]
        )
        for number, vectors in zip(missing_numbers, passage_vectors, strict=True):
            cached[number] = small = vectors.astype(np.float16)
            self.cache.put(keys[number], small)
        best = max((hit.score for hit in candidates), default=0.0) or 1.0
        similar = [max_sim(question_vectors, vectors) if vectors is not None else 0.0 for vectors in cached]
        scores = {
            hit.id: OWN_SHARE * hit.score / best + (1 - OWN_SHARE) * value for hit, value in zip(candidates, similar, strict=True)
        }
        return Reranking(scores=scores, details={"encoded": len(missing_numbers)})


def max_sim(question: Vectors, passage: TokenVectors) -> float:
    """Return the mean, over the word pieces of the question, of the greatest cosine with one of the passage, in [0, 1].

    Args:
        question: unit rows, shape (word pieces, dimensions).
        passage: unit rows, shape (word pieces, dimensions).
    """
    if not len(question) or not len(passage):
        return 0.0
    cosines = question.astype(np.float32) @ passage.astype(np.float32).T
    return float(np.clip(cosines.max(axis=1).mean(), 0.0, 1.0))
