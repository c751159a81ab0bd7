"""Every request to a model is counted once, whatever its outcome. Only a few callers wait for a model that is down."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from contextlib import aclosing

import pytest
from services import free_port

from agentic_rag_backend.breaker import PAUSE_S
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.errors import ModelRateLimited, ModelRefused, ModelReplyInvalid, ModelUnavailable
from agentic_rag_backend.models import endpoint, model_health
from agentic_rag_backend.models.embedding.openai_embedder import OpenAIEmbedder
from agentic_rag_backend.models.endpoint import OUTAGES
from agentic_rag_backend.models.llm.base import Message, ModelRequest
from agentic_rag_backend.models.llm.openai import OpenAIModel
from agentic_rag_backend.models.model_health import Health
from agentic_rag_backend.telemetry import metrics
from agentic_rag_backend.telemetry.metrics import REGISTRY, Outcome
from agentic_rag_testing.models.server import ModelServer

SCHEMA = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"], "additionalProperties": False}
Make = Callable[..., OpenAIModel]


def ask(text: str = "Hello there", **fields: object) -> ModelRequest:
    return ModelRequest(prompt="accounts@1", messages=(Message("user", text),), **fields)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def no_names_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Admit this test's names: the counters belong to the process, and other tests have already added models."""
    monkeypatch.setattr(metrics, "_models", metrics._Names())
    monkeypatch.setattr(metrics, "_purposes", metrics._Names())


def metric(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"agentic_rag_model_{name}_total", labels) or 0.0


# --- accounts


@pytest.mark.parametrize("fault", ["broken-json", "wrong-schema", "empty"])
async def test_replies_that_hold_to_no_schema_are_counted_with_their_tokens(make: Make, server: ModelServer, fault: str) -> None:
    request = ask("The title.", schema=SCHEMA)
    with pytest.raises(ModelReplyInvalid):
        await make(fault).complete(request)

    total = server.stats().total
    counted = Usage(total.prompt_tokens, total.completion_tokens, total.calls, total.calls)
    assert request.account.usage == counted
    assert total.calls == 2
    assert metric("calls", model=fault, purpose="accounts", outcome="invalid") == 2
    assert metric("tokens", model=fault, purpose="accounts", direction="input") == total.prompt_tokens


async def test_repeated_attempts_are_counted(make: Make, server: ModelServer) -> None:
    request = ask()
    reply = await make("status-500x2+echo").complete(request)

    assert (reply.usage.calls, reply.usage.failed_calls) == (server.stats().total.calls, 2) == (3, 2)
    assert reply.usage == request.account.usage
    assert metric("calls", model="status-500x2+echo", purpose="accounts", outcome="unavailable") == 2
    assert metric("calls", model="status-500x2+echo", purpose="accounts", outcome="ok") == 1


async def test_what_is_refused_or_limited_is_counted(make: Make) -> None:
    refused, limited = ask(), ask()
    with pytest.raises(ModelRefused):
        await make("status-401").complete(refused)
    with pytest.raises(ModelRateLimited):
        await make("rate-limited-3600s").complete(limited)

    assert refused.account.usage == limited.account.usage == Usage(calls=1, failed_calls=1)
    assert metric("calls", model="status-401", purpose="accounts", outcome="refused") == 1
    assert metric("calls", model="rate-limited-3600s", purpose="accounts", outcome="rate_limited") == 1


async def test_a_call_that_is_cancelled_or_too_late_was_paid_for(make: Make) -> None:
    cancelled, late = ask(), ask()
    task = asyncio.create_task(make("latency-30s").complete(cancelled))
    while not cancelled.account.usage.calls:
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    with pytest.raises(ModelUnavailable):
        await make("latency-30s", timeout_s=0.3).complete(late)

    assert cancelled.account.usage == late.account.usage == Usage(calls=1, failed_calls=1)


@pytest.mark.parametrize("name", ["cut-stream", "short-stream"])
async def test_a_stream_that_breaks_off_is_counted(make: Make, name: str) -> None:
    request = ask("a long enough text to be cut in the middle")
    with pytest.raises(ModelUnavailable):
        async with aclosing(make(name).stream(request)) as deltas:
            _ = [delta async for delta in deltas]

    assert request.account.usage == Usage(calls=1, failed_calls=1)


