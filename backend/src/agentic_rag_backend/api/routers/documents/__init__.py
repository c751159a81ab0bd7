"""Document endpoints: submission, reading, changes and extraction."""

from fastapi import APIRouter

from agentic_rag_backend.api.routers.documents import changes, extraction, pages, reading, submission

router = APIRouter(
    routes=[
        *submission.router.routes,
        *reading.router.routes,
        *pages.router.routes,
        *changes.router.routes,
        *extraction.router.routes,
    ]
)
