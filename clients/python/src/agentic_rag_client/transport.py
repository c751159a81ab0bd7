"""Two ways of sending a request: on the event loop, or blocking."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import Any, Protocol

import httpx2


class Transport(Protocol):
    """Sends requests and reads responses in blocks."""

    is_blocking: bool

    def build(self, method: str, address: str, **arguments: Any) -> httpx2.Request:
        """Return a request."""

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        """Return a response whose body is not read yet."""

    async def read(self, response: httpx2.Response) -> bytes:
        """Read the whole body, and release the connection."""

    def blocks(self, response: httpx2.Response) -> AsyncGenerator[bytes, None]:
        """Yield the body in blocks."""

    async def release(self, response: httpx2.Response) -> None:
        """Release the connection of a response."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""

    async def close(self) -> None:
        """Close all connections."""


class AsyncTransport:
    """Transport on the event loop."""

    is_blocking = False

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http

    def build(self, method: str, address: str, **arguments: Any) -> httpx2.Request:
        return self._http.build_request(method, address, **arguments)

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        return await self._http.send(request, stream=True)

    async def read(self, response: httpx2.Response) -> bytes:
        return await response.aread()

    async def blocks(self, response: httpx2.Response) -> AsyncGenerator[bytes, None]:
        async for block in response.aiter_bytes():
            yield block

    async def release(self, response: httpx2.Response) -> None:
        await response.aclose()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        await self._http.aclose()


class BlockingTransport:
    """Transport whose methods block, and so never wait for an event loop."""

    is_blocking = True

    def __init__(self, http: httpx2.Client) -> None:
        self._http = http

    def build(self, method: str, address: str, **arguments: Any) -> httpx2.Request:
        return self._http.build_request(method, address, **arguments)

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        return self._http.send(request, stream=True)

    async def read(self, response: httpx2.Response) -> bytes:
        return response.read()

    async def blocks(self, response: httpx2.Response) -> AsyncGenerator[bytes, None]:
        for block in response.iter_bytes():
            yield block

    async def release(self, response: httpx2.Response) -> None:
        response.close()

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251 - no event loop runs this coroutine

    async def close(self) -> None:
        self._http.close()
