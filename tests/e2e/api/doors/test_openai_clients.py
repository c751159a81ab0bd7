"""OpenAI's protocol, with the client that its maker publishes."""

from __future__ import annotations

from typing import Any

import numpy as np
import openai
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from sampling import sampled
from tests.e2e.api.conftest import DUAL_LEVEL, World
from tests.e2e.api.doors.conftest import QUESTION, QUESTIONS, client_for

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def ask_streamed(client: openai.AsyncOpenAI, question: str, **options: Any) -> tuple[str, list[Any], Any]:
    """Return the text of a stream, its annotations, and the last chunk."""
    text, annotations, last = "", list[Any](), None
    stream = await client.chat.completions.create(
        model="auto",
        messages=[{"role": "user", "content": question}],
        stream=True,
        stream_options={"include_usage": True},
        **options,
    )
    async for chunk in stream:
        last = chunk
        for choice in chunk.choices:
            text += choice.delta.content or ""
            annotations += (choice.delta.model_extra or {}).get("annotations") or []
    return text, annotations, last


@sampled(gate=6, deep=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(question=st.sampled_from(QUESTIONS))
async def test_the_door_says_what_the_api_says(world: World, client: openai.AsyncOpenAI, question: str) -> None:
    answer = await world.alpha_reader.data("POST", "/answers", json={"query": question, "strategy": "auto"})
    whole = await client.chat.completions.create(model="auto", messages=[{"role": "user", "content": question}])
    message = whole.choices[0].message
    text, annotations, last = await ask_streamed(client, question)
    for content, listed in ((message.content, [item.model_dump() for item in message.annotations or []]), (text, annotations)):
        assert content is not None
        written, _, sources = content.partition("\n\n**")
        assert written == answer["answer"]
        assert [item["url_citation"]["title"] for item in listed] == [cited["title"] for cited in answer["citations"]]
        for item, cited in zip(listed, answer["citations"], strict=True):
            place = item["url_citation"]
            assert cited["document_id"] in place["url"]
            assert cited["chunk_id"] in place["url"]
            assert 0 <= place["start_index"] < place["end_index"] <= len(written)
            assert f"[{cited['marker']}]" in sources
    assert last.choices == []
    assert whole.usage is not None
    assert last.usage.total_tokens == whole.usage.total_tokens == 0  # no model wrote it
    assert (whole.model_extra or {})["grounded"] is answer["grounded"]
    plain, _, _ = await ask_streamed(client, question, extra_query={"sources": "none"})
    assert plain == answer["answer"]


async def test_earlier_messages_are_the_history(client: openai.AsyncOpenAI) -> None:
    first = await client.chat.completions.create(
        model="auto", messages=[{"role": "user", "content": "Who leads the Harbour Authority?"}]
    )
    reply = first.choices[0].message.content or ""
    assert "**Sources**" in reply
    second = await client.chat.completions.create(
        model="auto",
        temperature=0.2,
        user="someone",
        messages=[
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Who leads the Harbour Authority?"},
            {"role": "assistant", "content": reply},
            {"role": "user", "content": [{"type": "text", "text": "What did it begin in May 2019?"}]},
        ],
    )
    assert "barrage" in (second.choices[0].message.content or "")


async def test_presets_are_the_models(world: World, client: openai.AsyncOpenAI) -> None:
    await world.alpha.data("PATCH", "/features", json={DUAL_LEVEL: False})
    names = [model.id async for model in client.models.list()]
    assert names[:4] == ["auto", "local", "themes", "agentic"]
    assert (await client.models.retrieve("local")).owned_by == "agentic-rag-backend"
    await world.alpha.data("PATCH", "/features", json={DUAL_LEVEL: True})
    assert "dual" in [model.id async for model in client.models.list()]
    for name in ("dual", "local", "agentic"):
        reply = await client.chat.completions.create(model=name, messages=[{"role": "user", "content": QUESTION}])
        assert "caisson" in (reply.choices[0].message.content or ""), name


async def test_tasks_of_chat_programs_are_not_searched(client: openai.AsyncOpenAI) -> None:
    task = (
        '### Task:\nGenerate a concise title.\n### Output:\nJSON format: { "title": "your title" }\n'
        "### Chat History:\n<chat_history>\nUSER: Why was the tidal barrage delayed again?\nASSISTANT: …\n</chat_history>"
    )
    text, annotations, _ = await ask_streamed(client, task)
    assert (text, annotations) == ('{"title": "Why was the tidal barrage delayed"}', [])
    reply = await client.chat.completions.create(
        model="auto", messages=[{"role": "user", "content": '### Task:\nSuggest. JSON format: { "follow_ups": ["…"] }'}]
    )
    assert reply.choices[0].message.content == '{"follow_ups": []}'


async def test_errors_have_their_form(world: World, client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as unknown:
        await client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "?"}])
    assert unknown.value.code == "model_not_found"
    assert "auto" in unknown.value.message
    with pytest.raises(openai.BadRequestError, match="8000"):
        await client.chat.completions.create(model="auto", messages=[{"role": "user", "content": "x" * 8001}])
    with pytest.raises(openai.BadRequestError, match="role 'user'"):
        await client.chat.completions.create(model="auto", messages=[{"role": "system", "content": "x"}])
    with pytest.raises(openai.BadRequestError, match="messages"):
        await client.chat.completions.create(model="auto", messages=[])
    async with client_for(world, world.nobody) as nobody:
        with pytest.raises(openai.AuthenticationError):
            await nobody.models.list()


async def test_texts_are_encoded(world: World, client: openai.AsyncOpenAI) -> None:
    name = [model.id async for model in client.models.list()][-1]
    texts = ["a cracked caisson", "the tidal barrage"]
    encoded = await client.embeddings.create(model=name, input=texts)
    as_numbers = await client.embeddings.create(model=name, input=texts[0], encoding_format="float")
    own = np.asarray(await world.container.embedder.embed(texts))
    assert np.allclose([item.embedding for item in encoded.data], own, atol=1e-6)
    assert np.allclose(as_numbers.data[0].embedding, own[0], atol=1e-6)
    assert encoded.usage.total_tokens > 0
    with pytest.raises(openai.NotFoundError, match=name):
        await client.embeddings.create(model="text-embedding-3-small", input="x")
    with pytest.raises(openai.BadRequestError, match="dimensions"):
        await client.embeddings.create(model=name, input="x", dimensions=3)


async def test_titles_and_quotes_are_no_markup(world: World, client: openai.AsyncOpenAI) -> None:
    title = "![x](https://evil.example/?q=) <img src=x> `code`"
    await world.alpha.upload("The zorbal lighthouse was painted [green](https://evil.example) in 1931.", title=title)
    reply = await client.chat.completions.create(
        model="auto", messages=[{"role": "user", "content": "When was the zorbal lighthouse painted green?"}]
    )
    sources = (reply.choices[0].message.content or "").partition("**Sources**")[2]
    assert "zorbal" in sources
    assert "!\\[x\\](https" in sources
    assert "<img" not in sources.replace("\\<img", "")
    assert "[green]" not in sources
