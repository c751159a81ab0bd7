"""Connections of slow clients on a real socket: closed at their time limit, counted, and no obstacle for others."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import h11
import pytest
import uvicorn

from agentic_rag_backend.api.dependencies import client_of
from agentic_rag_backend.api.http_connections import ConnectionLimits, Connections, guarded_protocol

REQUEST = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"
LARGE = 64 * 1024 * 1024


async def app(scope: Any, receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
    """Answer at once: ``/large`` with more than the sockets' buffers hold, ``/body`` with its size, others without reading it."""
    body = b"x" * LARGE if scope["path"] == "/large" else b"ok"
    if scope["path"] == "/body":
        size, more = 0, True
        while more:
            message = await receive()
            size, more = size + len(message.get("body", b"")), message.get("more_body", False)
        body = str(size).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@dataclass(frozen=True, slots=True)
class Site:
    """A server under test."""

    port: int
    guard: Connections
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def connect(self, sent: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=256 * 1024)
        self.writers.append(writer)
        writer.write(sent)
        return reader, writer

    async def close(self) -> None:
        """Close what tests left open."""
        for writer in self.writers:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


@asynccontextmanager
async def serving(**limits: Any) -> AsyncIterator[Site]:
    chosen: dict[str, Any] = {"header_timeout_s": 30.0, "body_timeout_s": 30.0, "in_all": 1000, "per_client": 0, **limits}
    protocol = guarded_protocol(ConnectionLimits(**chosen))
    config = uvicorn.Config(app, http=protocol, lifespan="off", log_config=None, access_log=False, ws="none")
    server = uvicorn.Server(config)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(512)
        task = asyncio.create_task(server._serve([listening]))
        async with asyncio.timeout(30):
            while not server.started:
                await asyncio.sleep(0.01)
        site = Site(listening.getsockname()[1], protocol.guard)
        try:
            yield site
        finally:
            await site.close()
            server.should_exit = server.force_exit = True
            await task


async def answered(site: Site) -> bool:
    reader, writer = await site.connect(REQUEST)
    async with asyncio.timeout(30):
        line = await reader.readline()
    writer.close()
    return line.startswith(b"HTTP/1.1 200")


async def rest_of(reader: asyncio.StreamReader) -> bytes:
    """Return everything until the server closes."""
    async with asyncio.timeout(30):
        try:
            return await reader.read(-1)
        except ConnectionError:
            return b""


def problem_of(response: bytes) -> tuple[bytes, dict[str, Any]]:
    head, _, body = response.partition(b"\r\n\r\n")
    assert b"connection: close" in head.lower()
    problem: dict[str, Any] = json.loads(body)
    return head, problem


