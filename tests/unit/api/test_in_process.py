"""The application without a socket behaves as with one: streams arrive piece by piece, and a disconnect is noticed."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from agentic_rag_backend.api.in_process import InProcessTransport


def _client(app: Any) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=InProcessTransport(app), base_url="http://in-process")


async def test_request_and_response_pass_through_whole() -> None:
    async def echo(scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        await send({"type": "http.response.start", "status": 201, "headers": [(b"x-path", scope["path"].encode())]})
        shown = scope["method"].encode() + b" " + scope["query_string"] + b" " + message["body"]
        await send({"type": "http.response.body", "body": shown})

    async with _client(echo) as client:
        response = await client.post("/a b", params={"q": "1"}, content=b"body")
    assert (response.status_code, response.content, response.headers["x-path"]) == (201, b"POST q=1 body", "/a b")


async def test_a_part_arrives_before_the_next_is_written() -> None:
    seen = asyncio.Event()

    async def streaming(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        await seen.wait()
        await send({"type": "http.response.body", "body": b"second"})

    async with _client(streaming) as client, client.stream("GET", "/") as response:
        parts = response.aiter_raw()
        assert await asyncio.wait_for(anext(parts), 2) == b"first"
        seen.set()
        assert [part async for part in parts] == [b"second"]


async def test_closing_early_ends_the_application() -> None:
    ended = asyncio.Event()

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            while True:
                await send({"type": "http.response.body", "body": b".", "more_body": True})
                await asyncio.sleep(0.01)
        finally:
            ended.set()

    async with _client(endless) as client, client.stream("GET", "/") as response:
        await anext(response.aiter_raw())
    await asyncio.wait_for(ended.wait(), 2)


async def test_an_error_before_the_response_reaches_the_caller() -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("broken")

    async with _client(broken) as client:
        with pytest.raises(RuntimeError, match="broken"):
            await client.get("/")


async def test_an_error_after_the_response_is_the_servers_to_log() -> None:
    async def late(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 500, "headers": []})
        await send({"type": "http.response.body", "body": b"problem"})
        raise RuntimeError("raised for the log")

    async with _client(late) as client:
        assert (await client.get("/")).content == b"problem"
