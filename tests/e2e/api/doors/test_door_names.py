"""Requests carry the name of their way in, in metrics and log lines."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any

import pytest
import structlog
from tests.e2e.api.conftest import World
from tests.e2e.api.doors.test_mcp import call, connect

from agentic_rag_backend.telemetry.metrics import REGISTRY

pytestmark = pytest.mark.asyncio(loop_scope="module")


def counted(door: str, route: str) -> float:
    """Return the number of answered requests."""
    labels = {"method": "POST", "route": route, "status": "200", "door": door}
    return REGISTRY.get_sample_value("agentic_rag_http_requests_total", labels) or 0.0


def logged_requests() -> Any:
    """Capture events with what is bound to their context, whichever configuration earlier tests left."""
    return structlog.testing.capture_logs(processors=[structlog.contextvars.merge_contextvars])


def doors_of(events: Sequence[MutableMapping[str, Any]], path: str) -> set[str]:
    """Return the doors of the answered requests for ``path``."""
    return {event["door"] for event in events if event["event"] == "request" and event["path"] == path}


async def test_doors_are_named(world: World) -> None:
    requests = (
        ("openai", "/openai/v1/embeddings", {"model": "all-MiniLM-L6-v2", "input": "eels"}),
        ("dify", "/retrieval", {"query": "eels"}),
        ("rerank", "/v1/rerank", {"query": "eels", "documents": ["eels"]}),
        ("api", "/api/v1/search", {"query": "eels"}),
    )
    for door, path, body in requests:
        before = counted(door, path)
        with logged_requests() as events:
            assert (await world.alpha_reader.post(f"/{path}", body)).status_code == 200
        assert counted(door, path) == before + 1
        assert doors_of(events, path) == {door}


async def test_calls_of_tools_have_the_name_of_their_protocol(world: World) -> None:
    path = "/api/v1/search"
    before, of_api = counted("mcp", path), counted("api", path)
    with logged_requests() as events:
        async with connect(world, world.alpha_reader) as client:
            await call(client, "search", query="eels")
    assert (counted("mcp", path), counted("api", path)) == (before + 1, of_api)
    assert counted("mcp", "/mcp") > 0
    assert doors_of(events, path) == {"mcp"}
    with logged_requests() as events:
        await world.alpha_reader.post("/search", {"query": "eels"})  # the name ends with the call
    assert doors_of(events, path) == {"api"}