async def test_half_sent_requests_are_closed_and_others_are_served_meanwhile() -> None:
    begun = (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: test\r\nX-Slow: ")
    async with serving(header_timeout_s=0.5) as site:
        slow = [await site.connect(begun[number % 3]) for number in range(300)]
        assert await answered(site)
        closed = await asyncio.gather(*(rest_of(reader) for reader, _ in slow))
        assert await answered(site)
        for number, response in enumerate(closed):
            if number % 3 == 0:
                assert response == b""  # no request, so no response
            else:
                head, problem = problem_of(response)
                assert head.startswith(b"HTTP/1.1 408 ")
                assert problem["code"] == "request_incomplete"
                assert "0.5 s (HEADER_TIMEOUT_S)" in problem["detail"]


async def test_the_time_of_a_head_begins_once_however_often_a_byte_comes() -> None:
    async with serving(header_timeout_s=0.5) as site:
        reader, writer = await site.connect(b"GET / HTTP/1.1\r\n")
        finished = asyncio.create_task(rest_of(reader))
        while not finished.done():
            writer.write(b"X: y\r\n")
            await asyncio.sleep(0.02)
        # It is closed anyway. Data still being sent may reset the connection before the response is read.
        assert not finished.result() or b" 408 " in finished.result()


async def test_a_second_request_of_a_connection_has_the_same_time() -> None:
    async with serving(header_timeout_s=0.5) as site:
        reader, writer = await site.connect(REQUEST)
        await reader.readuntil(b"ok")
        writer.write(b"GET / HT")
        assert b" 408 " in await rest_of(reader)
        pipelined, writer = await site.connect(REQUEST + b"GET / HT")
        assert b" 408 " in await rest_of(pipelined)


async def test_the_rest_of_a_body_that_nobody_reads_is_not_waited_for_long() -> None:
    async with serving(body_timeout_s=0.3) as site:
        reader, writer = await site.connect(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\n\r\nabc")
        assert (await rest_of(reader)).endswith(b"ok")
        # A complete request keeps its connection.
        reader, writer = await site.connect(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 3\r\n\r\nabc")
        await reader.readuntil(b"ok")
        await asyncio.sleep(0.6)
        writer.write(REQUEST)
        assert await reader.readuntil(b"ok")
        writer.close()


async def test_a_response_that_is_not_read_ends_the_connection() -> None:
    async with serving(body_timeout_s=0.3) as site:
        _, writer = await site.connect(b"GET /large HTTP/1.1\r\nHost: test\r\n\r\n")
        async with asyncio.timeout(30):
            while not site.guard._open:
                await asyncio.sleep(0.01)
            while site.guard._open:
                await asyncio.sleep(0.05)
        writer.close()
        reader, writer = await site.connect(b"GET /large HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")
        received = 0
        async with asyncio.timeout(60):
            while part := await reader.read(1024 * 1024):
                received += len(part)
        assert received > LARGE  # a client that reads gets all of it


async def test_a_connection_too_many_is_told_so_and_one_that_ends_makes_room() -> None:
    for limits, status, code, setting in [
        ({"per_client": 5}, b"429", "too_many_connections", "MAX_CONNECTIONS_PER_CLIENT"),
        ({"in_all": 5}, b"503", "overloaded", "MAX_CONNECTIONS"),
    ]:
        async with serving(**limits) as site:
            held = [await site.connect(REQUEST) for _ in range(5)]
            for reader, _ in held:
                await reader.readuntil(b"ok")
            for _ in range(20):
                reader, writer = await site.connect(REQUEST)
                head, problem = problem_of(await rest_of(reader))
                assert head.split()[1] == status
                assert b"retry-after: 1" in head.lower()
                assert (problem["code"], problem["status"]) == (code, int(status))
                assert f"5 open connections ({setting})" in problem["detail"]
                writer.close()
            held[0][1].close()
            async with asyncio.timeout(30):
                while not await answered(site):
                    await asyncio.sleep(0.05)
            await site.close()
            async with asyncio.timeout(30):
                while site.guard._open:
                    await asyncio.sleep(0.05)


def test_a_client_is_an_address_or_a_network_of_them() -> None:
    assert client_of("192.0.2.7") == client_of("::ffff:192.0.2.7") == "192.0.2.7"
    assert client_of("2001:db8::1") == client_of("2001:db8::ffff:1") == "2001:db8::/64"
    assert client_of("2001:db8:0:1::1") != client_of("2001:db8::1")
    assert client_of("fe80::1%eth0") == "fe80::/64"
    assert client_of("") == ""


@pytest.mark.parametrize("path", [b"/", b"/unread", b"/body"])
async def test_a_body_in_crumbs_is_refused_before_they_are_parsed(path: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    events = 0
    parse = h11.Connection.next_event

    def counted(self: h11.Connection) -> Any:
        nonlocal events
        events += 1
        return parse(self)

    monkeypatch.setattr(h11.Connection, "next_event", counted)
    async with serving() as site:
        crumbs = b"1\r\nx\r\n" * 100_000 + b"0\r\n\r\n"
        reader, writer = await site.connect(b"POST " + path + b" HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n")
        await asyncio.sleep(0)
        with suppress(ConnectionError):
            writer.write(crumbs)
            await writer.drain()
        response = await rest_of(reader)
        assert response == b"" or response.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 200 "))
        assert events < 5_000
        assert await answered(site)


async def test_a_body_in_chunks_of_usual_sizes_arrives_whole() -> None:
    async with serving() as site:
        small = b"".join(b"%x\r\n%s\r\n" % (len(line), line) for line in [b"a line of text\n"] * 900)
        large = b"".join(b"%x\r\n%s\r\n" % (len(block), block) for block in [b"x" * 4096] * 3000)
        for chunks, size in ((small, 900 * 15), (large, 3000 * 4096)):
            head = b"POST /body HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n"
            reader, _ = await site.connect(head + chunks + b"0\r\n\r\n")
            async with asyncio.timeout(30):
                answer = await reader.readuntil(b"\r\n\r\n") + await reader.readexactly(len(str(size)))
            assert answer.startswith(b"HTTP/1.1 200 ")
            assert answer.endswith(str(size).encode())


async def test_what_is_no_chunk_behind_a_complete_response_ends_the_connection_quietly(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as site:
        reader, writer = await site.connect(b"POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n")
        await reader.readuntil(b"ok")
        writer.write(b"no chunk\r\n")
        assert await rest_of(reader) == b""
        assert await answered(site)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
