"""The usage that jobs and answers report equals the calls that the model received, also if all replies are unusable."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.e2e.api.conftest import Client, Template, model_at

from agentic_rag_testing.models.server import ModelServer

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "How do the barrage, the eels and the fish market depend on one another?"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(template: Template, folder: Path, open_world: Any, server: ModelServer) -> AsyncIterator[Client]:
    """A tenant whose model does not write JSON."""
    async with open_world(folder, **model_at(server.base_url, "broken-json")) as (_, http):
        yield template.client(http)


def _told(result: dict[str, Any]) -> tuple[int, int, int, int]:
    names = ("model_calls", "model_calls_failed", "prompt_tokens", "completion_tokens")
    calls, failed, read, written = (result[name] for name in names)
    return calls, failed, read, written


def _sent(server: ModelServer, *, failed: int | None = None) -> tuple[int, int, int, int]:
    total = server.stats().total
    return total.calls, total.calls if failed is None else failed, total.prompt_tokens, total.completion_tokens


async def test_a_rebuild_reports_the_calls_of_a_model_that_writes_no_json(client: Client, server: ModelServer) -> None:
    server.reset()
    job = await client.rebuild()

    assert server.stats().total.calls > 0
    assert _told(job["result"]) == _sent(server)
    assert _told(await client.data("GET", "/admin/communities")) == _sent(server)


async def test_a_tree_reports_them_too(client: Client, server: ModelServer) -> None:
    server.reset()
    job = await client.build_tree(mode="full", cluster_size=2)

    assert server.stats().total.calls > 0
    assert _told(job["result"]) == _sent(server)
    assert _told(await client.data("GET", "/admin/raptor")) == _sent(server)


@pytest.mark.parametrize(("strategy", "options"), [("global", {"rate": "model"}), ("drift", {})])
async def test_an_answer_reports_them_too(client: Client, server: ModelServer, strategy: str, options: dict[str, Any]) -> None:
    server.reset()
    answered = await client.data("POST", "/answers", json={"query": QUESTION, "strategy": strategy, "options": options})

    total, usage = server.stats().total, answered["usage"]
    assert usage["failed_calls"] > 0
    assert (usage["calls"], usage["prompt_tokens"], usage["completion_tokens"]) == (
        total.calls,
        total.prompt_tokens,
        total.completion_tokens,
    )
