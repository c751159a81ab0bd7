"""Every embedder keeps its contract, and the suite detects embedders that break it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from agentic_rag_backend.models.embedding.base import Embedder, Vectors
from agentic_rag_backend.models.embedding.bundled import BundledEmbedder
from agentic_rag_backend.models.embedding.onnx.exactness import multiplies_exactly
from agentic_rag_backend.models.embedding.openai_embedder import OpenAIEmbedder
from agentic_rag_testing.models.embedder import CHECKS
from agentic_rag_testing.models.server import ModelServer

Check = Callable[[Embedder], Awaitable[None]]
each_check = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)


@pytest.fixture(
    params=[
        "float32",
        pytest.param("int8", marks=pytest.mark.skipif(not multiplies_exactly(), reason="no exact int8")),
    ]
)
async def bundled(request: pytest.FixtureRequest) -> AsyncIterator[BundledEmbedder]:
    embedder = BundledEmbedder(arithmetic=request.param)
    yield embedder
    await embedder.close()


@pytest.fixture(params=["words", "words+latency-5ms", "rate-limited-20msx2+words", "status-503x1+dropx2+words"])
async def remote(server: ModelServer, request: pytest.FixtureRequest) -> AsyncIterator[OpenAIEmbedder]:
    server.reset()
    embedder = OpenAIEmbedder(
        api_key="any", base_url=server.base_url, model=request.param, dimensions=64, timeout_s=20, max_concurrency=4
    )
    yield embedder
    await embedder.close()


@each_check
async def test_bundled(bundled: BundledEmbedder, check: Check) -> None:
    await check(bundled)


@each_check
async def test_openai(remote: OpenAIEmbedder, check: Check) -> None:
    await check(remote)


class Faulty:
    """A correct embedder with one planted fault, which the subclass defines."""

    def __init__(self, sound: Embedder) -> None:
        self.sound = sound

    @property
    def fingerprint(self) -> str:
        return self.sound.fingerprint

    @property
    def dimensions(self) -> int:
        return self.sound.dimensions

    @property
    def languages(self) -> tuple[str, ...] | None:
        return self.sound.languages

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return await self.sound.embed(texts)

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        return await self.sound.embed_query(text)

    def query_characters(self, text: str) -> int:
        return self.sound.query_characters(text)

    def query_tokens(self, text: str) -> int:
        return self.sound.query_tokens(text)

    async def close(self) -> None:
        await self.sound.close()


class CutsLongTexts(Faulty):
    async def embed(self, texts: Sequence[str]) -> Vectors:
        return await self.sound.embed([text[:1000] for text in texts])


class NotUnitLength(Faulty):
    async def embed(self, texts: Sequence[str]) -> Vectors:
        return await self.sound.embed(texts) * np.float32(2)


class OrderedByLength(Faulty):
    async def embed(self, texts: Sequence[str]) -> Vectors:
        return await self.sound.embed(sorted(texts, key=len))


class DependsOnTheBatch(Faulty):
    async def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = await self.sound.embed(texts)
        mixed = vectors + np.float32(0.05) * vectors.mean(axis=0) if len(texts) else vectors
        result: Vectors = mixed / np.maximum(np.linalg.norm(mixed, axis=1, keepdims=True), np.float32(1e-12))
        return result


class DoublePrecision(Faulty):
    async def embed(self, texts: Sequence[str]) -> Vectors:
        return (await self.sound.embed(texts)).astype(np.float64)  # type: ignore[return-value]


class FlatWhenEmpty(Faulty):
    async def embed(self, texts: Sequence[str]) -> Vectors:
        return await self.sound.embed(texts) if len(texts) else np.empty((0,), dtype=np.float32)


class QueryAsRow(Faulty):
    async def embed_query(self, text: str) -> NDArray[np.float32]:
        return await self.sound.embed([text])


class SaysTooMuch(Faulty):
    def query_characters(self, text: str) -> int:
        return len(text)


class UnstableName(Faulty):
    calls = 0

    @property
    def fingerprint(self) -> str:
        self.calls += 1
        return f"name-{self.calls}"


@pytest.mark.parametrize(
    "fault",
    [
        CutsLongTexts,
        NotUnitLength,
        OrderedByLength,
        DependsOnTheBatch,
        DoublePrecision,
        FlatWhenEmpty,
        QueryAsRow,
        SaysTooMuch,
        UnstableName,
    ],
)
async def test_suite_notices_a_planted_fault(remote: OpenAIEmbedder, fault: type[Faulty]) -> None:
    failed = []
    for check in CHECKS:
        try:
            await check(fault(remote))
        except AssertionError:
            failed.append(check.__name__)
    assert failed
