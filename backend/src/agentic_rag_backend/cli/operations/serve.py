"""``serve``: the HTTP server, with workers in the same process unless WORKER_INLINE is false. ``worker``: runs jobs only.

On loopback, ``serve`` creates its own keys at the first start.
"""

from __future__ import annotations

import ipaddress
import os
import secrets
import shlex
import socket
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentic_rag_backend.cli.command import AsJson, DataDir
from agentic_rag_backend.cli.configuration import load_settings, models_line, models_of, suggest_encoder
from agentic_rag_backend.cli.operations.listening import create_server, open_socket, run_server, share_threads, url_of
from agentic_rag_backend.cli.output import Output
from agentic_rag_backend.cli.progress import run_async
from agentic_rag_backend.cli.session.address import (
    Address,
    Credentials,
    announce_server,
    credentials_file,
    read_credentials,
    write_credentials,
)
from agentic_rag_backend.errors import ConfigurationError, Forbidden, Unauthenticated
from agentic_rag_backend.memory import pause_collection

if TYPE_CHECKING:
    from agentic_rag_backend.container import Container
    from agentic_rag_backend.settings import Settings

DRAIN_S = 10
"""Seconds that running requests get when the server stops."""
_FIRST_START = "made at first start"


def serve_api(
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on; default: HOST (127.0.0.1).")] = None,
    port: Annotated[int | None, typer.Option("--port", help="Port; default: PORT (8000); 0 chooses a free port.")] = None,
    data_dir: DataDir = None,
    json: AsJson = False,
) -> None:
    """Serve the HTTP API until SIGTERM or Ctrl-C."""
    _start_process(start_server, json=json, host=host, port=port, data_dir=data_dir)


def _start_process(serve: Callable[[Settings, Output], Coroutine[Any, Any, None]], *, json: bool, **options: Any) -> None:
    """Run a process that serves HTTP, with its settings and its log."""
    with pause_collection():  # until it serves
        from agentic_rag_backend.container.options import trace_settings
        from agentic_rag_backend.telemetry import configure_logging
        from agentic_rag_backend.telemetry.event_loop import WatchedLoop
        from agentic_rag_backend.telemetry.tracing import record_traces

        settings = load_settings(**options)
        configure_logging(level=settings.log_level, format=settings.log_format)
        with record_traces(trace_settings(settings)):
            run_async(serve(settings, Output(as_json=json)), loop=WatchedLoop)


async def start_server(settings: Settings, output: Output, *, show: Callable[[str], object] | None = None) -> None:
    """Serve until a signal. ``show`` gets the address when the server listens."""
    from agentic_rag_backend.cli.session.local import open_stores
    from agentic_rag_backend.container.deployment import require_shared_stores

    local = is_loopback(settings.host)
    if not settings.operators and not local:
        raise ConfigurationError(
            f"HOST={settings.host} can be reached from other machines: set OPERATOR_KEY (32 characters or more) first"
        )
    if not settings.worker_inline:
        require_shared_stores(settings, "WORKER_INLINE=false, which leaves the jobs to 'agentic-rag worker',")
    share_threads()
    listening = open_socket(settings.host, settings.port)
    try:
        credentials = read_credentials(settings.data_dir)
        settings, operator_key = _add_operator_key(settings, credentials)
        async with open_stores(settings, work=settings.worker_inline) as container:
            new_credentials = await _ensure_credentials(container, credentials, operator_key) if local else None
            await _serve_requests(container, listening, new_credentials, output, show)
    finally:
        listening.close()


async def _serve_requests(
    container: Container,
    listening: socket.socket,
    credentials: Credentials | None,
    output: Output,
    show: Callable[[str], object] | None,
) -> None:
    """Serve requests until a signal. Print the address, and the file with the keys. Output and logs never have a key."""
    from agentic_rag_backend.api.app import create_app
    from agentic_rag_backend.api.responses.error_responses import build_routes

    data_dir = container.settings.data_dir
    app = create_app(container)
    build_routes(app)
    server = create_server(app, container.settings, drain_s=DRAIN_S)
    url = url_of(listening)
    with server.capture_signals(), announce_server(data_dir, Address(url=url, pid=os.getpid())):
        if output.as_json:
            models = models_of(container.settings)
            keys = credentials_file(data_dir)
            output.result({"url": url, "pid": os.getpid(), "credentials": str(keys) if keys.exists() else None, **models})
        else:
            output.show(f"serving {data_dir} on {url} · console at {url}/console/ · API docs at {url}/api/v1/docs")
            output.show(models_line(container.settings))
            # Not through the console, which would wrap the path of the keys.
            for line in (suggest_encoder(container.settings), _describe_keys(credentials, credentials_file(data_dir))):
                if line is not None:
                    typer.echo(line)
        if show is not None:
            show(url)
        try:
            await run_server(server, listening, continuation="unfinished jobs continue at the next start on these stores")
        finally:
            await app.state.answer_streams.close()


