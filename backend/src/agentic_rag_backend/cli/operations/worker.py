"""``worker``: runs jobs only. Any number of workers can share the stores."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from agentic_rag_backend.cli.command import AsJson
from agentic_rag_backend.cli.configuration import load_settings, models_line, models_of
from agentic_rag_backend.cli.interruption import run_async
from agentic_rag_backend.cli.operations.listening import listen, serve_until_stopped, server_of, share_threads, url_of
from agentic_rag_backend.cli.output import Output
from agentic_rag_backend.memory import pause_collection

if TYPE_CHECKING:
    from agentic_rag_backend.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("worker")(worker)


def worker(
    port: Annotated[
        int | None, typer.Option("--port", help="Port of health and metrics, on HOST; default: WORKER_PORT (8001).")
    ] = None,
    json: AsJson = False,
) -> None:
    """Run jobs until SIGTERM or Ctrl-C. Any number of workers can share the stores of the server profile."""
    with pause_collection():  # until it serves
        from agentic_rag_backend.telemetry import configure_logging
        from agentic_rag_backend.telemetry.event_loop import WatchedLoop

        settings = load_settings(worker_port=port)
        configure_logging(level=settings.log_level, format=settings.log_format)
        run_async(_work(settings, Output(as_json=json)), loop=WatchedLoop)


async def _work(settings: Settings, output: Output) -> None:
    from agentic_rag_backend.api.worker_app import create_worker_app
    from agentic_rag_backend.cli.session.local import open_stores
    from agentic_rag_backend.container.shared_stores import require_shared

    require_shared(settings, "'agentic-rag worker'")
    share_threads()
    listening = listen(settings.host, settings.worker_port)
    try:
        async with open_stores(settings, work=True) as container:
            # At a signal the server stops immediately. The container then waits for running jobs or returns them to the queue.
            server = server_of(create_worker_app(container), settings, drain_s=0)
            url = url_of(listening)
            with server.capture_signals():
                if output.as_json:
                    output.result({"url": url, "pid": os.getpid(), **models_of(settings)})
                else:
                    output.show(f"working · health at {url}/health/ready")
                    output.show(models_line(settings))
                await serve_until_stopped(server, listening, goes_on="other workers, or the next to start, continue its jobs")
    finally:
        listening.close()
