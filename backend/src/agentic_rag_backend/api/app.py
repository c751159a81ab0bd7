"""The application: middleware, problem responses, routers."""

from __future__ import annotations

from fastapi import APIRouter, Depends, FastAPI

from agentic_rag_backend import __version__
from agentic_rag_backend.api.dependencies import known_parameters
from agentic_rag_backend.api.errors import install_error_handlers
from agentic_rag_backend.api.middleware import RequestContext
from agentic_rag_backend.api.openapi import describe
from agentic_rag_backend.api.routers import (
    admin,
    answers,
    changes,
    communities,
    documents,
    health,
    jobs,
    metrics,
    raptor,
    search,
    status,
    tenants,
    transfer,
)
from agentic_rag_backend.container import Container

BASE_PATH = "/api/v1"
JSON_BODY_LIMIT = 12 * 1024 * 1024
"""Largest JSON body, bytes."""


def create_app(container: Container) -> FastAPI:
    """Return the application that serves ``container``; opening and closing it is the caller's."""
    app = FastAPI(
        title="agentic-rag-backend",
        version=__version__,
        summary="Multi-tenant, graph-backed retrieval with checked citations.",
        openapi_url=f"{BASE_PATH}/openapi.json",
        docs_url=f"{BASE_PATH}/docs",
        redoc_url=None,
    )
    app.state.container = container
    app.add_middleware(
        RequestContext,
        json_limit=JSON_BODY_LIMIT,
        upload_limit=container.settings.max_upload_mb * 1024 * 1024,
        import_limit=container.settings.max_import_mb * 1024 * 1024,
        timeout_s=container.settings.request_timeout_s,
    )
    install_error_handlers(app)
    versioned = APIRouter(prefix=BASE_PATH, dependencies=[Depends(known_parameters(BASE_PATH))])
    for router in (documents, changes, jobs, search, answers, communities, raptor, admin, status, tenants, transfer):
        versioned.include_router(router.router)
    app.include_router(versioned)
    app.include_router(health.router)
    app.include_router(metrics.router)
    describe(app, base_path=BASE_PATH)
    return app
