"""The language model's contract on its adapter, and on models with planted faults, which must fail it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

import pytest

from agentic_rag_backend.domain.answer import Usage
from agentic_rag_backend.models.llm.base import (
    LanguageModel,
    ModelDelta,
    ModelReply,
    ModelRequest,
)
from agentic_rag_backend.models.llm.openai import OpenAIModel
from agentic_rag_testing.models.language_model import LanguageModelContract
from agentic_rag_testing.models.server import ModelServer


class TestOpenAI(LanguageModelContract):
    @pytest.fixture(
        params=[
            "cite",
            "cite+no-usage",
            "cite+slow-stream-1ms",
            "cite+latency-5ms",
            "status-503x1+cite",
            "rate-limited-20msx1+cite",
        ]
    )
    async def model(self, server: ModelServer, request: pytest.FixtureRequest) -> AsyncIterator[LanguageModel]:
        server.reset()
        model = OpenAIModel(
            api_key="none",
            base_url=server.base_url,
            model=request.param,
            timeout_s=20,
            max_concurrency=2,
        )
        yield model
        await model.close()


class _Faulty:
    """A model in this process. Subclasses have one planted fault each."""

    generative = True
    name = "planted"

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.calls = 0
        self.slots = asyncio.Semaphore(1)

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.calls += 1
        about = request.messages[-1].content
        if self.fault == "mixes":
            await asyncio.sleep(0)
            about = "founded"
        text = (
            "Mira Voss founded it. [1]"
            if "Who founded" in about.partition("<question>")[2] or about == "founded"
            else "In 2011. [2]"
        )
        if self.fault == "wanders":
            text = f"{text} {self.calls}"
        usage = Usage() if self.fault == "claims no usage" else Usage(10, 5, 1)
        reply = ModelReply(text, usage, "another" if self.fault == "other name" else self.name)
        if self.fault == "leaks slots":
            async with self.slots:
                return reply
        return reply

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelDelta, None]:
        if self.fault == "leaks slots":
            await self.slots.acquire()
        reply = await _Faulty("none").complete(request)
        yield ModelDelta("x" if self.fault == "streams else" else "")
        yield ModelDelta(reply.text)
        yield ModelDelta("", None if self.fault == "no usage" else reply.usage)

    async def close(self) -> None:
        return None


@pytest.mark.parametrize(
    ("fault", "test"),
    [
        ("claims no usage", "test_reply_has_text_usage_and_the_models_name"),
        ("other name", "test_reply_has_text_usage_and_the_models_name"),
        ("wanders", "test_same_request_same_reply"),
        ("mixes", "test_requests_at_once_do_not_mix"),
        ("streams else", "test_stream_says_what_the_whole_reply_says"),
        ("no usage", "test_stream_says_what_the_whole_reply_says"),
    ],
)
async def test_planted_faults_fail(fault: str, test: str) -> None:
    with pytest.raises(AssertionError):
        await getattr(LanguageModelContract(), test)(_Faulty(fault))


async def test_planted_leak_of_slots_fails() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await LanguageModelContract().test_a_stream_left_early_frees_the_model(_Faulty("leaks slots"))


async def test_the_faulty_adapter_passes_without_a_fault() -> None:
    for name in dir(LanguageModelContract):
        if name.startswith("test_"):
            await getattr(LanguageModelContract(), name)(_Faulty("none"))
