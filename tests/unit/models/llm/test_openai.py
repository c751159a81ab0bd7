"""The OpenAI-compatible adapter over real HTTP, against the scriptable server only."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing
from types import AsyncGeneratorType
from typing import Any

import httpx2
import openai
import pytest
from tests.unit.models.conftest import SECRET

from agentic_rag_backend.breaker import TOO_LATE
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import ModelBusy, ModelRateLimited, ModelReplyInvalid, ModelTimeout, ModelUnavailable
from agentic_rag_backend.fairness import act_for
from agentic_rag_backend.models import endpoint
from agentic_rag_backend.models.llm.base import Message, ModelRequest
from agentic_rag_backend.models.llm.openai import OpenAIModel
from agentic_rag_testing.models.server import ModelServer

SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": "string"}},
    "required": ["title"],
    "additionalProperties": False,
}
Make = Callable[..., OpenAIModel]


def ask(text: str = "Hello there, how are you?", **fields: object) -> ModelRequest:
    return ModelRequest(prompt="test@1", messages=(Message("user", text),), **fields)  # type: ignore[arg-type]


async def streamed(model: OpenAIModel, request: ModelRequest) -> str:
    async with aclosing(model.stream(request)) as deltas:
        return "".join([delta.text async for delta in deltas])


async def test_a_stream_that_is_cut_off_leaves_no_open_generator(make: Make) -> None:
    # The garbage collector would close it, perhaps in another thread, while the event loop closes it as well.
    gc.collect()
    gc.disable()
    try:
        text = await streamed(make("echo"), ask("The sea is grey and the boat is slow. " * 400))
        await asyncio.sleep(0.05)
        generators = [thing for thing in gc.get_objects() if isinstance(thing, AsyncGeneratorType)]
        still_open = [thing.__qualname__ for thing in generators if thing.ag_frame is not None]
    finally:
        gc.enable()
    assert len(text) < 400  # it repeats itself
    assert [name for name in still_open if "tream" in name or "aiter" in name] == []


async def test_usage_is_the_servers(make: Make) -> None:
    reply = await make("echo").complete(ask("one two three"))
    assert (reply.text, reply.usage.prompt_tokens, reply.usage.completion_tokens) == ("one two three", 3, 3)


async def test_usage_is_estimated_where_the_server_counts_none(make: Make) -> None:
    reply = await make("echo+no-usage").complete(ask("人" * 9))
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.calls) == (10, 10, 1)


async def test_a_request_may_name_another_model(make: Make, server: ModelServer) -> None:
    reply = await make("echo").complete(ask(model="refuse"))
    assert reply.model == "refuse"
    assert set(server.stats().models) == {"refuse"}


@pytest.mark.parametrize("fault", ["status-500x2", "status-429x1", "rate-limited-0sx2", "dropx2", "status-503x1"])
async def test_passing_failures_are_tried_again(make: Make, server: ModelServer, fault: str) -> None:
    name = f"{fault}+echo"
    assert (await make(name).complete(ask("hi"))).text == "hi"
    assert server.stats().models[name].calls == int(fault[-1]) + 1


@pytest.mark.parametrize("fault", ["status-500x1", "dropx1"])
async def test_a_stream_that_did_not_begin_is_tried_again(make: Make, server: ModelServer, fault: str) -> None:
    assert await streamed(make(f"{fault}+echo"), ask("hi there")) == "hi there"
    assert server.stats().total.calls == 2


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, "model_input_refused"), (401, "model_refused"), (403, "model_refused"), (404, "model_refused")],
)
async def test_lasting_failures_end_at_once_and_name_no_secret(make: Make, server: ModelServer, status: int, code: str) -> None:
    with pytest.raises(ModelUnavailable, match=f"HTTP {status}") as caught:
        await make(f"status-{status}").complete(ask("private words"))
    assert server.stats().total.calls == 1
    assert (caught.value.code, caught.value.status) == (code, 502)
    assert SECRET not in caught.value.message
    assert "private words" not in caught.value.message
    with pytest.raises(ModelUnavailable) as streaming:
        await streamed(make(f"status-{status}"), ask())
    assert streaming.value.code == code


async def test_retry_after_beyond_the_time_left_ends_at_once(make: Make, server: ModelServer) -> None:
    with pytest.raises(ModelRateLimited, match=r"wait 3\.6e\+03 s") as caught:
        await make("rate-limited-3600s").complete(ask())
    assert caught.value.retry_after_s == 3600
    assert server.stats().total.calls == 1
    with pytest.raises(ModelRateLimited):
        await streamed(make("rate-limited-3600s"), ask())


@pytest.mark.parametrize("name", ["latency-30s", "status-503"])
async def test_the_timeout_bounds_the_whole_call(make: Make, name: str) -> None:
    started = time.perf_counter()
    with pytest.raises(ModelUnavailable, match=r"0\.4 s"):
        await make(name, timeout_s=0.4).complete(ask())
    assert time.perf_counter() - started < 15


async def test_each_piece_that_has_arrived_takes_a_turn_of_the_event_loop(make: Make) -> None:
    turns, pieces = 0, 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with aclosing(make("echo").stream(ask(" ".join(map(str, range(3_000))), max_tokens=20_000))) as deltas:
        await anext(deltas)
        time.sleep(0.5)  # noqa: ASYNC251 - blocks the loop, so that the other pieces arrive together
        counting = asyncio.create_task(count_turns())
        async for _ in deltas:
            pieces += 1
        counting.cancel()
    assert turns >= pieces > 100


async def test_a_stream_that_stalls_is_cut(make: Make) -> None:
    with pytest.raises(ModelTimeout, match="began its reply, but did not end it"):
        await streamed(make("slow-stream-30s", timeout_s=0.5), ask("x" * 600))


async def test_a_wait_for_a_place_is_limited_and_says_busy(make: Make) -> None:
    model = make("latency-30s", timeout_s=0.4, max_concurrency=1)
    running = asyncio.create_task(model.complete(ask(timeout_s=30)))
    await asyncio.sleep(0)
    with pytest.raises(ModelBusy, match=r"busy with other calls for 0\.4"):
        await model.complete(ask())
    running.cancel()


async def test_a_slow_reader_is_not_timed_out_by_its_own_work(make: Make) -> None:
    received = []
    async with aclosing(make("echo", timeout_s=0.6).stream(ask("some words " * 3))) as deltas:
        async for delta in deltas:
            received.append(delta.text)
            if len(received) == 1:
                await asyncio.sleep(0.1)
    assert "".join(received) == "some words " * 3


@pytest.mark.parametrize("name", ["cut-stream", "short-stream"])
async def test_a_cut_stream_is_an_error_after_what_came(make: Make, server: ModelServer, name: str) -> None:
    text = "a long enough text to be cut in the middle"
    async with aclosing(make(name).stream(ask(text))) as deltas:
        first = await anext(deltas)
        with pytest.raises(ModelUnavailable, match="broke off"):
            assert not [delta async for delta in deltas if not text.count(delta.text)]
    assert text.startswith(first.text)
    assert server.stats().total.calls == 1


async def test_leaving_a_stream_stops_the_model(make: Make, server: ModelServer) -> None:
    async with aclosing(make("slow-stream-50ms").stream(ask("word " * 200))) as deltas:
        await anext(deltas)
    async with asyncio.timeout(5):
        while server.stats().cancelled == 0:
            await asyncio.sleep(0.02)


async def test_structured_reply(make: Make, server: ModelServer) -> None:
    reply = await make("echo").complete(ask("The title. More.", schema=SCHEMA))
    assert reply.parsed == {"title": "The title."}
    assert server.stats().total.calls == 1


@pytest.mark.parametrize("fault", ["broken-json", "wrong-schema", "empty"])
async def test_an_invalid_reply_is_asked_for_again_once(make: Make, server: ModelServer, fault: str) -> None:
    reply = await make(f"{fault}x1+echo").complete(ask("The title.", schema=SCHEMA))
    assert reply.parsed is not None
    assert reply.usage.calls == server.stats().total.calls == 2
    server.reset()
    with pytest.raises(ModelReplyInvalid, match="twice"):
        await make(fault).complete(ask("The title.", schema=SCHEMA))
    assert server.stats().total.calls == 2


async def test_a_server_without_schemas_is_asked_for_json(make: Make, server: ModelServer) -> None:
    model = make("json-object-only")
    server.matchers.append((lambda prompt: "JSON Schema" in prompt, '{"title": "from the mode without schemas"}'))
    try:
        for calls in (2, 3):
            reply = await model.complete(ask(schema=SCHEMA))
            assert reply.parsed == {"title": "from the mode without schemas"}
            assert server.stats().total.calls == calls, "the refusal is remembered"
    finally:
        server.matchers.clear()


async def test_nobody_there(make: Make) -> None:
    with pytest.raises(ModelUnavailable, match="the connection failed"):
        await make("echo", timeout_s=1.0, base_url="http://127.0.0.1:9/v1").complete(ask())


LIST = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": {"type": "object"}}},
    "required": ["items"],
    "additionalProperties": False,
}
ITEMS = [{"name": f"item number {number} of the list"} for number in range(200)]


@pytest.fixture
def listing(server: ModelServer) -> Iterator[None]:
    """Reply to prompts that ask for the list."""
    server.matchers.append((lambda prompt: "list of items" in prompt, json.dumps({"items": ITEMS})))
    yield
    server.matchers.clear()


async def test_a_structured_reply_that_keeps_arriving_may_exceed_the_timeout(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "GAP_SHARE", 5.0)  # a busy machine is no reason to fail
    model = make("slow-stream-100ms", timeout_s=0.8)
    started = time.perf_counter()
    reply = await model.complete(ask("word " * 30, schema=SCHEMA))
    assert time.perf_counter() - started > 0.8, "the case needs a reply that takes longer than the timeout"
    assert reply.parsed == {"title": ("word " * 30).strip()}


async def test_a_structured_reply_that_stalls_is_cut_and_does_not_open_the_circuit(make: Make) -> None:
    model = make("slow-stream-30s", timeout_s=1.0)
    for _ in range(TOO_LATE + 1):
        with pytest.raises(ModelTimeout, match="began its reply"):
            await model.complete(ask(schema=SCHEMA))
    assert await model.health.read_state() == "ok"


async def test_whole_items_of_a_cut_reply_are_kept(make: Make, listing: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "GAP_SHARE", 5.0)
    reply = await make("slow-stream-150ms", timeout_s=0.6).complete(ask("the list of items", schema=LIST, partial=True))
    assert reply.parsed is not None
    items = reply.parsed["items"]
    assert 0 < len(items) < len(ITEMS)
    assert items == ITEMS[: len(items)]
    with pytest.raises(ModelTimeout, match="began its reply"):
        await make("slow-stream-150ms", timeout_s=0.6).complete(ask("the list of items", schema=LIST))


async def test_a_server_without_streams_answers_structured_calls(make: Make, server: ModelServer) -> None:
    reply = await make("no-stream").complete(ask("Some title.", schema=SCHEMA))
    assert (reply.parsed, reply.usage.prompt_tokens) == ({"title": "Some title."}, 3)
    assert server.stats().total.calls == 1


async def test_a_job_gives_an_unmeasured_model_more_time_than_a_question(make: Make) -> None:
    model = make("latency-800ms", timeout_s=0.3)

    async def in_job() -> str:
        act_for(TenantId("t_" + "a" * 32), job=True)
        return (await model.complete(ask("Hi.", schema=SCHEMA))).text

    assert "Hi." in await asyncio.create_task(in_job())
    with pytest.raises(ModelTimeout, match=r"did not answer within 0\.3 s"):
        await model.complete(ask("Hi.", schema=SCHEMA))


async def test_the_time_in_the_queue_is_not_the_calls(make: Make) -> None:
    model = make("latency-1000ms", timeout_s=2.5, max_concurrency=1)

    async def call() -> str:
        act_for(TenantId("t_" + "a" * 32), ends_at=asyncio.get_running_loop().time() + 60)
        return (await model.complete(ask("Hi."))).text

    assert await asyncio.gather(*(asyncio.create_task(call()) for _ in range(3))) == ["Hi."] * 3


async def test_a_question_that_queued_to_its_end_was_not_sent(make: Make, server: ModelServer) -> None:
    model = make("latency-30s", max_concurrency=1)
    running = asyncio.create_task(model.complete(ask()))
    await asyncio.sleep(0)
    act_for(TenantId("t_" + "a" * 32), ends_at=asyncio.get_running_loop().time() + 0.2)
    with pytest.raises(ModelBusy):
        await model.complete(ask("late"))
    running.cancel()
    assert server.stats().total.calls <= 1


async def test_a_server_that_refuses_streams_with_a_schema_is_asked_without(
    make: Make, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make("echo")
    create, sent = model._completions.create, list[bool]()

    async def refusing(**arguments: Any) -> Any:
        sent.append(arguments["stream"])
        if arguments["stream"]:
            body = {"error": {"message": "stream is not supported with response_format", "param": "stream"}}
            response = httpx2.Response(400, json=body, request=httpx2.Request("POST", server.base_url))
            raise openai.BadRequestError("no streams", response=response, body=body)
        return await create(**arguments)

    monkeypatch.setattr(model._completions, "create", refusing)
    for _ in range(2):
        assert (await model.complete(ask("Some title.", schema=SCHEMA))).parsed == {"title": "Some title."}
    assert sent == [True, False, False], "it is remembered"


async def test_a_structured_reply_that_breaks_off_is_asked_for_again(make: Make, server: ModelServer) -> None:
    for fault in ("cut-streamx1", "short-streamx1"):
        server.reset()
        reply = await make(f"{fault}+echo").complete(ask("A title that is long enough to be cut in the middle.", schema=SCHEMA))
        assert reply.parsed is not None
        assert server.stats().total.calls == 2


async def test_a_server_whose_streams_always_break_is_asked_for_whole_replies(make: Make, server: ModelServer) -> None:
    for fault in ("cut-stream", "short-stream"):
        server.reset()
        model = make(f"{fault}+echo")
        for calls in (2, 3):
            reply = await model.complete(ask("A title that is long enough to be cut in the middle.", schema=SCHEMA))
            assert reply.parsed is not None
            assert server.stats().total.calls == calls, "it is remembered"
