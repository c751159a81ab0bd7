"""A scripted model server, one a module, as new for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from agentic_rag_backend.models.llm.openai import OpenAIModel
from agentic_rag_testing.models.server import ModelServer

SECRET = "sk-very-secret-0123456789"


@pytest.fixture
def server(server: ModelServer) -> ModelServer:
    server.reset()
    return server


@pytest.fixture
async def make(server: ModelServer) -> AsyncIterator[Callable[..., OpenAIModel]]:
    """Return a function that connects to a model of the server."""
    made: list[OpenAIModel] = []

    def build(model: str, *, timeout_s: float = 20.0, max_concurrency: int = 4, base_url: str | None = None) -> OpenAIModel:
        named = {"api_key": SECRET, "base_url": base_url or server.base_url, "model": model}
        made.append(OpenAIModel(**named, timeout_s=timeout_s, max_concurrency=max_concurrency))
        return made[-1]

    yield build
    for model in made:
        await model.close()
