from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from agentic_rag_backend.domain.query import Hit, Query
from agentic_rag_backend.domain.tenant import Tenant, TenantId, TenantState
from agentic_rag_backend.domain.usage import UsageAccount
from agentic_rag_backend.errors import InvalidRequest, ModelTimeout, ModelUnavailable
from agentic_rag_backend.retrieval.rerank.base import Reranking
from agentic_rag_backend.retrieval.rerank.registry import RerankerRegistry
from agentic_rag_backend.retrieval.rerank.text_reranking import TextReranking

A, B = (
    Tenant(
        id=TenantId("t_" + letter * 32),
        name=letter,
        state=TenantState.ACTIVE,
        state_version=1,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    for letter in "ab"
)


@dataclass
class ByLength:
    """Scores the first two texts by their length."""

    pause_s: float = 0
    failure: Exception | None = None
    ids: list[str] = field(default_factory=list)
    options: Any = None

    def check(self) -> None:
        if self.failure is not None:
            raise self.failure

    async def rerank(self, query: Query, candidates: Sequence[Hit], account: UsageAccount) -> Reranking:
        await asyncio.sleep(self.pause_s)
        assert query.rerank is not None
        self.options = query.rerank.options
        self.ids += [hit.id for hit in candidates]
        return Reranking(scores={hit.id: len(hit.visible.chunk.text) / 100 for hit in candidates[:2]})


@dataclass
class Registry:
    """Rerankers of which some are available."""

    reranker: ByLength
    available: tuple[str, ...]

    def get(self, name: str) -> ByLength:
        return self.reranker

    def why_not(self, name: str) -> str | None:
        return None if name in self.available else "missing"


def reranking(reranker: ByLength, *available: str, default: str = "graph") -> TextReranking:
    return TextReranking(cast(RerankerRegistry, Registry(reranker, available)), default, timeout_s=0.05)


@pytest.mark.parametrize(
    ("default", "available", "expected"),
    [
        ("graph", ("late_interaction", "graph"), "late_interaction"),
        ("graph", ("late_interaction", "cross_encoder", "llm"), "cross_encoder"),
        ("graph", ("late_interaction", "cross_encoder", "http"), "http"),
        ("llm", ("late_interaction", "http", "llm"), "llm"),
        ("llm", ("late_interaction",), "late_interaction"),
        ("late_interaction", ("late_interaction", "http"), "late_interaction"),
    ],
)
def test_auto_is_the_default_or_the_best_that_reads_texts(default: str, available: tuple[str, ...], expected: str) -> None:
    assert reranking(ByLength(), *available, default=default).choose_reranker("auto") == expected


async def test_texts_keep_their_order_and_those_without_a_score_have_none() -> None:
    reranker = ByLength()
    ranked = await reranking(reranker).rank_texts(A, "?", ["four", "fivefive", "x"], "llm")
    assert (ranked.reranker, list(ranked.scores)) == ("llm", [0.04, 0.08, 0.0])
    assert reranker.options == {"max_calls": 10}


async def test_tenants_share_no_id() -> None:
    reranker = ByLength()
    for tenant in (A, A, B):
        await reranking(reranker).rank_texts(tenant, "?", ["same"], "http")
    assert reranker.ids[0] == reranker.ids[1] != reranker.ids[2]


async def test_failures_are_errors() -> None:
    with pytest.raises(ModelTimeout, match=r"more than 0\.05 s"):
        await reranking(ByLength(pause_s=5)).rank_texts(A, "?", ["x"], "http")
    with pytest.raises(ModelUnavailable, match="down"):
        await reranking(ByLength(failure=ModelUnavailable("down"))).rank_texts(A, "?", ["x"], "http")
    with pytest.raises(InvalidRequest, match="'graph'"):
        await reranking(ByLength()).rank_texts(A, "?", ["x"], "graph")
