"""A rerank endpoint for tests: HTTP on a loopback port, in the form of Cohere and Jina.

    with RerankServer() as server:
        scorer = HttpScorer(EndpointAddress(url=server.url, api="cohere", model="any"))

The relevance of a passage is the share of the question's words that it contains. `RerankServer.faults` makes the next requests
fail.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


@dataclass(frozen=True, slots=True)
class Fault:
    """A reply that replaces the right one. ``body`` None: the right body. ``delay_s`` passes before any reply."""

    status: int = 200
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Received:
    """A request."""

    body: Mapping[str, Any]
    authorization: str | None


class RerankServer:
    """The server, in its own thread; a context manager. ``received`` has all requests, ``faults`` the next replies."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.faults: list[Fault] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="rerank-server", daemon=True)

    @property
    def url(self) -> str:
        """Address of the route."""
        return f"http://127.0.0.1:{self._server.server_port}/v2/rerank"

    def __enter__(self) -> RerankServer:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(server: RerankServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            server.received.append(Received(body, self.headers.get("authorization")))
            fault = server.faults.pop(0) if server.faults else Fault()
            time.sleep(fault.delay_s)
            reply = json.dumps(_reply(body)).encode() if fault.body is None else fault.body
            with contextlib.suppress(ConnectionError):  # the client did not wait
                self.send_response(fault.status)
                for name, value in {"content-length": str(len(reply)), **fault.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(reply)

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    return Handler


def _reply(body: Mapping[str, Any]) -> dict[str, Any]:
    asked = set(str(body["query"]).lower().split())
    scored = [(len(asked & set(text.lower().split())) / len(asked), number) for number, text in enumerate(body["documents"])]
    results = [{"index": number, "relevance_score": score} for score, number in sorted(scored, reverse=True)]
    tokens = sum(len(str(text).split()) for text in body["documents"])
    return {"results": results[: body["top_n"]], "meta": {"tokens": {"input_tokens": tokens}}, "usage": {"total_tokens": tokens}}
