"""Document endpoints: submission, reading and changes."""

from fastapi import APIRouter

from agentic_rag_backend.api.routers.documents import changes, reading, submission

router = APIRouter(routes=[*submission.router.routes, *reading.router.routes, *changes.router.routes])
