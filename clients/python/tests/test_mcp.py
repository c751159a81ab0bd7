"""The client of the Model Context Protocol of 2025 (SDK 1), with real sockets: tools, progress, many clients, refusals."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import httpx
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from agentic_rag_client import Client
from conftest import QUESTION, Site


@asynccontextmanager
async def connect(site: Site, key: str | None = None) -> AsyncIterator[ClientSession]:
    """Yield a session."""
    headers = {"Authorization": f"Bearer {key or site.key}"}
    async with (
        httpx.AsyncClient(headers=headers, timeout=60) as http,
        streamable_http_client(f"{site.url}/mcp", http_client=http) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        yield session


async def test_the_tools_answer(site: Site) -> None:
    assert version("mcp").startswith("1.")
    with Client(site.url, site.key) as client:
        answer = client.answers.create(QUESTION)
    async with connect(site) as session:
        tools = {tool.name for tool in (await session.list_tools()).tools}
        assert {"search", "fetch", "ask", "add_document"} <= tools
        asked: Any = (await session.call_tool("ask", {"question": QUESTION})).structuredContent
        assert asked["answer"] == answer.answer
        assert [cited["quote"] for cited in asked["citations"]] == [cited.quote for cited in answer.citations or ()]
        found: Any = (await session.call_tool("search", {"query": QUESTION})).structuredContent
        fetched: Any = (await session.call_tool("fetch", {"id": found["results"][0]["id"]})).structuredContent
        assert fetched["url"].startswith(f"{site.url}/console/#/d/")
        async with httpx.AsyncClient() as http:
            page = await http.get(fetched["url"])  # what follows # is not sent; the console reads it
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")


async def test_progress_arrives_before_the_reply(site: Site) -> None:
    messages: list[str | None] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        messages.append(message)

    async with connect(site) as session:
        await session.call_tool("ask", {"question": QUESTION}, progress_callback=report)
        assert any("corridor" in (message or "") for message in messages)
        messages.clear()
        added = await session.call_tool("add_document", {"text": "A slip of the quay.", "key": "mcp"}, progress_callback=report)
        assert not added.isError
        assert messages[-1] == "succeeded"


async def test_ten_clients_at_once(site: Site) -> None:
    async def search() -> None:
        async with connect(site) as session:
            for _ in range(3):
                found: Any = (await session.call_tool("search", {"query": QUESTION, "limit": 3})).structuredContent
                assert len(found["results"]) == 3

    await asyncio.gather(*(search() for _ in range(10)))


async def test_a_wrong_key_is_refused(site: Site) -> None:
    with pytest.raises(BaseExceptionGroup) as refused:
        async with connect(site, "wrong"):
            pass
    assert refused.group_contains(httpx.HTTPStatusError, match="401")
