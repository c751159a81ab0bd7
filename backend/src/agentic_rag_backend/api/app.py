"""The application: middleware, problem responses, routers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route

from agentic_rag_backend import __version__, console
from agentic_rag_backend.api.dependencies import refuse_unknown_parameters
from agentic_rag_backend.api.documentation.docs_page import docs_router
from agentic_rag_backend.api.documentation.openapi import describe
from agentic_rag_backend.api.doors import dify, protected_resource, rerank_routes
from agentic_rag_backend.api.doors.mcp_protocol.mcp_requests import McpEndpoint
from agentic_rag_backend.api.doors.openai_protocol import chat, file_routes, model_routes, response_routes, vector_store_routes
from agentic_rag_backend.api.doors.protected_resource import MCP_PATH, name_metadata
from agentic_rag_backend.api.middleware import RequestContext
from agentic_rag_backend.api.requests.bodies import LargeBodies
from agentic_rag_backend.api.responses.error_responses import Methods, install_error_handlers
from agentic_rag_backend.api.responses.resumption import AnswerStreams
from agentic_rag_backend.api.routers import (
    admin,
    answers,
    chunk_preview,
    documents,
    feedback,
    jobs,
    labels,
    probes,
    prometheus,
    quota_routes,
    search,
    status,
    tenants,
    transfer,
    usage,
)
from agentic_rag_backend.api.routers.evaluation import evaluation_routes, evaluation_scores, experiment_routes, tuning_routes
from agentic_rag_backend.api.routers.knowledge import communities, contradictions, graph, graph_edits, ontology, raptor
from agentic_rag_backend.container import Container

BASE_PATH = "/api/v1"
TEXT_IS_NO_MARKUP = (
    "Texts in responses are never markup. Titles, names, passages, quotes, answers and messages may contain whatever documents "
    "and questions contain, such as HTML or tokens of chat templates. Escape them where you show them."
)
"""The beginning of the API's documentation."""
_ROUTERS = (
    documents,
    chunk_preview,
    jobs,
    search,
    answers,
    labels,
    feedback,
    graph,
    graph_edits,
    contradictions,
    communities,
    raptor,
    admin,
    tuning_routes,
    evaluation_routes,
    experiment_routes,
    status,
    ontology,
    evaluation_scores,
    usage,  # before `tenants`, whose path with an id would match /tenants/usage
    tenants,
    quota_routes,
    transfer,
)
"""Modules of the versioned routes, in the order of the documentation."""
_DOORS = (
    chat,
    response_routes,
    model_routes,
    file_routes,
    vector_store_routes,
    dify,
    rerank_routes,
    protected_resource,
    console,
)
"""Modules of the routes of other protocols, and of the console."""


def create_app(container: Container) -> FastAPI:
    """Return the application that serves ``container``. The caller opens and closes the container."""
    app = FastAPI(
        title="agentic-rag-backend",
        version=__version__,
        summary="Multi-tenant, graph-backed retrieval with checked citations.",
        description=TEXT_IS_NO_MARKUP,
        openapi_url=None,  # `describe` serves it
    )
    app.state.container = container
    app.state.large_bodies = LargeBodies()
    app.state.answer_streams = AnswerStreams(
        keep_s=container.settings.stream_resume_s, max_bytes=container.settings.stream_buffer_mb * 1024 * 1024
    )
    # The middleware that is added last receives a request first.
    app.add_middleware(Methods)
    app.add_middleware(RequestContext, timeout_s=container.settings.request_timeout_s, challenge=name_metadata)
    if container.settings.cors_origins:
        app.add_middleware(CORSMiddleware, **_browser_access(container.settings.allowed_origins))
    install_error_handlers(app)
    versioned = APIRouter(prefix=BASE_PATH, dependencies=[Depends(refuse_unknown_parameters)])
    for router in _ROUTERS:
        versioned.include_router(router.router)
    app.include_router(versioned)
    for door in _DOORS:
        app.include_router(door.router)
    app.include_router(probes.router)
    app.include_router(prometheus.router)
    app.include_router(docs_router(BASE_PATH))
    app.router.routes.append(Route(MCP_PATH, McpEndpoint(app, BASE_PATH), methods=["POST"]))
    describe(app, base_path=BASE_PATH)
    return app


def _browser_access(origins: Sequence[str]) -> dict[str, Any]:
    """Return the CORS options for pages of ``origins``. Cookies are not allowed, because the key is sent in a header."""
    return {
        "allow_origins": list(origins),
        "allow_methods": ["GET", "POST", "PUT", "PATCH", "DELETE"],
        "allow_headers": [
            "Authorization",
            "X-API-Key",
            "Content-Type",
            "Idempotency-Key",
            "If-Match",
            "Last-Event-ID",
            "X-Request-Id",
        ],
        "expose_headers": [
            "ETag",
            "Content-Location",
            "X-Request-Id",
            "Retry-After",
            "RateLimit",
            "RateLimit-Policy",
            "Idempotency-Replayed",
            "Content-Disposition",
        ],
        "allow_credentials": False,
    }
