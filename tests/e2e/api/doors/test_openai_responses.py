"""Responses of OpenAI's protocol, with the client that its maker publishes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import openai
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from openai._models import construct_type
from openai.types.responses import ResponseStreamEvent
from sampling import sampled
from tests.e2e.api.conftest import World
from tests.e2e.api.doors.conftest import QUESTION, QUESTIONS, client_for
from watched_loops import take_long_turns

from agentic_rag_backend.answering.base import AnswerEvent, ErrorEvent, RetrievalEvent
from agentic_rag_backend.application.questions import AnswerWriting
from agentic_rag_backend.domain.query import Retrieval, Trace
from agentic_rag_backend.errors import ModelUnavailable

pytestmark = pytest.mark.asyncio(loop_scope="module")

# The client derives the types of events when it reads the first one, which would count as a long turn of the event loop.
construct_type(value={"type": "response.created", "response": {"id": "x", "output": []}}, type_=ResponseStreamEvent)
ALL: Any = {"type": "file_search", "vector_store_ids": ["vs_all"]}


@pytest.fixture(autouse=True)
def _short_turns(_long_turns: None) -> Iterator[None]:
    """Leave long turns out: the client imports modules and builds models in the server's event loop, at its first responses."""
    yield
    take_long_turns()


async def stream(client: openai.AsyncOpenAI, **options: Any) -> list[Any]:
    """Return the events of a streamed response."""
    return [event async for event in await client.responses.create(model="auto", stream=True, **options)]


def check_order(events: list[Any], *, searches: bool) -> None:
    """Check the order of the events of a complete stream, and their numbers."""
    names = [event.type.removeprefix("response.") for event in events]
    search = ["output_item.added", *(f"file_search_call.{stage}" for stage in ("in_progress", "searching", "completed"))]
    expected = ["created", "in_progress", *([*search, "output_item.done"] if searches else [])]
    expected += ["output_item.added", "content_part.added"]
    assert names[: len(expected)] == expected
    middle = names[len(expected) : -4]
    deltas = middle.count("output_text.delta")
    assert middle == ["output_text.delta"] * deltas + ["output_text.annotation.added"] * (len(middle) - deltas)
    assert deltas
    assert names[-4:] == ["output_text.done", "content_part.done", "output_item.done", "completed"]
    assert [event.sequence_number for event in events] == list(range(len(events)))


@sampled(gate=6, deep=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(question=st.sampled_from(QUESTIONS), searches=st.booleans())
async def test_the_door_says_what_the_api_says(world: World, client: openai.AsyncOpenAI, question: str, searches: bool) -> None:
    answer = await world.alpha_reader.data("POST", "/answers", json={"query": question, "strategy": "auto"})
    options: Any = {"input": question, "tools": [ALL] if searches else [], "include": ["file_search_call.results"]}
    whole: Any = await client.responses.create(model="auto", **options)
    events = await stream(client, **options)
    check_order(events, searches=searches)
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == answer["answer"]
    for response in (whole, events[-1].response):
        assert (response.status, response.error, response.usage.total_tokens) == ("completed", None, 0)
        assert response.output_text == answer["answer"]
        assert response.model_extra["grounded"] is answer["grounded"]
        places = response.output[-1].content[0].annotations
        assert [item.type for item in places] == ["file_citation", "url_citation"] * len(answer["citations"])
        for cited, file, link in zip(answer["citations"], places[::2], places[1::2], strict=True):
            assert file.file_id == "file-" + cited["document_id"].replace("-", "")
            assert file.filename == link.title == cited["title"]
            assert cited["chunk_id"] in link.url
            assert 0 <= link.start_index < link.end_index == file.index <= len(answer["answer"])
        assert [item.type for item in response.output] == ["file_search_call"] * searches + ["message"]
        if searches:
            search = response.output[0]
            assert (search.queries, search.status) == ([question], "completed")
            cited_documents = {"file-" + cited["document_id"].replace("-", "") for cited in answer["citations"]}
            assert not search.results or cited_documents <= {item.file_id for item in search.results}
    added = [event.annotation for event in events if event.type == "response.output_text.annotation.added"]
    assert [item.type for item in added] == [item.type for item in places]


async def test_a_search_stays_in_its_stores(world: World, client: openai.AsyncOpenAI, writer: openai.AsyncOpenAI) -> None:
    files = {key: "file-" + item["id"].replace("-", "") for key, item in world.documents["alpha"].items()}
    tide = await writer.vector_stores.create(name="tide", file_ids=[files["tide"]])
    market = await writer.vector_stores.create(name="market", file_ids=[files["market"]])

    async def ask(*stores: str, **tool: Any) -> Any:
        search: Any = {"type": "file_search", "vector_store_ids": list(stores), **tool}
        return await client.responses.create(
            model="auto", input=QUESTION, tools=[search], include=["file_search_call.results"], instructions="Be brief."
        )

    found = await ask(tide.id, max_num_results=1)
    assert "caisson" in found.output_text
    assert [item.filename for item in found.output[0].results] == ["Tidal barrage"]
    outside = await ask(market.id)
    assert "caisson" not in outside.output_text
    assert {item.file_id for item in outside.output[0].results} <= {files["market"]}
    assert "caisson" in (await ask(tide.id, market.id)).output_text
    assert "caisson" in (await ask(market.id, "vs_all")).output_text
    filtered = await ask("vs_all", filters={"type": "eq", "key": "category", "value": "report"})
    assert "caisson" not in filtered.output_text
    without_results: Any = await client.responses.create(model="auto", input=QUESTION, tools=[ALL])
    assert without_results.output[0].results is None
    for store in (tide, market):
        await writer.vector_stores.delete(store.id)


async def test_earlier_messages_are_the_history(client: openai.AsyncOpenAI) -> None:
    first = await client.responses.create(model="auto", input="Who leads the Harbour Authority?")
    turns: Any = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": "Who leads the Harbour Authority?"},
        *[item.model_dump() for item in first.output],
        {"role": "user", "content": [{"type": "input_text", "text": "What did it begin in May 2019?"}]},
    ]
    second = await client.responses.create(model="auto", input=turns, temperature=0.2, max_output_tokens=50)
    assert "barrage" in second.output_text
    task = '### Task:\nSuggest tags. JSON format: { "tags": ["…"] }'
    reply = await client.responses.create(model="auto", input=task, tools=[ALL])
    assert (reply.output_text, [item.type for item in reply.output]) == ('{"tags": ["General"]}', ["message"])
    events = await stream(client, input=task)
    check_order(events, searches=False)
    assert events[-1].response.output_text == reply.output_text


