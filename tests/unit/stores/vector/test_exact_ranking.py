"""Scores are equal to the last bit, for any order of the engine's additions."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from qdrant_edge import EdgeShard, QueryBatchRequest
from turns import turns_of_others

from agentic_rag_backend.stores.vector import points
from agentic_rag_backend.stores.vector.base import Collection, Legs, NodeKind, VectorSearch
from agentic_rag_backend.stores.vector.bm25 import Bm25Encoder, Bm25Parameters
from agentic_rag_backend.stores.vector.edge.edge_ranking import run_legs
from agentic_rag_backend.stores.vector.edge.store import EdgeVectorStore
from agentic_rag_backend.stores.vector.points import unit_length
from agentic_rag_testing.stores.vector_samples import DIMENSIONS, A, chunk, point_id

CHUNKS = Collection.CHUNKS
WORDS = [f"word{number}q" for number in range(60)]


@dataclass
class Hit:
    id: Any
    score: float
    payload: Any


class NoisyShard:
    """A shard whose sums of several terms are off by up to ``error``, as with another order of addition.

    Scores of single terms, which have no order, are requested without payload and are exact.
    """

    def __init__(self, shard: EdgeShard, seed: int, error: float) -> None:
        self.shard = shard
        self.noise = random.Random(seed)
        self.error = error
        self.limits: list[int] = []
        self.batches: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.shard, name)

    def query_batch(self, batch: QueryBatchRequest) -> list[list[Hit]]:
        answers = []
        self.batches.append(len(batch.queries))
        for request, hits in zip(batch.queries, self.shard.query_batch(batch), strict=True):
            self.limits.append(request.limit)
            error = self.error if request.with_payload else 0.0
            off = [hit.score * (1 + self.noise.uniform(-error, error)) for hit in hits]
            noisy = [Hit(hit.id, score, hit.payload) for hit, score in zip(hits, off, strict=True)]
            answers.append(sorted(noisy, key=lambda hit: -hit.score))
        return answers


async def filled(folder: Path, texts: list[str]) -> EdgeVectorStore:
    store = await EdgeVectorStore.open(folder, dimensions=DIMENSIONS, embedder_fingerprint="test")
    await store.upsert(A, CHUNKS, [chunk(number, text) for number, text in enumerate(texts)])
    return store


def samples(seed: int, count: int, length: int) -> list[str]:
    choose = random.Random(seed)
    return [" ".join(choose.choices(WORDS, k=choose.randint(length // 4, length))) for _ in range(count)]


async def test_scores_do_not_depend_on_the_last_bits_of_the_engines_sums(tmp_path: Path) -> None:
    store = await filled(tmp_path, samples(1, 150, 40))
    searches = [VectorSearch(kind=NodeKind.CHUNK, text=text, limit=20) for text in samples(2, 40, 48)]
    expected = await store.search(A, CHUNKS, searches)
    shard = store._shards[CHUNKS]
    engine = shard.engine
    resolved = 0
    for seed in range(3):
        noisy = NoisyShard(engine, seed, 2**-22)
        shard.engine = noisy  # type: ignore[assignment]
        assert await store.search(A, CHUNKS, searches) == expected
        resolved += len(noisy.limits) - len(searches)
    assert resolved > 0, "no score was near a rounding boundary, so the test shows nothing"
    shard.engine = engine
    await store.close()


async def test_a_question_of_many_words_leaves_turns_of_the_loop_to_others(tmp_path: Path) -> None:
    store = await filled(tmp_path, samples(1, 150, 40))
    shard = store._shards[CHUNKS]
    noisy = NoisyShard(shard.engine, 0, 0.0)
    shard.engine = noisy  # type: ignore[assignment]
    question = " ".join([*WORDS, *(f"absent{number}q" for number in range(400))])
    async with turns_of_others() as turns:
        (legs,) = await store.search(A, CHUNKS, [VectorSearch(kind=NodeKind.CHUNK, text=question, limit=20)])
    assert len(legs.sparse) == 20
    assert sum(noisy.batches) > 400, "no score was near a rounding boundary, so the test shows nothing"
    assert max(noisy.batches) <= 64
    assert turns.count >= len(noisy.batches) - 2
    shard.engine = noisy.shard
    await store.close()


async def test_sparse_scores_are_bm25_of_the_tenant(tmp_path: Path) -> None:
    """Compared with Robertson's formula, with df and n counted here. Rounding to 12 binary digits is at most 1/4096."""
    texts = samples(3, 50, 30)
    store = await filled(tmp_path, texts)
    encoder = Bm25Encoder(Bm25Parameters())
    documents = [dict(zip(v.indices, v.values, strict=True)) for v in map(encoder.document, texts) if v is not None]
    question = "word3q word7q word9q word11q"
    (legs,) = await store.search(A, CHUNKS, [VectorSearch(kind=NodeKind.CHUNK, text=question, limit=100)])
    asked = encoder.query(question)
    assert asked is not None
    weights = dict(zip(asked.indices, asked.values, strict=True))
    expected = {}
    for number, document in enumerate(documents):
        score = 0.0
        for term in weights.keys() & set(document):
            frequency = sum(term in other for other in documents)
            score += weights[term] * document[term] * math.log(1 + (len(documents) - frequency + 0.5) / (frequency + 0.5))
        if score:
            expected[point_id(number)] = score
    assert {hit.id: hit.score for hit in legs.sparse} == pytest.approx(expected, rel=1 / 4096)
    await store.close()


async def test_ties_beyond_what_was_fetched_are_fetched(tmp_path: Path) -> None:
    store = await filled(tmp_path, ["harbour"] * 200)
    shard = store._shards[CHUNKS]
    noisy = NoisyShard(shard.engine, 0, 0.0)
    shard.engine = noisy  # type: ignore[assignment]
    (legs,) = await store.search(A, CHUNKS, [VectorSearch(kind=NodeKind.CHUNK, text="harbour", limit=5)])
    assert [hit.id for hit in legs.sparse] == sorted(point_id(number) for number in range(200))[:5]
    assert noisy.limits == [21, 84, 336]
    await store.close()


async def test_nothing_asked_is_answered_without_the_engine(tmp_path: Path) -> None:
    store = await filled(tmp_path, [])
    assert await store.search(A, CHUNKS, [VectorSearch(kind=NodeKind.CHUNK, text="of the")]) == [Legs()]
    assert await run_legs(lambda: store._shards[CHUNKS].engine, []) == []
    await store.close()


def test_unit_length_is_1_at_any_scale_and_zeros_stay() -> None:
    rows = np.stack([np.full(4, scale, np.float32) for scale in (1e-30, 1.0, 3e38, 0.0)])
    assert np.linalg.norm(unit_length(rows), axis=1) == pytest.approx([1, 1, 1, 0])


async def test_points_with_equal_scores_do_not_decide_what_a_search_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(points, "MAX_TIED", 100)
    store = await filled(tmp_path, ["harbour storm"] * 300)
    quiet = NoisyShard(store._shards[CHUNKS].engine, 0, 0.0)
    store._shards[CHUNKS].engine = quiet  # type: ignore[assignment]
    search = VectorSearch(kind=NodeKind.CHUNK, text="storm", limit=10)
    (legs,) = await store.search(A, CHUNKS, [search])
    assert len(legs.sparse) == 10
    assert [hit.id for hit in legs.sparse] == sorted(hit.id for hit in legs.sparse)
    assert max(quiet.limits) == 100
    await store.close()
