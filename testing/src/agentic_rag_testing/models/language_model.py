"""The contract of `LanguageModel`, for pytest: subclass `LanguageModelContract` and give it a ``model`` fixture.

class TestMine(LanguageModelContract):
    @pytest.fixture
    async def model(self): ...
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from agentic_rag_backend.domain.answer import Usage
from agentic_rag_backend.models.llm.base import LanguageModel, Message, ModelDelta, ModelReply, ModelRequest

_PASSAGES = (
    ("Halden Institute", "The Halden Institute was founded in 1994 by Mira Voss. It studies tides in the northern fjords."),
    ("Tidal Array", "The Tidal Array was switched on in 2011. It feeds 40 megawatts into the grid of Sund."),
)


def sample_request(question: str = "Who founded the Halden Institute?", *, prompt: str = "contract@1") -> ModelRequest:
    """Return a request that any model can answer from its passages."""
    fenced = "\n".join(
        f'<passage id="{number}" title="{title}">\n{text}\n</passage>' for number, (title, text) in enumerate(_PASSAGES, 1)
    )
    turns = (
        Message("system", "Answer from the passages; cite them as [n]."),
        Message("user", f"{fenced}\n\n<question>\n{question}\n</question>"),
    )
    return ModelRequest(prompt=prompt, messages=turns)


async def read_stream(model: LanguageModel, request: ModelRequest) -> list[ModelDelta]:
    """Return all pieces of a stream."""
    async with aclosing(model.stream(request)) as deltas:
        return [delta async for delta in deltas]


class LanguageModelContract:
    """Contract of every language model."""

    async def test_reply_has_text_usage_and_the_models_name(self, model: LanguageModel) -> None:
        reply = await model.complete(sample_request())
        assert isinstance(reply, ModelReply)
        assert "Mira Voss" in reply.text, "the reply rests on the evidence"
        assert reply.model == model.name
        assert reply.parsed is None
        assert reply.usage.calls - reply.usage.failed_calls == 1
        assert reply.usage.prompt_tokens > 0
        assert reply.usage.completion_tokens > 0

    async def test_stream_says_what_the_whole_reply_says(self, model: LanguageModel) -> None:
        deltas = await read_stream(model, sample_request())
        whole = await model.complete(sample_request())
        assert "".join(delta.text for delta in deltas) == whole.text
        assert [delta.usage is not None for delta in deltas] == [False] * (len(deltas) - 1) + [True]
        streamed = deltas[-1].usage
        assert streamed is not None
        assert (streamed.prompt_tokens, streamed.completion_tokens) == (whole.usage.prompt_tokens, whole.usage.completion_tokens)

    async def test_same_request_same_reply(self, model: LanguageModel) -> None:
        first, second = await model.complete(sample_request()), await model.complete(sample_request())
        assert first.text == second.text

    async def test_requests_at_once_do_not_mix(self, model: LanguageModel) -> None:
        questions = ["Who founded the Halden Institute?", "When was the Tidal Array switched on?"] * 4
        apart = [(await model.complete(sample_request(question))).text for question in questions]
        together = await asyncio.gather(*(model.complete(sample_request(question)) for question in questions))
        assert [reply.text for reply in together] == apart
        assert len(set(apart)) == 2, "two questions have two answers"

    async def test_a_stream_left_early_frees_the_model(self, model: LanguageModel) -> None:
        for _ in range(4):
            async with aclosing(model.stream(sample_request())) as deltas:
                assert await anext(deltas)
        async with asyncio.timeout(20):
            assert (await model.complete(sample_request())).text

    async def test_usage_adds_up(self, model: LanguageModel) -> None:
        reply = await model.complete(sample_request())
        assert reply.usage + Usage() == reply.usage
