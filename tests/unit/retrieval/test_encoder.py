from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import ModelUnavailable
from agentic_rag_backend.retrieval.base import QueryEncoder

A, B = TenantId("t_" + "a" * 32), TenantId("t_" + "b" * 32)


class HeldEmbedder:
    """Answers when it is released."""

    fingerprint = "held"
    dimensions = 2

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.released = asyncio.Event()
        self.failures = 0

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        raise NotImplementedError

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        self.asked.append(text)
        await self.released.wait()
        if self.failures:
            self.failures -= 1
            raise ModelUnavailable("the embedder is away")
        return np.array([len(text), 1], dtype=np.float32)

    async def close(self) -> None:
        return None


@pytest.fixture
async def embedder() -> HeldEmbedder:
    return HeldEmbedder()


async def started(encoder: QueryEncoder, *questions: tuple[TenantId, str]) -> list[asyncio.Task[NDArray[np.float32]]]:
    tasks = [asyncio.create_task(encoder.encode(tenant, text)) for tenant, text in questions]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


async def test_other_questions_and_tenants_do_not(embedder: HeldEmbedder) -> None:
    tasks = await started(QueryEncoder(embedder), (A, "who"), (A, "what"), (B, "who"))
    embedder.released.set()
    await asyncio.gather(*tasks)
    assert sorted(embedder.asked) == ["what", "who", "who"]


async def test_a_failure_that_nobody_waits_for_is_nobodys(embedder: HeldEmbedder) -> None:
    noticed: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: noticed.append(context))
    encoder = QueryEncoder(embedder)
    embedder.failures = 1
    (gone,) = await started(encoder, (A, "who"))
    embedder.released.set()
    gone.cancel()  # the embedding fails in the same turn of the event loop
    await asyncio.sleep(0.01)
    assert (await encoder.encode(A, "who")).tolist() == [3, 1]
    del gone
    await asyncio.sleep(0)
    assert noticed == []


async def test_vectors_are_kept_by_tenant(embedder: HeldEmbedder) -> None:
    encoder = QueryEncoder(embedder, max_bytes=10_000)
    embedder.released.set()
    vectors = [await encoder.encode(tenant, text) for tenant, text in ((A, "who"), (A, "who"), (B, "who"), (A, "what"))]
    assert embedder.asked == ["who", "who", "what"], "no tenant learns by the time what another one asked"
    assert vectors[0] is vectors[1]
    with pytest.raises(ValueError, match="read-only"):
        vectors[0][0] = 5


async def test_a_failed_vector_is_not_kept(embedder: HeldEmbedder) -> None:
    encoder = QueryEncoder(embedder, max_bytes=10_000)
    embedder.released.set()
    embedder.failures = 1
    with pytest.raises(ModelUnavailable):
        await encoder.encode(A, "who")
    assert (await encoder.encode(A, "who")).tolist() == [3, 1]
