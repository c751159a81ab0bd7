"""The socket of a process that serves HTTP, and the server on it that ends by a signal with the stores still open."""

from __future__ import annotations

import errno
import ipaddress
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from agentic_rag_backend.errors import ConfigurationError, Conflict

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI

_BACKLOG = 2048


def server_of(app: FastAPI, *, drain_s: int) -> uvicorn.Server:
    """Return a server that ends at SIGTERM or Ctrl-C without raising it again, which would kill the process before its stores
    are closed.

    Args:
        drain_s: seconds that requests under way get then.
    """
    import uvicorn

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            # Through `signal`, as uvicorn does it: streams find the server by its handler and end when it does.
            before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
            try:
                yield
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)

    config = uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=drain_s,
        backlog=_BACKLOG,
    )
    return Server(config)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket bound to the address, before anything slow or exclusive is begun.

    Raises:
        Conflict: the port is in use.
        ConfigurationError: this machine has no such address, or may not listen there.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except OSError as error:
        raise ConfigurationError(f"HOST={host!r} is no address of this machine: {error}") from error
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
    """Return the address by which this machine reaches a listening socket."""
    host, port = listening.getsockname()[:2]
    address = ipaddress.ip_address(host)
    if address.is_unspecified:
        address = ipaddress.ip_address("127.0.0.1" if address.version == 4 else "::1")
    return f"http://[{address}]:{port}" if address.version == 6 else f"http://{address}:{port}"
