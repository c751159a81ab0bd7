"""The scriptable model server over plain HTTP, as used in a test."""

from __future__ import annotations

import base64
import json
import struct
import time
from collections.abc import Iterator

import httpx
import numpy as np
import pytest

from agentic_rag_testing.models.behaviour import active, parse_name, prompt_hash
from agentic_rag_testing.models.counts import text_hash
from agentic_rag_testing.models.server import ModelServer

QUESTION = {"role": "user", "content": 'x\n<passage id="2" title="T">\nSund is a town. It rains.\n</passage>'}


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture
def client(server: ModelServer) -> Iterator[httpx.Client]:
    server.reset()
    with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=10) as client:
        yield client


def chat(client: httpx.Client, model: str, **fields: object) -> httpx.Response:
    return client.post("/v1/chat/completions", json={"model": model, "messages": [QUESTION], **fields})


def text_of(response: httpx.Response) -> str:
    return str(response.json()["choices"][0]["message"]["content"])


def test_names_are_parsed() -> None:
    parts = parse_name("cite+latency-200ms+status-500x2+nonsense")
    assert [(part.kind, part.value, part.times) for part in parts] == [
        ("cite", 0.0, None),
        ("latency", 0.2, None),
        ("status", 500.0, 2),
    ]
    assert "status" in active(parts, 1)
    assert "status" not in active(parts, 2)
    assert parse_name("gpt-4o-mini") == ()
    assert active(parse_name("broken-jsonx1+cite"), 0).keys() == {"broken-json"}
    assert active(parse_name("broken-jsonx1+cite"), 1).keys() == {"cite"}


def test_content(client: httpx.Client) -> None:
    assert text_of(chat(client, "any-model")) == QUESTION["content"]
    assert text_of(chat(client, "cite")) == "Sund is a town. [2]"
    assert "[99]" in text_of(chat(client, "cite-wrong"))
    assert text_of(chat(client, "empty")) == ""
    assert "do not answer" in text_of(chat(client, "refuse"))


def test_streams_end_with_usage_and_done(client: httpx.Client) -> None:
    lines = chat(client, "cite", stream=True, stream_options={"include_usage": True}).text.split("\n\n")
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    assert "".join(event["choices"][0]["delta"].get("content", "") for event in events[:-1]) == "Sund is a town. [2]"
    assert events[-1]["usage"]["completion_tokens"] == 8
    assert lines[-2] == "data: [DONE]"


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


def test_recorded_replies(client: httpx.Client, server: ModelServer) -> None:
    missing = chat(client, "recorded")
    assert missing.status_code == 404
    assert prompt_hash([QUESTION]) in missing.text
    server.replies[prompt_hash([QUESTION])] = "by hash"
    server.matchers.append((lambda prompt: "other" in prompt, lambda prompt: prompt.upper()))
    try:
        assert text_of(chat(client, "recorded")) == "by hash"
        other = client.post(
            "/v1/chat/completions", json={"model": "recorded", "messages": [{"role": "user", "content": "other"}]}
        )
        assert text_of(other) == "OTHER"
        assert chat(client, "recorded+status-500").status_code == 500
    finally:
        server.replies.clear()
        server.matchers.clear()


def test_faults(client: httpx.Client) -> None:
    limited = chat(client, "rate-limited-7s")
    assert (limited.status_code, limited.headers["retry-after"]) == (429, "7")
    assert [chat(client, "status-503x2").status_code for _ in range(3)] == [503, 503, 200]
    with pytest.raises(httpx.RemoteProtocolError):
        chat(client, "drop")
    with pytest.raises(httpx.RemoteProtocolError):
        chat(client, "cut-stream", stream=True)


def test_one_poisoned_text_is_refused(client: httpx.Client, server: ModelServer) -> None:
    model = "poison-zebra+hashed"
    refused = client.post("/v1/embeddings", json={"model": model, "input": ["a horse", "a Zebra"]})
    assert (refused.status_code, server.stats().texts) == (400, {})
    assert client.post("/v1/embeddings", json={"model": model, "input": ["a horse"]}).status_code == 200
    assert chat(client, "poison-town").status_code == 400
    assert chat(client, "poison-city").status_code == 200
    assert server.stats().models[model].failures == {"400": 1}


def test_replies_of_a_length(client: httpx.Client) -> None:
    assert len(text_of(chat(client, "length-300")).split()) == 300
    assert text_of(chat(client, "length-2+cite")) == "Sund is"
    cut = chat(client, "cite", max_tokens=3).json()
    assert cut["choices"][0] == {"index": 0, "finish_reason": "length", "message": {"role": "assistant", "content": "Sund is a"}}
    assert cut["usage"]["completion_tokens"] == 3
    streamed = chat(client, "cite", stream=True, max_tokens=3).text
    assert '"finish_reason": "length"' in streamed
    assert text_of(chat(client, "cite", max_tokens=8)) == "Sund is a town. [2]"