async def test_a_stream_that_is_left_is_counted(make: Make) -> None:
    request = ask("word " * 200)
    async with aclosing(make("slow-stream-20ms").stream(request)) as deltas:
        await anext(deltas)

    assert request.account.usage == Usage(calls=1, failed_calls=1)


async def test_embeddings_are_counted(server: ModelServer) -> None:
    embedder = _embedder(server.base_url, "status-503x1+echo")
    await embedder.embed(["one two three", "four"])
    await embedder.close()

    assert metric("calls", model="status-503x1+echo", purpose="embedding", outcome="unavailable") == 1
    assert metric("calls", model="status-503x1+echo", purpose="embedding", outcome="ok") == 1
    assert metric("tokens", model="status-503x1+echo", purpose="embedding", direction="input") == 4


def _embedder(base_url: str, model: str, *, timeout_s: float = 20.0) -> OpenAIEmbedder:
    return OpenAIEmbedder(api_key="any", base_url=base_url, model=model, dimensions=64, timeout_s=timeout_s, max_concurrency=4)


# --- circuits


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Replace the clock of circuits by a list with one item, the time."""
    now = [0.0]
    breaker = endpoint.Breaker  # type: ignore[attr-defined]
    monkeypatch.setattr(endpoint, "Breaker", lambda outages: breaker(outages, clock=lambda: now[0]))
    return now


async def _failed(model: OpenAIModel) -> tuple[str, int]:
    """Return the message of a failing call, and the number of requests it sent."""
    request = ask()
    with pytest.raises(ModelUnavailable) as caught:
        await model.complete(request)
    return caught.value.message, request.account.usage.calls


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentic_rag_backend.models.llm.retries.FIRST_PAUSE_S", 0.0)


async def test_a_model_that_is_down_is_not_asked_again_at_once(
    make: Make, server: ModelServer, clock: list[float], no_pauses: None
) -> None:
    model = make("status-503x7+echo")

    assert (await _failed(model))[1] == 6, "attempts"
    message, requests = await _failed(model)
    assert (requests, "HTTP 503" in message, "recently" in message) == (0, True, True)
    assert server.stats().total.calls == 6
    clock[0] += PAUSE_S
    assert (await model.complete(ask("hi"))).text == "hi", "its trial goes through, and everything after it"
    assert (await model.complete(ask("hi"))).text == "hi"


async def test_other_models_of_the_endpoint_have_circuits_of_their_own(make: Make, clock: list[float], no_pauses: None) -> None:
    model = make("status-503")
    await _failed(model)

    assert (await model.complete(ask("hi", model="echo"))).text == "hi"


@pytest.mark.parametrize("fault", ["status-401", "rate-limited-3600s", "broken-json"])
async def test_a_model_that_answers_has_a_closed_circuit(make: Make, clock: list[float], fault: str) -> None:
    model = make(fault)
    for _ in range(5):
        request = ask("The title.", schema=SCHEMA)
        with pytest.raises(OUTAGES.answered):
            await model.complete(request)
        assert request.account.usage.calls > 0


async def test_streams_and_embeddings_fail_fast_too(make: Make, server: ModelServer, clock: list[float], no_pauses: None) -> None:
    nobody = f"http://127.0.0.1:{free_port()}/v1"
    model, embedder = make("echo", base_url=nobody), _embedder(nobody, "echo")
    for call in (lambda: _streamed(model), lambda: embedder.embed_query("one"), lambda: embedder.embed(["one"])):
        with pytest.raises(ModelUnavailable):
            await call()
        with pytest.raises(ModelUnavailable, match="recently") as caught:
            await call()
        assert caught.value.retry_after_s == PAUSE_S
    await embedder.close()


async def _streamed(model: OpenAIModel) -> None:
    async with aclosing(model.stream(ask())) as deltas:
        async for _ in deltas:
            pass


# --- health


async def test_health_follows_the_last_calls(make: Make) -> None:
    for name, state in (
        ("echo", "ok"),
        ("status-401", "model_refused"),
        ("status-400", "ok"),
        ("rate-limited-3600s", "model_rate_limited"),
    ):
        model = make(name)
        await asyncio.gather(model.complete(ask()), return_exceptions=True)
        assert await model.health.read_state() == state, name


async def test_health_is_asked_for_where_no_call_was_made(make: Make, server: ModelServer) -> None:
    model = make("echo")
    assert [await model.health.read_state() for _ in range(3)] == ["ok"] * 3
    assert server.stats().total.calls == 0, "the list of models costs no tokens"
    assert await make("echo", base_url=f"http://127.0.0.1:{free_port()}/v1").health.read_state() == "model_unavailable"


class Pinged:
    def __init__(self, *outcomes: Outcome) -> None:
        self.outcomes = list(outcomes)
        self.asked = 0

    async def __call__(self, timeout_s: float) -> Outcome:
        assert timeout_s <= 1.0
        self.asked += 1
        await asyncio.sleep(0)
        return self.outcomes.pop(0)


async def test_readers_share_one_probe_in_an_interval() -> None:
    now = [0.0]
    pinged = Pinged("unavailable", "ok")
    watched = Health(pinged, clock=lambda: now[0])

    assert await asyncio.gather(*(watched.read_state() for _ in range(5))) == ["model_unavailable"] * 5
    now[0] += model_health.FRESH_S - 0.1
    assert (await watched.read_state(), pinged.asked) == ("model_unavailable", 1)
    now[0] += 0.1
    assert (await watched.read_state(), pinged.asked) == ("ok", 2)
    watched.note_outcome("refused")
    watched.note_outcome("cancelled")
    assert await watched.read_state() == "model_refused"
    watched.note_outcome("ok")
    assert (await watched.read_state(), pinged.asked) == ("ok", 2)


# --- replies without end


async def _endless(stop: asyncio.Event, head: bytes, piece: bytes) -> asyncio.Server:
    """Return a server whose replies have no end."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n")
            while not stop.is_set():
                writer.write(piece)
                await writer.drain()
        writer.close()

    return await asyncio.start_server(answer, "127.0.0.1", 0)


