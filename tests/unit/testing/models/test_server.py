"""The scriptable model server over plain HTTP, as used in a test."""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx
import pytest

from agentic_rag_testing.models.behaviour import prompt_hash
from agentic_rag_testing.models.counts import text_hash
from agentic_rag_testing.models.server import ModelServer

QUESTION = {"role": "user", "content": 'x\n<passage id="2" title="T">\nSund is a town. It rains.\n</passage>'}


@pytest.fixture
def client(server: ModelServer) -> Iterator[httpx.Client]:
    server.reset()
    with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=10) as client:
        yield client


def chat(client: httpx.Client, model: str, **fields: object) -> httpx.Response:
    return client.post("/v1/chat/completions", json={"model": model, "messages": [QUESTION], **fields})


def text_of(response: httpx.Response) -> str:
    return str(response.json()["choices"][0]["message"]["content"])


def test_counts_per_model_and_prompt(client: httpx.Client, server: ModelServer) -> None:
    for model in ("cite", "cite", "status-500"):
        chat(client, model)
    stats = client.get("/_stats").json()
    assert stats["models"]["cite"]["calls"] == 2
    assert stats["models"]["status-500"]["failures"] == {"500": 1}
    assert stats["prompts"] == {prompt_hash([QUESTION]): {"calls": 2, "prompt_tokens": 52, "completion_tokens": 16}}
    assert stats["passages"] == {text_hash("Sund is a town. It rains."): 2}, "a prompt that met a fault is not paid for"
    assert server.stats().paid_again() == {text_hash("Sund is a town. It rains."): 2}
    assert stats["total"]["calls"] == 3
    assert stats["total"]["prompt_tokens"] == server.stats().total.prompt_tokens > 0
    client.post("/_reset")
    assert server.stats().total.calls == 0


def test_faults(client: httpx.Client) -> None:
    limited = chat(client, "rate-limited-7s")
    assert (limited.status_code, limited.headers["retry-after"]) == (429, "7")
    assert [chat(client, "status-503x2").status_code for _ in range(3)] == [503, 503, 200]
    with pytest.raises(httpx.RemoteProtocolError):
        chat(client, "drop")
    with pytest.raises(httpx.RemoteProtocolError):
        chat(client, "cut-stream", stream=True)


def test_latency_holds_a_reply_back_and_notices_who_leaves(client: httpx.Client, server: ModelServer) -> None:
    with pytest.raises(httpx.ReadTimeout):
        client.post("/v1/embeddings", json={"model": "latency-60s", "input": ["text"]}, timeout=0.2)
    until = time.monotonic() + 10
    while not server.stats().cancelled and time.monotonic() < until:
        time.sleep(0.01)
    stats = server.stats()
    assert (stats.cancelled, stats.in_flight, stats.texts) == (1, 0, {})


def embed(client: httpx.Client, model: str, *texts: str, **fields: object) -> list[list[float]]:
    reply = client.post("/v1/embeddings", json={"model": model, "input": list(texts), **fields})
    assert reply.status_code == 200, reply.text
    return [item["embedding"] for item in reply.json()["data"]]


def test_each_embedded_text_is_counted(client: httpx.Client, server: ModelServer) -> None:
    embed(client, "words", "one", "two")
    embed(client, "hashed", "two ", "three")
    stats = server.stats()
    assert stats.texts == {text_hash("one"): 1, text_hash("two"): 2, text_hash("three"): 1}
    assert stats.paid_again() == {text_hash("two"): 2}
    assert stats.embedded_texts == 4


@pytest.mark.parametrize(
    ("model", "answered"),
    [
        ("rate-limited-3sx2+hashed", [429, 429, 200]),
        ("status-500x1", [500, 200]),
        ("status-400", [400, 400]),
        ("latency-1ms+status-503x1", [503, 200]),
    ],
)
def test_embeddings_meet_faults(client: httpx.Client, server: ModelServer, model: str, answered: list[int]) -> None:
    body = {"model": model, "input": ["text"]}
    replies = [client.post("/v1/embeddings", json=body) for _ in answered]
    assert [reply.status_code for reply in replies] == answered
    assert server.stats().texts.get(text_hash("text"), 0) == answered.count(200), "what failed was not paid"
    if 429 in answered:
        assert replies[0].headers["retry-after"] == "3"


def test_it_listens_on_loopback_only_and_stops() -> None:
    with ModelServer() as server:
        url = server.base_url
        assert url.startswith("http://127.0.0.1:")
        assert httpx.get(f"{url}/models").json()["data"]
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/models")
