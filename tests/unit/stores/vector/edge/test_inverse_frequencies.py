"""Kept frequencies give the scores that the engine computes from all points, whatever is written and deleted in between."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from qdrant_edge import EdgeShard, QueryRequest, ScoredPoint
from qdrant_edge import Filter as EngineFilter

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, ScoredId, TermWeights, VectorPoint, VectorSearch
from agentic_rag_backend.stores.vector.edge import edge_ranking
from agentic_rag_backend.stores.vector.edge.store import EdgeVectorStore

A, B = TenantId("t_" + "a" * 32), TenantId("t_" + "b" * 32)
WORDS = [f"harbour{letter}" for letter in "bcdfghjklm"]
NEVER = 10**9


@pytest.fixture
async def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EdgeVectorStore]:
    monkeypatch.setattr(edge_ranking, "COUNTED", 3)
    opened = await EdgeVectorStore.open(tmp_path, dimensions=4, embedder_fingerprint="test")
    yield opened
    await opened.close()


def fact(number: int, text: str) -> VectorPoint:
    return VectorPoint(id=f"fact-{number}", kind=NodeKind.FACT, text=text)


async def found(store: EdgeVectorStore, tenant: TenantId, text: str, *, large: int, limit: int = 100) -> tuple[ScoredId, ...]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edge_ranking, "LARGE", large)
        (legs,) = await store.search(tenant, Collection.NODES, [VectorSearch(kind=NodeKind.FACT, text=text, limit=limit)])
        return legs.sparse


async def test_scores_are_those_of_the_engine_after_any_change(store: EdgeVectorStore) -> None:
    choose = random.Random(5)

    def text() -> str:
        return " ".join(choose.choices(WORDS, weights=range(1, len(WORDS) + 1), k=choose.randint(1, 8)))

    compared = 0
    for _ in range(60):
        tenant = choose.choice((A, A, B))
        change = choose.random()
        numbers = choose.sample(range(30), k=choose.randint(1, 12))
        if change < 0.6:
            await store.upsert(tenant, Collection.NODES, [fact(number, text()) for number in numbers])
        elif change < 0.95:
            await store.delete(tenant, Collection.NODES, [f"fact-{number}" for number in numbers])
        else:
            await store.delete_tenant(tenant)
        for asked in (text(), text(), "harbourz nowhere"):
            expected = await found(store, A, asked, large=NEVER)
            kept = await found(store, A, asked, large=0)
            assert {hit.id: hit.score for hit in kept} == pytest.approx({hit.id: hit.score for hit in expected}, rel=2 / 4096)
            compared += len(kept)
    assert compared > 500


async def test_a_search_with_known_terms_asks_the_engine_once(store: EdgeVectorStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_ranking, "LARGE", 0)
    asked: list[int] = []
    answers = edge_ranking._answers

    def counted(engine: EdgeShard, requests: list[QueryRequest]) -> Sequence[Sequence[ScoredPoint]]:
        asked.append(len(requests))
        return answers(engine, requests)

    monkeypatch.setattr(edge_ranking, "_answers", counted)
    await store.upsert(A, Collection.NODES, [fact(number, f"common{WORDS[number % 3]} common common") for number in range(12)])
    text = f"common rare {WORDS[0]}"
    first = await found(store, A, text, large=0)
    assert sum(asked) > 0
    asked.clear()
    assert await found(store, A, text, large=0) == first
    assert sum(asked) == 0
    await store.upsert(B, Collection.NODES, [fact(1, "common rare")])
    assert await found(store, A, text, large=0) == first
    assert sum(asked) == 0  # another tenant's writes change nothing
    await store.upsert(A, Collection.NODES, [fact(1, "rare")])
    assert await found(store, A, text, large=0) != first
    assert sum(asked) > 0


async def test_small_scopes_and_very_long_queries_are_left_to_the_engine(store: EdgeVectorStore) -> None:
    frequencies = edge_ranking.InverseFrequencies()
    engine, everything = store._shard(Collection.NODES).engine, EngineFilter()
    await store.upsert(A, Collection.NODES, [fact(1, "harbour")])
    assert frequencies.weigh(engine, A, "scope", everything, TermWeights([1], [1.0])) is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edge_ranking, "LARGE", 0)
        many = list(range(edge_ranking.MAX_UNKNOWN + 1))
        assert frequencies.weigh(engine, A, "scope", everything, TermWeights(many, [1.0] * len(many))) is None
        assert frequencies.weigh(engine, A, "scope", everything, TermWeights([1], [1.0])) is not None
