"""The language model's contract on both adapters, and on adapters with planted faults, which must fail it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from agentic_rag_backend.domain.answer import Usage
from agentic_rag_backend.models.llm.base import (
    LanguageModel,
    ModelDelta,
    ModelReply,
    ModelRequest,
)
from agentic_rag_backend.models.llm.extractive import ExtractiveModel
from agentic_rag_backend.models.llm.openai import OpenAIModel
from agentic_rag_testing.models.language_model import LanguageModelContract
from agentic_rag_testing.models.server import ModelServer
from agentic_rag_testing.models.vectors import embed_text


class WordEmbedder:
    """An embedder that gives texts with common words similar vectors."""

    fingerprint = "words-256"
    dimensions = 256

    async def embed(self, texts: list[str]) -> NDArray[np.float32]:
        return np.array([embed_text(text, 256) for text in texts], np.float32)

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        return (await self.embed([text]))[0]  # type: ignore[no-any-return]

    async def close(self) -> None:
        return None


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


class TestExtractive(LanguageModelContract):
    @pytest.fixture
    def model(self) -> LanguageModel:
        return ExtractiveModel(WordEmbedder())


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


class _Faulty(ExtractiveModel):
    """Subclasses have one planted fault each."""

    def __init__(self, fault: str) -> None:
        super().__init__(WordEmbedder())
        self.fault = fault
        self.calls = 0
        self.slots = asyncio.Semaphore(1)

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.calls += 1
        if self.fault == "mixes":
            await asyncio.sleep(0)
            request = replace(request, question="Who founded the Halden Institute?")
        reply = await super().complete(request)
        if self.fault == "claims usage":
            return replace(reply, usage=Usage(1, 1, 1))
        if self.fault == "wanders":
            return replace(reply, text=f"{reply.text} {self.calls}")
        if self.fault == "other name":
            return replace(reply, model="another")
        if self.fault == "leaks slots":
            async with self.slots:
                return reply
        return reply

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelDelta, None]:
        if self.fault == "leaks slots":
            await self.slots.acquire()
        yield ModelDelta("x" if self.fault == "streams else" else "")
        async for delta in super().stream(request):
            if self.fault == "no usage" and delta.usage is not None:
                continue
            yield delta


@pytest.mark.parametrize(
    ("fault", "test"),
    [
        ("claims usage", "test_reply_has_text_usage_and_the_models_name"),
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
