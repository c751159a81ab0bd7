"""Habits of real models and servers, as the scripted server shows them: one call where the reply can be mended without doubt."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from agentic_rag_backend.errors import ModelInputRefused, ModelReplyInvalid, ModelUnavailable, PromptTooLong
from agentic_rag_backend.models.endpoint import Call
from agentic_rag_backend.models.llm import model_traits
from agentic_rag_backend.models.llm.base import BOOLEAN, INTEGER, TEXT, Message, ModelRequest, list_of, object_of, window_of
from agentic_rag_backend.models.llm.openai import OpenAIModel
from agentic_rag_backend.models.llm.replies.reply_reading import RawReply, ReadObject, read_structured_reply
from agentic_rag_backend.models.llm.request_bodies import ModelRequestOptions
from agentic_rag_testing.models import quirks
from agentic_rag_testing.models.server import ModelServer

SENTENCE = "The lifting frame was bent."
PROMPT = f'<passages>\n<passage id="2" title="T">\n{SENTENCE}\n</passage>\n</passages>\n<question>\nWhat was bent?\n</question>'
ANSWER = f"{SENTENCE} [2]"
SCHEMA = object_of({"names": list_of(object_of({"name": {**TEXT, "maxLength": 200}, "rank": INTEGER})), "done": BOOLEAN})
OBJECT = {"names": [{"name": SENTENCE, "rank": 1}], "done": True}
Make = Callable[..., OpenAIModel]


@pytest.fixture
async def make(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Make]:
    monkeypatch.setattr("agentic_rag_backend.models.llm.retries.FIRST_PAUSE_S", 0.0)
    made: list[OpenAIModel] = []

    def build(quirk: str, options: ModelRequestOptions | None = None) -> OpenAIModel:
        name = f"quirk-{quirk}+cite"
        made.append(
            OpenAIModel(api_key="any", base_url=server.base_url, model=name, timeout_s=20, max_concurrency=4, options=options)
        )
        return made[-1]

    yield build
    for model in made:
        await model.close()


def ask(*, system: bool = True, **fields: Any) -> ModelRequest:
    messages = (*((Message("system", "Answer with citations."),) if system else ()), Message("user", PROMPT))
    return ModelRequest(**{"prompt": "test@1", "messages": messages, "max_tokens": 100, **fields})


async def streamed(model: OpenAIModel, request: ModelRequest) -> tuple[str, bool]:
    """Return the text of a stream, and whether it was cut."""
    text, cut = "", False
    async with aclosing(model.stream(request)) as deltas:
        async for delta in deltas:
            text, cut = ("" if delta.restart else text) + delta.text, cut or delta.cut
    return text, cut


REASONED = (
    *("think", "think-tail", "think-twice", "thinking", "kimi", "magistral", "command", "harmony", "harmony-bare"),
    *("reasoning-content", "reasoning", "parts", "end-token", "stop-token"),
)


@pytest.mark.parametrize("quirk", REASONED)
async def test_users_never_see_reasoning_or_control_tokens(make: Make, server: ModelServer, quirk: str) -> None:
    model = make(quirk)
    reply = await model.complete(ask(max_tokens=400))
    assert (reply.text.strip(), reply.cut) == (ANSWER, False)
    assert await streamed(make(quirk), ask(max_tokens=400)) == (reply.text, False)
    assert (await model.complete(ask(schema=SCHEMA, max_tokens=400))).parsed == OBJECT
    assert server.stats().total.calls == 3


async def test_a_mentioned_mark_is_not_reasoning(make: Make) -> None:
    expected = f"{ANSWER} The tag <think> begins reasoning, and </think> ends it."
    assert (await make("mention").complete(ask())).text == expected
    assert await streamed(make("mention"), ask()) == (expected, False)


async def test_reasoning_without_an_opening_mark_is_known_after_the_first_reply(make: Make) -> None:
    model = make("think-tail")
    await model.complete(ask(max_tokens=400))
    async with aclosing(model.stream(ask(max_tokens=400))) as deltas:
        pieces = [delta async for delta in deltas]
    assert not any(delta.restart for delta in pieces)
    assert pieces[0].text.startswith("The lifting")


@pytest.mark.parametrize("quirk", ["reason", "think-cut"])
async def test_a_limit_spent_on_reasoning_is_raised_once_and_remembered(make: Make, server: ModelServer, quirk: str) -> None:
    for number, fields in enumerate(({}, {"schema": SCHEMA})):
        model = make(f"{quirk}x1")
        server.reset()
        reply = await model.complete(ask(**fields))
        assert (reply.text.strip() if not fields else reply.parsed) == (ANSWER if not fields else OBJECT), number
        assert server.stats().total.calls == 2
        assert model.limits()[0]["reasoning_tokens"] >= 4_096
    server.reset()
    assert await streamed(make(f"{quirk}x1"), ask()) == (ANSWER, False)
    server.reset()
    lasting = await make(quirk).complete(ask())
    assert (lasting.text, lasting.cut, server.stats().total.calls) == ("", True, 2)
    with pytest.raises(ModelReplyInvalid):
        await make(quirk).complete(ask(schema=SCHEMA))


async def test_a_reply_of_reasoning_only_is_asked_for_once_more(make: Make, server: ModelServer) -> None:
    for once, lasting in ((ANSWER, ""), (OBJECT, None)):
        fields = {"schema": SCHEMA} if lasting is None else {}
        model = make("think-unclosedx1")
        server.reset()
        reply = await model.complete(ask(**fields))
        assert (reply.parsed or reply.text) == once
        assert server.stats().total.calls == 2
        assert not model.limits(), "the limit of tokens was not the cause"
    server.reset()
    assert await streamed(make("think-unclosedx1"), ask()) == (ANSWER, False)
    server.reset()
    assert await streamed(make("think-unclosed"), ask()) == ("", False)
    assert server.stats().total.calls == 2
    assert (await make("think-unclosed").complete(ask())).text == ""


@pytest.mark.parametrize("stream", [False, True])
async def test_the_second_request_of_a_call_has_the_time_of_a_new_one(make: Make, stream: bool) -> None:
    model, deadlines = make("think-cutx1"), list[float]()
    expect = model._endpoint.expect_first_piece

    def noted(call: Call) -> None:
        call.deadline = 0.0
        expect(call)
        deadlines.append(call.deadline)

    model._endpoint.expect_first_piece = noted  # type: ignore[method-assign]
    text = (await streamed(model, ask()))[0] if stream else (await model.complete(ask())).text
    assert text.strip() == ANSWER
    assert len(deadlines) == 2
    assert deadlines[1] >= deadlines[0] > 0


def test_equal_items_of_a_whole_object_are_no_loop() -> None:
    schema = object_of({"grades": list_of(object_of({"relevant": BOOLEAN, "grade": INTEGER}))})
    value = {"grades": [{"relevant": False, "grade": 0}] * 8}
    read, parsed = read_structured_reply(RawReply(json.dumps(value), ending="stop"), schema)
    assert isinstance(parsed, ReadObject)
    assert (parsed.value, read.cut, read.mended) == (value, False, ())
    looped = json.dumps({"names": [{"name": SENTENCE * 9, "rank": 1}], "done": True})
    assert read_structured_reply(RawReply(looped, ending="stop"), SCHEMA)[0].cut


MENDED = sorted({*quirks.OBJECTS} - {"json-half"} | {"reasoning-holds-object", "tool-call"})


@pytest.mark.parametrize("quirk", MENDED)
async def test_objects_are_mended_without_a_second_call(make: Make, server: ModelServer, quirk: str) -> None:
    reply = await make(quirk).complete(ask(schema=SCHEMA))
    expected: dict[str, Any] = {"names": [], "done": False} if quirk == "json-nulls" else OBJECT
    if quirk == "json-line-ends":
        expected = {**OBJECT, "names": [{"name": SENTENCE.replace(" ", "\n"), "rank": 1}]}
    assert (reply.parsed, reply.cut, server.stats().total.calls) == (expected, False, 1)
    assert reply.mended


async def test_an_object_that_was_cut_off_says_so(make: Make, server: ModelServer) -> None:
    schema = object_of({"names": SCHEMA["properties"]["names"]})
    reply = await make("json-half").complete(ask(schema=schema, partial=True))
    assert (reply.parsed, reply.cut, server.stats().total.calls) == ({"names": OBJECT["names"]}, True, 1)
    server.reset()
    reply = await make("json-halfx1").complete(ask(schema=schema))
    assert (reply.parsed, reply.cut, server.stats().total.calls) == ({"names": OBJECT["names"]}, False, 2)


async def test_a_text_that_was_cut_off_says_so(make: Make) -> None:
    model = make("plain")
    assert (await model.complete(ask(max_tokens=3))).cut
    assert (await streamed(model, ask(max_tokens=3)))[1]
    assert not (await model.complete(ask())).cut


@pytest.mark.parametrize("quirk", ["loop", "blank-loop"])
async def test_a_reply_that_repeats_itself_is_stopped(make: Make, quirk: str) -> None:
    once = f"{ANSWER} The report does not say more about it than this." if quirk == "loop" else ANSWER
    reply = await make(quirk).complete(ask(max_tokens=5_000))
    assert (reply.text.strip(), reply.cut) == (once, True)
    text, cut = await streamed(make(quirk), ask(max_tokens=5_000))
    assert cut
    assert text.startswith(once)
    assert len(text) < len(once) + 300, "the stream was stopped early"


async def test_replies_without_a_text(make: Make) -> None:
    assert (await make("refusal-field").complete(ask())).text == "I'm sorry, I cannot help with that."
    assert (await streamed(make("refusal-field"), ask()))[0] == "I'm sorry, I cannot help with that."
    for ending in (make("filtered").complete(ask()), streamed(make("filtered"), ask()), make("azure-filter").complete(ask())):
        with pytest.raises(ModelInputRefused):
            await ending


# --- what servers refuse


@pytest.mark.parametrize(
    ("quirk", "refused", "calls"),
    [
        ("old-server", {"json_schema"}, 2),
        ("deepseek", {"json_schema"}, 2),
        ("llamacpp-grammar", {"schema_bounds", "json_schema"}, 3),
        ("no-format", {"json_schema", "json_object"}, 3),
        ("fastapi", {"json_schema", "json_object"}, 3),
        ("lmstudio+quirk-old-server", {"json_schema", "json_object"}, 3),
        ("lmstudio", set(), 1),
        ("bounds", {"schema_bounds"}, 2),
        ("two-systems", {"json_schema"}, 2),
        ("gemma", {"system_role"}, 2),
        ("llamacpp-template", {"system_role"}, 2),
        ("mistral-roles", {"system_role"}, 2),
        ("alternate", {"system_role"}, 2),
        ("gemma+quirk-old-server", {"json_schema", "system_role"}, 3),
        ("no-thinking", {"reasoning_effort"}, 2),
        ("completion-tokens", {"max_tokens"}, 2),
        ("temperature-fixed", {"temperature"}, 2),
    ],
)
async def test_a_refused_feature_is_left_out_and_remembered(
    make: Make, server: ModelServer, quirk: str, refused: set[str], calls: int
) -> None:
    model = make(quirk, ModelRequestOptions(reasoning_effort="low"))
    for expected in (calls, calls + 1):
        assert (await model.complete(ask(schema=SCHEMA))).parsed == OBJECT
        assert server.stats().total.calls == expected
    assert {feature for row in model.limits() for feature in row["refused"]} == refused


async def test_streams_learn_too(make: Make, server: ModelServer) -> None:
    model = make("no-stream-options")
    for calls in (2, 3):
        assert await streamed(model, ask()) == (ANSWER, False)
        assert server.stats().total.calls == calls


async def test_a_refused_feature_is_tried_again_later(make: Make, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    table = model_traits.Refusals(clock=lambda: now[0])
    model = make("old-serverx1")
    monkeypatch.setattr(model, "_refusals", table)
    await model.complete(ask(schema=SCHEMA))
    now[0] = model_traits.REMEMBERED_S - 1
    assert table.current_features(model.name) == {"json_schema"}
    now[0] = model_traits.REMEMBERED_S
    await model.complete(ask(schema=SCHEMA))
    assert (table.current_features(model.name), model.limits()) == (frozenset(), [])
    assert server.stats().total.calls == 3


async def test_other_errors_refuse_no_feature(make: Make, server: ModelServer) -> None:
    model = make("openai-context")
    with pytest.raises(PromptTooLong):
        await model.complete(ask(schema=SCHEMA, messages=(Message("user", "word " * quirks.WINDOW),)))
    assert model.limits()[0]["refused"] == {}
    with pytest.raises(ModelUnavailable):
        await make("azure-filter").complete(ask(schema=SCHEMA))
    assert server.stats().total.calls == 2


# --- limits that servers state

CONTEXTS = sorted(name for name in quirks.REFUSALS if name.endswith("-context"))


@pytest.mark.parametrize("quirk", CONTEXTS)
async def test_a_prompt_that_is_too_long_is_told_with_its_window(make: Make, quirk: str) -> None:
    model = make(quirk)
    with pytest.raises(PromptTooLong) as caught:
        await model.complete(ask(messages=(Message("user", "word " * quirks.WINDOW),)))
    assert caught.value.window == (None if quirk == "ollama-context" else quirks.WINDOW)
    assert window_of(model) == quirks.WINDOW
    assert window_of(model, None, 100) == 100
    assert window_of(model, "another") == 8_192
    with pytest.raises(PromptTooLong):
        await streamed(model, ask(messages=(Message("user", "word " * quirks.WINDOW),)))


@pytest.mark.parametrize("quirk", ["openai-context", "vllm-context", "llamacpp-context", "tgi-context"])
async def test_a_reply_is_asked_to_be_shorter_if_the_prompt_fits(make: Make, server: ModelServer, quirk: str) -> None:
    assert (await make(quirk).complete(ask(max_tokens=quirks.WINDOW))).text == ANSWER
    assert server.stats().total.calls == 2


async def test_the_longest_reply_that_a_server_allows_is_remembered(make: Make, server: ModelServer) -> None:
    model = make("openai-reply-limit")
    for calls in (2, 3):
        assert (await model.complete(ask(max_tokens=500))).text == ANSWER
        assert server.stats().total.calls == calls
    assert model.limits()[0]["reply_tokens"] == quirks.REPLY_LIMIT


async def test_a_model_that_is_loading_is_waited_for(make: Make, server: ModelServer) -> None:
    assert (await make("loadingx3").complete(ask())).text == ANSWER
    assert server.stats().total.calls == 4


# --- manners of answers, which the checks of answers read


async def test_manners_of_answers_arrive_as_they_are(make: Make) -> None:
    for quirk in [
        *("passage", "paren", "cjk", "list", "foot", "xml", "tag", "source", "bold", "end", "intro", "before", "paraphrase"),
        *("no-citation", "german", "answer-object", "echo-passage", "sorry", "none"),
    ]:
        expected = quirks.TEXTS[quirk](ANSWER).content
        assert (await make(quirk).complete(ask())).text == expected
        assert (await streamed(make(quirk), ask()))[0] == expected


def test_every_habit_is_tested() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    assert [name for name in quirks.NAMES if f'"{name}' not in source and name not in (*quirks.OBJECTS, *CONTEXTS)] == []
