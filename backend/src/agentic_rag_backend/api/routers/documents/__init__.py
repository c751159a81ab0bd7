"""Document endpoints: submission, reading and changes."""

from fastapi import APIRouter

from agentic_rag_backend.api.routers.documents import changes, reading, submission

router = APIRouter()
for _part in (submission, reading, changes):
    router.include_router(_part.router)
