"""A client that does not read its answer does not hold the only place at the model."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from tests.e2e.api.conftest import model_at
from uvicorn.protocols.http.h11_impl import H11Protocol

from agentic_rag_backend.api.responses.resumption import AnswerStreams
from agentic_rag_testing.models.server import ModelServer

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "Why was the tidal barrage delayed?"
TEXTS = (
    "The tidal barrage was delayed by two years.",
    "The tidal barrage was delayed because a caisson had cracked.",
    "The tidal barrage was delayed by a storm in March.",
)
SLOW = "cite+slow-stream-50ms"
SMALLEST = 1
"""Size of a socket's buffer that the system raises to its least."""
WITHIN_S = 60


class Unbuffered(H11Protocol):
    """A connection whose server waits as soon as its client does not read."""

    paused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)

    def pause_writing(self) -> None:
        super().pause_writing()
        type(self).paused = True

    def resume_writing(self) -> None:
        super().resume_writing()
        type(self).paused = False


@asynccontextmanager
async def listening(app: Any) -> AsyncIterator[int]:
    """Serve an application over a socket with small buffers, and yield its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALLEST)
        server = uvicorn.Server(uvicorn.Config(app, http=Unbuffered, lifespan="off", log_config=None))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            await serving


async def begin_stream(port: int, key: str | None) -> socket.socket:
    """Ask for a streamed answer, and return the socket, which nobody reads."""
    body = json.dumps({"query": QUESTION, "stream": True})
    lines = ["POST /api/v1/answers HTTP/1.1", "Host: test", f"Authorization: Bearer {key}", "Content-Type: application/json"]
    head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "Connection: close", "", ""])
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALLEST)
    reader.setblocking(False)
    await asyncio.get_running_loop().sock_connect(reader, ("127.0.0.1", port))
    await asyncio.get_running_loop().sock_sendall(reader, (head + body).encode())
    return reader


async def read_rest(reader: socket.socket) -> str:
    received = b""
    while piece := await asyncio.get_running_loop().sock_recv(reader, 65536):
        received += piece
    return received.decode()


async def test_a_client_that_stops_reading_holds_no_place_at_the_model(tmp_path: Path, open_world: Any, new_tenant: Any) -> None:
    with ModelServer() as models:
        model = model_at(models.base_url, SLOW) | {"llm_fast_model": "cite", "llm_max_concurrency": 1, "request_timeout_s": 15}
        async with (
            open_world(tmp_path / "data", **model) as (_, http),
            listening(http._transport.app) as port,
            asyncio.timeout(WITHIN_S),
        ):
            (client,) = await new_tenant(http, "alpha", "admin")
            for number, text in enumerate(TEXTS):
                filler = " ".join(
                    f"Gate {number}{gate} closes at high tide, and its keeper notes the time." for gate in range(20)
                )
                await client.upload(f"{text} {filler}", key=str(number))
            models.reset()
            # The memory for events that were not read is full, as after many such clients.
            http._transport.app.state.answer_streams = AnswerStreams(keep_s=0, max_bytes=0)
            with await begin_stream(port, client.caller.key) as reader:
                while not models.stats().total.calls:
                    await asyncio.sleep(0.01)
                response = await client.post("/answers", {"query": QUESTION})
                assert Unbuffered.paused, "the first client reads"
                body = response.json()
                assert (body["data"]["model"], body["meta"].get("fallback_reason")) == (SLOW, None)
                shown = await read_rest(reader)
            assert "event: done" in shown
            assert models.stats().total.calls == 2
