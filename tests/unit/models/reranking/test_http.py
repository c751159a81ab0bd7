"""The rerank endpoint over HTTP, against a real server: forms, retries, time limit and bad replies."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from agentic_rag_backend.domain.usage import UsageAccount
from agentic_rag_backend.errors import ModelRefused, ModelReplyInvalid, ModelUnavailable
from agentic_rag_backend.models.model_health import OK
from agentic_rag_backend.models.reranking.http import EndpointAddress, HttpScorer, scores_in
from agentic_rag_testing.models.rerank_server import Fault, RerankServer

QUESTION = "who built the array"
PASSAGES = ["nobody knows", "the array", "they built the array", "the array"]


@pytest.fixture(scope="module")
def running() -> Iterator[RerankServer]:
    with RerankServer() as server:
        yield server


@pytest.fixture
def server(running: RerankServer) -> RerankServer:
    running.received.clear()
    running.faults.clear()
    return running


@pytest.fixture
async def scorer(server: RerankServer) -> AsyncIterator[HttpScorer]:
    made = HttpScorer(EndpointAddress(url=server.url, api="cohere", model="rerank-any", api_key="secret", timeout_s=20))
    yield made
    await made.close()


@pytest.mark.parametrize(("api", "extra"), [("cohere", {}), ("jina", {"return_documents": False})])
async def test_both_forms(server: RerankServer, api: Any, extra: dict[str, Any]) -> None:
    scorer = HttpScorer(EndpointAddress(url=server.url, api=api, model="rerank-any", api_key="secret"))
    account = UsageAccount()
    assert await scorer.score(QUESTION, PASSAGES, account) == [0.0, 0.5, 0.75, 0.5]
    (asked,) = server.received
    assert asked.body == {"model": "rerank-any", "query": QUESTION, "documents": PASSAGES, "top_n": 4, **extra}
    assert asked.authorization == "Bearer secret"
    assert (account.usage.calls, account.usage.prompt_tokens, account.usage.failed_calls) == (1, 10, 0)
    assert await scorer.health.read_state() == OK
    await scorer.close()


async def test_transient_failures_are_retried_and_counted(server: RerankServer, scorer: HttpScorer) -> None:
    server.faults += [Fault(503), Fault(429, headers={"retry-after": "0"})]
    account = UsageAccount()
    assert len(await scorer.score(QUESTION, PASSAGES, account)) == 4
    assert (account.usage.calls, account.usage.failed_calls) == (3, 2)


async def test_a_refusal_is_not_retried(server: RerankServer, scorer: HttpScorer) -> None:
    server.faults.append(Fault(401))
    with pytest.raises(ModelRefused, match="the key was refused"):
        await scorer.score(QUESTION, PASSAGES, UsageAccount())
    assert len(server.received) == 1
    scorer.check()


async def test_a_slow_server_is_left_within_the_time_limit(server: RerankServer) -> None:
    scorer = HttpScorer(EndpointAddress(url=server.url, api="cohere", model="slow", timeout_s=0.2))
    server.faults.append(Fault(delay_s=1.0))
    account = UsageAccount()
    with pytest.raises(ModelUnavailable, match=r"'slow' did not answer within 0\.2 s"):
        await scorer.score(QUESTION, PASSAGES, account)
    assert account.usage.calls == 1
    await scorer.close()


async def test_an_unreachable_server_is_not_asked_again_at_once() -> None:
    with RerankServer() as gone:
        url = gone.url
    scorer = HttpScorer(EndpointAddress(url=url, api="cohere", model="gone", timeout_s=1.0))
    with pytest.raises(ModelUnavailable, match="the connection failed"):
        await scorer.score(QUESTION, PASSAGES, UsageAccount())
    account = UsageAccount()
    with pytest.raises(ModelUnavailable, match="tried again soon"):
        await scorer.score(QUESTION, PASSAGES, account)
    assert account.usage.calls == 0
    with pytest.raises(ModelUnavailable):
        scorer.check()
    assert await scorer.health.read_state() == "model_unavailable"
    await scorer.close()


@pytest.mark.parametrize(
    "reply",
    [
        b"not JSON",
        b"[]",
        b"{}",
        json.dumps({"results": [{"index": 0, "relevance_score": 0.5}]}).encode(),
        json.dumps({"results": [{"index": number, "relevance_score": "high"} for number in range(4)]}).encode(),
        json.dumps({"results": [{"index": number + 1, "relevance_score": 0.5} for number in range(4)]}).encode(),
    ],
)
async def test_an_incomplete_reply_is_refused(server: RerankServer, scorer: HttpScorer, reply: bytes) -> None:
    server.faults.append(Fault(body=reply))
    account = UsageAccount()
    with pytest.raises(ModelReplyInvalid):
        await scorer.score(QUESTION, PASSAGES, account)
    assert (account.usage.calls, account.usage.failed_calls) == (1, 1)


def test_logits_become_probabilities() -> None:
    reply = {"results": [{"index": 1, "relevance_score": -2.0}, {"index": 0, "relevance_score": 900}]}
    assert scores_in(reply, 2) == pytest.approx([1.0, 1 / (1 + math.exp(2))])