async def test_unsupported_parameters_are_refused(world: World, client: openai.AsyncOpenAI) -> None:
    for options, match in (
        ({"previous_response_id": "resp_1"}, "previous_response_id is not supported.*'input'"),
        ({"conversation": "conv_1"}, "conversation is not supported"),
        ({"background": True}, "background is not supported"),
        ({"input": "x" * 8001}, "8000 characters; got 8001"),
        ({"input": " "}, "input must contain"),
        ({"input": [{"role": "system", "content": "x"}]}, "input must contain"),
        ({"tools": [ALL, ALL]}, "one tool 'file_search'; got 2"),
        ({"tools": [{"type": "file_search", "vector_store_ids": []}]}, "vector_store_ids"),
        ({"tools": [{"type": "file_search", "vector_store_ids": ["vs_all"] * 11}]}, "10"),
        ({"tools": [{**ALL, "max_num_results": 51}]}, "50"),
    ):
        values: Any = {"model": "auto", "input": QUESTION, **options}
        with pytest.raises(openai.BadRequestError, match=match):
            await client.responses.create(**values)
    with pytest.raises(openai.NotFoundError, match="auto, dual"):
        await client.responses.create(model="gpt-4o", input=QUESTION)
    unknown: Any = {"type": "file_search", "vector_store_ids": ["vs_all", "vs_nothing"]}
    for streamed in (False, True):
        with pytest.raises(openai.NotFoundError, match="vs_nothing"):
            await client.responses.create(model="auto", input=QUESTION, tools=[unknown], stream=streamed)
    async with client_for(world, world.nobody) as nobody:
        with pytest.raises(openai.AuthenticationError):
            await nobody.responses.create(model="auto", input=QUESTION)


async def test_a_stream_that_fails_says_so(client: openai.AsyncOpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: Any, **__: Any) -> AsyncIterator[AnswerEvent]:
        yield RetrievalEvent(Retrieval(hits=(), trace=Trace(strategy="auto")))
        yield ErrorEvent(ModelUnavailable("the language model did not answer"))

    monkeypatch.setattr(AnswerWriting, "stream_answer", fail)
    events = await stream(client, input=QUESTION, tools=[ALL])
    assert events[-1].type == "response.failed"
    assert events[-1].response.error.message == "the language model did not answer"
    assert [event.sequence_number for event in events] == list(range(len(events)))


async def test_a_response_is_not_stored(world: World, client: openai.AsyncOpenAI) -> None:
    reply = await client.responses.create(model="auto", input="Why was the tidal barrage delayed?", store=True)
    assert reply.to_dict()["store"] is False
    for request in (client.responses.retrieve, client.responses.delete):
        with pytest.raises(openai.NotFoundError, match="not stored"):
            await request(reply.id)
