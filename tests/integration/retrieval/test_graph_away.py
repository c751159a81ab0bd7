"""Without its graph store, an answer loses the graph and keeps the passages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.integration.retrieval.conftest import Corpus

from agentic_rag_backend.errors import StoreUnavailable

pytestmark = pytest.mark.asyncio(loop_scope="module")

STRATEGIES = ("dense", "sparse", "hybrid", "graph", "dual_level")


async def test_passages_are_found_without_a_graph(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    tenant = await corpus.tenant("cold", communities=False)

    async def away(*_: Any, **__: Any) -> AsyncIterator[Any]:
        raise StoreUnavailable("the graph store is away")
        yield

    with monkeypatch.context() as patch:
        patch.setattr(type(corpus.container.graph), "stream_knowledge", away)
        for strategy in STRATEGIES:
            found = await corpus.ask(tenant, "Who engraved the Glass Atlas?", strategy, limit=3)
            assert found.hits[0].visible.document_key == "atlas", strategy
            assert all(hit.entities == () for hit in found.hits), strategy
            assert found.trace.fallback_used, strategy
            assert "the graph is left out: store_unavailable" in str(found.trace.fallback_reason), strategy
        theme = await corpus.ask(tenant, "What role does the Glass Atlas play?", "dual_level", limit=3)
        assert theme.trace.details["low_level"]["strategy"] == "hybrid"
        assert theme.hits
        assert theme.facts == ()
        assert str(theme.trace.fallback_reason).count("the graph is left out: store_unavailable") == 1
    for strategy in STRATEGIES:
        found = await corpus.ask(tenant, "Who engraved the Glass Atlas?", strategy, limit=3)
        assert found.hits[0].entities, strategy
        assert "left out" not in str(found.trace.fallback_reason), strategy
