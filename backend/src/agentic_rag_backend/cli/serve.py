"""``serve``: the HTTP server, with the workers in the same process; on loopback it makes its own keys at first start."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import secrets
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from agentic_rag_backend.cli.address import (
    Address,
    Credentials,
    announced,
    read_credentials,
    write_credentials,
)
from agentic_rag_backend.cli.command import AsJson, DataDir
from agentic_rag_backend.cli.configuration import load_settings
from agentic_rag_backend.cli.output import Output
from agentic_rag_backend.errors import ConfigurationError, Conflict, Forbidden, Unauthenticated

if TYPE_CHECKING:
    import uvicorn

    from agentic_rag_backend.container import Container
    from agentic_rag_backend.settings import Settings

DRAIN_S = 10
"""Seconds that requests under way get when the server is told to stop."""
_BACKLOG = 2048


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("serve")(serve)


def serve(
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on; default: HOST (127.0.0.1).")] = None,
    port: Annotated[int | None, typer.Option("--port", help="Port; default: PORT (8000); 0 takes a free one.")] = None,
    data_dir: DataDir = None,
    json: AsJson = False,
) -> None:
    """Serve the HTTP API until SIGTERM or Ctrl-C."""
    from agentic_rag_backend.telemetry import configure_logging

    settings = load_settings(host=host, port=port, data_dir=data_dir)
    configure_logging(level=settings.log_level, format=settings.log_format)
    asyncio.run(_serve(settings, Output(as_json=json)))


async def _serve(settings: Settings, output: Output) -> None:
    from agentic_rag_backend.cli.local import open_stores

    local = is_loopback(settings.host)
    if settings.operator_key is None and not local:
        raise ConfigurationError(
            f"HOST={settings.host} can be reached from other machines: set OPERATOR_KEY (32 characters or more) first"
        )
    listening = listen(settings.host, settings.port)
    try:
        kept = read_credentials(settings.data_dir)
        settings, operator_key = _with_operator_key(settings, kept)
        async with open_stores(settings, work=True) as container:
            made = await _ensure_credentials(container, kept, operator_key) if local else None
            await _answer(container, listening, made, output)
    finally:
        listening.close()


async def _answer(container: Container, listening: socket.socket, made: Credentials | None, output: Output) -> None:
    """Answer requests until a signal; say where, and show keys that were just made."""
    import uvicorn

    from agentic_rag_backend.api.app import create_app

    data_dir = container.settings.data_dir
    config = uvicorn.Config(
        create_app(container),
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=DRAIN_S,
        backlog=_BACKLOG,
    )
    url = url_of(listening)
    with announced(data_dir, Address(url=url, pid=os.getpid())):
        if output.as_json:
            output.result({"url": url, "pid": os.getpid(), "key": made.key if made is not None else None})
        else:
            output.show(f"serving {data_dir} on {url} · API docs at {url}/api/v1/docs")
            if made is not None:
                # Not through the console, which would wrap it: a key is copied whole.
                typer.echo(f"key of tenant '{made.tenant}', shown this once (kept in {data_dir}/credentials.json): {made.key}")
        await _server(config).serve(sockets=[listening])


def _server(config: uvicorn.Config) -> uvicorn.Server:
    import uvicorn

    class Server(uvicorn.Server):
        """Ends without raising the signal again, which would kill the process before the stores are closed."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            # Through `signal`, as uvicorn does it: streams find the server by its handler and end when it does.
            before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
            try:
                yield
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)

    return Server(config)


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach ``host``."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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


def _with_operator_key(settings: Settings, kept: Credentials | None) -> tuple[Settings, str | None]:
    """Return settings that have an operator's key, and that key where it is ours to keep, not the person's."""
    from pydantic import SecretStr

    if settings.operator_key is not None:
        return settings, None
    key = kept.operator_key if kept is not None and kept.operator_key else secrets.token_urlsafe(48)
    return settings.model_copy(update={"operator_key": SecretStr(key)}), key


async def _ensure_credentials(container: Container, kept: Credentials | None, operator_key: str | None) -> Credentials | None:
    """Keep a working key of the default tenant beside the operator's in DATA_DIR; return them if the first was made now."""
    from agentic_rag_backend.library import choose_tenant

    data_dir = container.settings.data_dir
    if kept is not None and await _works(container, kept.key):
        if kept.operator_key != operator_key:
            write_credentials(data_dir, replace(kept, operator_key=operator_key))
        return None
    tenant = await choose_tenant(container, None)
    issued = await container.tenants.issue_key(tenant.id, name="made at first start")
    made = Credentials(tenant=tenant.name, tenant_id=tenant.id.value, key=issued.secret, operator_key=operator_key)
    write_credentials(data_dir, made)
    return made


async def _works(container: Container, key: str) -> bool:
    try:
        await container.authenticator.authenticate(key)
    except (Unauthenticated, Forbidden):
        return False
    return True
