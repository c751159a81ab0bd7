"""Reranking over HTTP with models: a language model, a rerank endpoint and a cross-encoder, and their failures."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.e2e.api.conftest import Client, Template, model_at
from tests.e2e.api.test_reranking import QUESTION, ids, search

from agentic_rag_backend.retrieval.rerank.registry import RERANKERS
from agentic_rag_testing.models.cross_encoder import write_cross_encoder
from agentic_rag_testing.models.rerank_server import Fault, RerankServer
from agentic_rag_testing.models.server import ModelServer

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[RerankServer]:
    with RerankServer() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(
    template: Template,
    folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
    open_world: Any,
    server: ModelServer,
    endpoint: RerankServer,
) -> AsyncIterator[Client]:
    """A tenant's client at a deployment with a model for every reranker."""
    scorer: Path = write_cross_encoder(tmp_path_factory.mktemp("model"), {"eels": 3.0, "counted": 1.0})
    remote = {"rerank_url": endpoint.url, "rerank_api": "jina", "rerank_api_key": "secret-of-the-endpoint"}
    settings = model_at(server.base_url, **remote, cross_encoder_model_path=scorer)
    async with open_world(folder, **settings) as (_, http):
        yield template.client(http)


def prefers(text: str) -> Any:
    """Return a model that puts the passages with ``text`` first."""

    def reply(prompt: str) -> str:
        passages = prompt.split("<passage id=")[1:]
        order = sorted(range(len(passages)), key=lambda number: text not in passages[number])
        rows = [{"passage": number + 1, "relevance": 9 if text in passages[number] else 2} for number in order]
        return json.dumps({"ranking": rows})

    return reply


async def test_a_language_model_orders_the_passages(client: Client, server: ModelServer) -> None:
    server.reset()
    server.matchers = [(lambda prompt: "You order the passages" in prompt, prefers("Fish Market of Port Sarn"))]
    found, meta = await search(client, "llm")
    assert found["results"][0]["title"] == "Fish market"
    assert (found["results"][0]["score"], meta["fallback_used"]) == (0.9, False)
    assert server.stats().models["cite"].calls == 1
    answer = await client.data(
        "POST", "/answers", json={"query": QUESTION, "strategy": "hybrid", "rerank": "llm", "cache": False}
    )
    assert answer["usage"]["calls"] >= 2, "the call of the reranker is counted with the call of the answer"
    server.matchers = []


@pytest.mark.parametrize("name", ["http", "cross_encoder"])
async def test_a_scoring_model_orders_the_passages(client: Client, endpoint: RerankServer, name: str) -> None:
    endpoint.received.clear()
    found, meta = await search(client, name)
    assert (meta["methods_used"][-1], meta["fallback_used"]) == (name, False)
    if name == "http":
        (asked,) = endpoint.received
        assert (asked.body["query"], asked.authorization) == (QUESTION, "Bearer secret-of-the-endpoint")
        assert len(asked.body["documents"]) == len(found["results"])
    else:
        assert "eels" in found["results"][0]["content"]
    assert {row["name"] for row in await client.data("GET", "/rerankers") if row["available"]} == set(RERANKERS)


async def test_a_failing_endpoint_leaves_the_order_of_the_strategy(client: Client, endpoint: RerankServer) -> None:
    plain, _ = await search(client, False)
    for fault, reason in (
        (Fault(status=401), "model_refused: the reranker 'rerank-v3.5' failed at attempt 1: HTTP 401 (the key was refused)"),
        (Fault(body=b"{}"), "model_reply_invalid: the reranker scored 0 of"),
    ):
        endpoint.faults.append(fault)
        found, meta = await search(client, {"name": "http", "min_score": 0.9})
        assert [(each["id"], each["score"]) for each in found["results"]] == [
            (each["id"], each["score"]) for each in plain["results"]
        ]
        assert meta["fallback_used"] is True
        assert meta["fallback_reason"].startswith(f"reranking by http failed: {reason}")
        assert "secret-of-the-endpoint" not in json.dumps(meta)
    endpoint.faults.append(Fault(delay_s=0.6))
    found, meta = await search(client, {"name": "http", "timeout_ms": 50})
    assert ids(found) == ids(plain)
    assert "took more than 0.05 s" in meta["fallback_reason"]
