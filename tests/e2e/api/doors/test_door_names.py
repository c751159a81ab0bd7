"""Requests carry the name of their way in, in metrics and log lines."""

from __future__ import annotations

import pytest
from tests.e2e.api.conftest import World
from tests.e2e.api.doors.test_mcp import call, connect

from agentic_rag_backend.telemetry.metrics import REGISTRY

pytestmark = pytest.mark.asyncio(loop_scope="module")


def counted(door: str, route: str) -> float:
    """Return the number of answered requests."""
    labels = {"method": "POST", "route": route, "status": "200", "door": door}
    return REGISTRY.get_sample_value("agentic_rag_http_requests_total", labels) or 0.0


async def test_doors_are_named(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    requests = (
        ("openai", "/openai/v1/embeddings", {"model": "all-MiniLM-L6-v2", "input": "eels"}),
        ("dify", "/retrieval", {"query": "eels"}),
        ("rerank", "/v1/rerank", {"query": "eels", "documents": ["eels"]}),
        ("api", "/api/v1/search", {"query": "eels"}),
    )
    for door, path, body in requests:
        before = counted(door, path)
        assert (await world.alpha_reader.post(f"/{path}", body)).status_code == 200
        assert counted(door, path) == before + 1
        assert f"door={door}" in capsys.readouterr().out


async def test_calls_of_tools_have_the_name_of_their_protocol(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    before, of_api = counted("mcp", "/api/v1/search"), counted("api", "/api/v1/search")
    async with connect(world, world.alpha_reader) as client:
        await call(client, "search", query="eels")
    assert (counted("mcp", "/api/v1/search"), counted("api", "/api/v1/search")) == (before + 1, of_api)
    assert counted("mcp", "/mcp") > 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "path=/api/v1/search" in line]
    assert lines
    assert all("door=mcp" in line for line in lines)
    await world.alpha_reader.post("/search", {"query": "eels"})  # the name ends with the call
    assert "door=api" in capsys.readouterr().out
