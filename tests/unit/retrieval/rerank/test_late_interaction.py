"""Late interaction: MaxSim, and the cache of word piece vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from agentic_rag_backend.domain.query import Hit, Query
from agentic_rag_backend.domain.usage import UsageAccount
from agentic_rag_backend.models.embedding.base import Vectors
from agentic_rag_backend.retrieval.rerank.scored import LateInteraction, TokenVectorCache, max_sim

WORDS = ["who", "built", "the", "array", "text", "of", "a", "b", "title"]


class Words:
    """Encodes each word as its own axis. It records the texts."""

    def __init__(self) -> None:
        self.read: list[str] = []

    async def encode_tokens(self, texts: Sequence[str]) -> list[Vectors]:
        self.read += texts
        axes = np.eye(len(WORDS), dtype=np.float32)
        return [axes[[WORDS.index(word) for word in text.lower().split() if word in WORDS]] for text in texts]


def test_max_sim_is_the_mean_of_the_best_matches() -> None:
    axes = np.eye(3, dtype=np.float32)
    half = np.array([[0.6, 0.8, 0.0]], dtype=np.float16)
    assert max_sim(axes[:2], axes[:2].astype(np.float16)) == pytest.approx(1.0)
    assert max_sim(axes[:1], half) == pytest.approx(0.6, abs=1e-3)
    assert max_sim(axes[:2], half) == pytest.approx(0.7, abs=1e-3)
    assert max_sim(axes[:1], -axes[:1].astype(np.float16)) == 0.0
    assert max_sim(axes[:0], half) == max_sim(axes, half[:0]) == 0.0


async def test_passages_are_encoded_once(query: Callable[..., Query], hit: Callable[..., Hit]) -> None:
    encoder = Words()
    reranker = LateInteraction(encoder, TokenVectorCache(1024 * 1024))
    hits = [hit("a", 0.9), hit("b", 0.9)]
    first = await reranker.rerank(query("who built a"), hits, UsageAccount())
    assert len(encoder.read) == 3
    assert first.scores["a"] > first.scores["b"], "a has a word of the question"
    again = await reranker.rerank(query("who built a"), hits, UsageAccount())
    assert (again.scores, len(encoder.read)) == (first.scores, 4)
    assert (first.details, again.details) == ({"encoded": 2}, {"encoded": 0})


def test_the_cache_is_bounded_and_drops_what_was_not_used() -> None:
    cache = TokenVectorCache(2500)
    rows = np.zeros((5, 100), dtype=np.float16)
    cache.put(("a", "text"), rows)
    cache.put(("b", "text"), rows)
    assert cache.get(("a", "text")) is not None
    cache.put(("c", "text"), rows)
    assert cache.get(("b", "text")) is None
    assert cache.get(("a", "text")) is not None
    assert cache.get(("a", "other title")) is None
    assert cache.size_bytes == 2 * rows.nbytes <= 2500
    cache.put(("d", "text"), np.zeros((50, 100), dtype=np.float16))
    assert cache.get(("d", "text")) is None
    assert (cache.hits, cache.misses) == (2, 3)
