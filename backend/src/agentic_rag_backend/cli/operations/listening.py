"""The listening socket of a process that serves HTTP, and a server that stops at a signal before the stores close."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from agentic_rag_backend.cli.progress import Interrupted
from agentic_rag_backend.errors import ConfigurationError, Conflict
from agentic_rag_backend.fairness import FairThreadPool
from agentic_rag_backend.memory import serve_from_now

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI

    from agentic_rag_backend.settings import Settings

_BACKLOG = 2048
_INTERRUPTED_DRAIN_S: Any = 0.3
"""Seconds that running requests get at Ctrl-C. Uvicorn's annotation is int, but fractions work."""


def create_server(app: FastAPI, settings: Settings, *, drain_s: int) -> uvicorn.Server:
    """Return a server that stops at SIGTERM or Ctrl-C.

    It does not raise the signal again, which would kill the process before its stores are closed. Enter its `capture_signals`
    before the address is printed: the reader of the address may send a signal immediately.

    Args:
        drain_s: seconds that running requests get at the stop.
    """
    import uvicorn

    class Server(uvicorn.Server):
        interrupted = False
        capturing = False

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            if sig == signal.SIGINT:
                self.interrupted = True
                self.config.timeout_graceful_shutdown = _INTERRUPTED_DRAIN_S
            super().handle_exit(sig, frame)

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            if self.capturing:  # the command captures signals before it prints the address, and `serve` again
                yield
                return
            # Set with `signal`, like uvicorn: event streams find the server by its handler and end with it.
            handlers = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
            self.capturing = True
            try:
                yield
            finally:
                self.capturing = False
                for number, handler in handlers.items():
                    signal.signal(number, handler)

    return Server(_create_config(app, settings, drain_s=drain_s))


def _create_config(app: FastAPI, settings: Settings, *, drain_s: int) -> uvicorn.Config:
    import uvicorn

    from agentic_rag_backend.api.http_connections import ConnectionLimits, guarded_protocol

    limits = ConnectionLimits(
        header_timeout_s=settings.header_timeout_s,
        body_timeout_s=settings.body_timeout_s,
        in_all=settings.max_connections,
        per_client=settings.max_connections_per_client,
    )
    return uvicorn.Config(
        app,
        http=guarded_protocol(limits),
        ws="none",
        timeout_keep_alive=settings.keep_alive_s,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        # Without trusted proxies, a client could name another address as its own.
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=settings.trusted_proxies,
        timeout_graceful_shutdown=drain_s,
        backlog=_BACKLOG,
    )


_SWITCH_INTERVAL_S = 0.00005
"""Seconds after which a thread gives up the interpreter to a waiting one.

A search changes threads 14 times. While another thread computes, each change can wait this long, and the operating system may let
other threads run first. Measured while 141 hostile documents of another tenant were ingested, with 0.2 ms and with this interval:
half of 2,000 searches took at most 40 and 35 ms (alone: 24). The interval costs up to 9 % of the work of four threads that
compute all the time; the documents took no longer.
"""


def share_threads() -> None:
    """Share the running loop's threads, which `asyncio.to_thread` uses, fairly between tenants, and shorten their turns."""
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    asyncio.get_running_loop().set_default_executor(FairThreadPool(min(32, (os.cpu_count() or 1) + 4), "asyncio"))


async def run_server(server: uvicorn.Server, listening: socket.socket, *, continuation: str) -> None:
    """Serve until a signal; return at SIGTERM.

    Raises:
        Interrupted: Ctrl-C. The message reports the stop, and ``continuation``.
    """
    from agentic_rag_backend.telemetry.event_loop import watch_turns

    serve_from_now()
    with watch_turns():
        await server.serve(sockets=[listening])
    if getattr(server, "interrupted", False):
        raise Interrupted(f"stopped; {continuation}")


def open_socket(host: str, port: int) -> socket.socket:
    """Return a socket bound to the address. Call it before slow steps and before locks are taken.

    Raises:
        Conflict: the port is in use.
        ConfigurationError: the machine does not have the address, or the process may not listen there.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except OSError as error:
        raise ConfigurationError(f"HOST={host!r} is not an address of this machine: {error}") from error
    listening = socket.socket(family, kind, protocol)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        if isinstance(error, PermissionError) or error.errno != errno.EADDRINUSE:
            raise ConfigurationError(f"cannot listen on {host} port {port}: {error.strerror or error}") from error
        raise Conflict(f"port {port} on {host} is in use; choose another with --port or PORT (0 takes a free one)") from error
    listening.setblocking(False)
    return listening


def url_of(listening: socket.socket) -> str:
    """Return the URL of a listening socket for clients on this machine."""
    host, port = listening.getsockname()[:2]
    address = ipaddress.ip_address(host)
    if address.is_unspecified:
        address = ipaddress.ip_address("127.0.0.1" if address.version == 4 else "::1")
    return f"http://[{address}]:{port}" if address.version == 6 else f"http://{address}:{port}"