def _describe_keys(credentials: Credentials | None, keys: Path) -> str | None:
    """Return the line that says where the keys are. None if this process has no keys of its own."""
    if credentials is not None and credentials.key is None:
        return (
            f"another server issued the first key of tenant '{credentials.tenant}' and stored it in its DATA_DIR; "
            f"'agentic-rag tenants keys create {credentials.tenant}' issues another"
        )
    if not keys.exists():
        return None
    return f"keys are in {keys}, which only this account can read; show them with: cat {shlex.quote(str(keys))}"


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach ``host``."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _add_operator_key(settings: Settings, credentials: Credentials | None) -> tuple[Settings, str | None]:
    """Return settings with an operator's key, and that key if this program created it."""
    from pydantic import SecretStr

    if settings.operators:
        return settings, None
    key = credentials.operator_key if credentials is not None and credentials.operator_key else secrets.token_urlsafe(48)
    return settings.model_copy(update={"operator_key": SecretStr(key)}), key


async def _ensure_credentials(container: Container, stored: Credentials | None, operator_key: str | None) -> Credentials | None:
    """Store a valid key of the default tenant and the operator's key in DATA_DIR. Return the keys if they are new.

    If processes share the catalogue, one of them issues the tenant's first key. For the others the key is None.
    """
    from agentic_rag_backend.container.deployment import shares_catalogue
    from agentic_rag_backend.domain.tenant import KeyRequest, Scope
    from agentic_rag_backend.library import choose_tenant

    data_dir = container.settings.data_dir
    if stored is not None and stored.key is not None and await _is_valid(container, stored.key):
        if stored.operator_key != operator_key:
            write_credentials(data_dir, replace(stored, operator_key=operator_key))
        return None
    tenant = await choose_tenant(container, None)
    issued = await container.tenants.issue_first_key(tenant.id, name=_FIRST_START)
    if issued is None and not shares_catalogue(container.settings):
        # The previous key was lost, revoked or has expired.
        name = f"made at start {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        issued = await container.tenants.issue_key(tenant.id, KeyRequest(name, (Scope.ADMIN,)))
    key = issued.secret if issued is not None else None
    credentials = Credentials(tenant=tenant.name, tenant_id=tenant.id.value, key=key, operator_key=operator_key)
    # Without a key to store, do not write: another process may be writing the file.
    if key is not None or (operator_key is not None and (stored is None or stored.operator_key != operator_key)):
        write_credentials(data_dir, credentials)
    return credentials


async def _is_valid(container: Container, key: str) -> bool:
    try:
        await container.authenticator.authenticate(key)
    except (Unauthenticated, Forbidden):
        return False
    return True


def run_worker(
    port: Annotated[
        int | None, typer.Option("--port", help="Port of health and metrics, on HOST; default: WORKER_PORT (8001).")
    ] = None,
    json: AsJson = False,
) -> None:
    """Run jobs until SIGTERM or Ctrl-C. Any number of workers can share the stores of the server profile."""
    _start_process(_run_jobs, json=json, worker_port=port)


async def _run_jobs(settings: Settings, output: Output) -> None:
    from agentic_rag_backend.api.worker_app import create_worker_app
    from agentic_rag_backend.cli.session.local import open_stores
    from agentic_rag_backend.container.deployment import require_shared_stores

    require_shared_stores(settings, "'agentic-rag worker'")
    share_threads()
    listening = open_socket(settings.host, settings.worker_port)
    try:
        async with open_stores(settings, work=True) as container:
            # At a signal the server stops immediately. The container then waits for running jobs or returns them to the queue.
            server = create_server(create_worker_app(container), settings, drain_s=0)
            url = url_of(listening)
            with server.capture_signals():
                if output.as_json:
                    output.result({"url": url, "pid": os.getpid(), **models_of(settings)})
                else:
                    output.show(f"working · health at {url}/health/ready")
                    output.show(models_line(settings))
                await run_server(server, listening, continuation="other workers, or the next to start, continue its jobs")
    finally:
        listening.close()