@pytest.mark.parametrize(
    ("head", "piece", "streams"),
    [
        (b"Content-Type: application/json", b" " * 65_536, False),
        (b"Content-Type: text/event-stream", b": nothing to say\n" * 4_096, True),
        (b"Content-Type: text/event-stream", b"data: " + b"x" * 65_536, True),
        (
            b"Content-Type: text/event-stream",
            b'data: {"id":"1","object":"chat.completion.chunk","created":0,"model":"m",'
            b'"choices":[{"index":0,"delta":{"content":"'
            + b" ".join(b"%d" % number for number in range(600))
            + b'"},"finish_reason":null}]}\n\n',
            True,
        ),
    ],
    ids=["body", "comments", "line", "words"],
)
async def test_a_reply_without_an_end_is_broken_off(
    make: Make, monkeypatch: pytest.MonkeyPatch, head: bytes, piece: bytes, streams: bool
) -> None:
    monkeypatch.setattr(endpoint, "MAX_REPLY_BYTES", 1_000_000)
    stop = asyncio.Event()
    server = await _endless(stop, head, piece)
    model = make("echo", base_url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", timeout_s=120)
    request = ask(max_tokens=16)
    with pytest.raises(ModelUnavailable) as caught:
        await (_read(model, request) if streams else model.complete(request))
    stop.set()
    server.close()

    assert "did not answer within" not in caught.value.message
    assert request.account.usage == Usage(calls=1, failed_calls=1), "it is not asked again"


async def _read(model: OpenAIModel, request: ModelRequest) -> None:
    async with aclosing(model.stream(request)) as deltas:
        async for _ in deltas:
            pass


@pytest.mark.parametrize(
    "reply",
    [
        "[]",
        '"text"',
        "null",
        "{}",
        '{"choices": 7}',
        '{"choices": [7]}',
        '{"choices": [{"message": null}]}',
        '{"choices": [{"message": {"content": [1, 2]}}]}',
        '{"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": "many"}}',
        '{"choices": [{"message": {"content": "x"}}], "usage": 7}',
    ],
)
async def test_a_reply_of_another_shape_is_an_error_of_ours_or_read_for_what_it_holds(make: Make, reply: str) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(reply)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + reply.encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    model = make("echo", base_url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
    try:
        written = (await model.complete(ask())).text
    except ModelReplyInvalid as error:
        written = error.code
    server.close()

    assert written == ("x" if '"x"' in reply else "model_reply_invalid")
