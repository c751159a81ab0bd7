"""HTTP application of a worker process: liveness, readiness and metrics. It serves no data."""

from __future__ import annotations

from fastapi import FastAPI

from agentic_rag_backend import __version__
from agentic_rag_backend.api.middleware import RequestContext
from agentic_rag_backend.api.responses.error_responses import install_error_handlers
from agentic_rag_backend.api.routers import probes, prometheus
from agentic_rag_backend.container import Container


def create_worker_app(container: Container) -> FastAPI:
    """Return the application of a worker. The caller opens and closes ``container``."""
    app = FastAPI(title="agentic-rag-backend worker", version=__version__, openapi_url=None)
    app.state.container = container
    app.add_middleware(RequestContext, timeout_s=container.settings.request_timeout_s)
    install_error_handlers(app)
    app.include_router(probes.router)
    app.include_router(prometheus.router)
    return app
