"""A scripted model server, one a module, as new for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentic_rag_testing.models.server import ModelServer


@pytest.fixture(scope="module")
def running() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def server(running: ModelServer) -> ModelServer:
    running.reset()
    return running