def test_latency_holds_a_reply_back_and_notices_who_leaves(client: httpx.Client, server: ModelServer) -> None:
    with pytest.raises(httpx.ReadTimeout):
        client.post("/v1/embeddings", json={"model": "latency-60s", "input": ["text"]}, timeout=0.2)
    until = time.monotonic() + 10
    while not server.stats().cancelled and time.monotonic() < until:
        time.sleep(0.01)
    stats = server.stats()
    assert (stats.cancelled, stats.in_flight, stats.texts) == (1, 0, {})


def test_schemas_are_answered(client: httpx.Client) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}}
    asked = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    assert json.loads(text_of(chat(client, "cite", response_format=asked))) == {"a": [1]}
    assert chat(client, "json-object-only", response_format=asked).status_code == 400
    with pytest.raises(json.JSONDecodeError):
        json.loads(text_of(chat(client, "broken-json", response_format=asked)))


def embed(client: httpx.Client, model: str, *texts: str, **fields: object) -> list[list[float]]:
    reply = client.post("/v1/embeddings", json={"model": model, "input": list(texts), **fields})
    assert reply.status_code == 200, reply.text
    return [item["embedding"] for item in reply.json()["data"]]


def test_embeddings(client: httpx.Client) -> None:
    vectors = embed(client, "e", "red fish", "red fishes", "stone", dimensions=32)
    assert vectors[0] == vectors[1] != vectors[2]
    assert all(abs(sum(value * value for value in vector) - 1) < 1e-9 for vector in vectors)
    body = {"model": "e", "input": ["stone"], "dimensions": 32, "encoding_format": "base64"}
    packed = client.post("/v1/embeddings", json=body).json()["data"][0]["embedding"]
    assert struct.unpack("<32f", base64.b64decode(packed)) == pytest.approx(vectors[2], abs=1e-6)


@pytest.mark.parametrize("model", ["words", "hashed", "hashed+dimensions-24", "dimensions-24"])
def test_equal_texts_have_equal_vectors(client: httpx.Client, model: str) -> None:
    one, other, again = embed(client, model, "a red fish", "a red stone", "a red fish")
    assert one == again != other
    assert len(one) == (24 if "24" in model else 64)
    assert embed(client, model, "a red fish", dimensions=40)[0] == embed(client, model, "a red fish", dimensions=40)[0]
    assert len(embed(client, model, "a red fish", dimensions=40)[0]) == 40
    assert abs(sum(value * value for value in one) - 1) < 1e-9


def test_a_floor_raises_all_cosines(client: httpx.Client) -> None:
    plain, raised = (np.array(embed(client, model, "a red fish", "a red stone", "blue")) for model in ("words", "floor-70"))
    np.testing.assert_allclose(raised @ raised.T, 0.7 + 0.3 * plain @ plain.T, atol=0.05)


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


def test_embeddings_that_break(client: httpx.Client, server: ModelServer) -> None:
    body = {"model": "wrong-schema", "input": ["one", "two"]}
    assert len(client.post("/v1/embeddings", json=body).json()["data"]) == 1
    assert client.post("/v1/embeddings", json={**body, "model": "empty"}).json()["data"] == []
    with pytest.raises(json.JSONDecodeError):
        client.post("/v1/embeddings", json={**body, "model": "broken-json"}).json()
    with pytest.raises(httpx.RemoteProtocolError):
        client.post("/v1/embeddings", json={**body, "model": "drop"})
    assert server.stats().texts == {text_hash("one"): 1}


@pytest.mark.parametrize("fields", [{"input": [""]}, {"input": [3]}, {"input": ["x"], "dimensions": -1}])
def test_bad_embedding_requests(client: httpx.Client, fields: dict[str, object]) -> None:
    assert client.post("/v1/embeddings", json={"model": "words", **fields}).status_code == 400


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"messages": []}'])
def test_bad_requests(client: httpx.Client, body: bytes) -> None:
    assert client.post("/v1/chat/completions", content=body).status_code == 400
    assert client.get("/v1/nothing").status_code == 404


def test_it_listens_on_loopback_only_and_stops() -> None:
    with ModelServer() as server:
        url = server.base_url
        assert url.startswith("http://127.0.0.1:")
        assert httpx.get(f"{url}/models").json()["data"]
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/models")


def test_a_window_cuts_the_beginning_of_prompts_silently(client: httpx.Client) -> None:
    messages = [{"role": "system", "content": "one two three"}, {"role": "user", "content": "four five six"}]
    reply = client.post("/v1/chat/completions", json={"model": "window-2", "messages": messages}).json()
    assert (reply["choices"][0]["message"]["content"], reply["usage"]["prompt_tokens"]) == ("five six", 2)


def test_a_server_may_ignore_the_request_to_stream(client: httpx.Client) -> None:
    assert text_of(chat(client, "no-stream", stream=True)) == QUESTION["content"]
