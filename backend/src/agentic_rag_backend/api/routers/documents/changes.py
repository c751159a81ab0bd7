"""Changes of documents: metadata, chunking and deletion."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from agentic_rag_backend.api.dependencies import Services, Writer
from agentic_rag_backend.api.requests.documents import METADATA_PARAMETER, IfMatch, MatchingQuery, tag
from agentic_rag_backend.api.requests.idempotency import IdempotentRoute
from agentic_rag_backend.api.responses.envelopes import Envelope, wrap_data
from agentic_rag_backend.api.schemas.documents.documents import (
    ChunkingAgain,
    DeletedDocument,
    DeletedDocuments,
    DocumentChange,
    DocumentView,
    SubmittedView,
    search_state,
)
from agentic_rag_backend.api.schemas.jobs import JobAccepted

router = APIRouter(tags=["documents"], route_class=IdempotentRoute)


@router.patch(
    "/documents/{document_id}",
    response_model=Envelope[DocumentView],
    summary="Change a document's title and metadata",
    responses={
        202: {
            "model": Envelope[DocumentView],
            "description": "a version with the change follows: one is being processed, or a field changed that names entities",
        },
        412: {},
    },
)
async def change_document(
    request: Request,
    response: Response,
    services: Services,
    caller: Writer,
    document_id: str,
    body: DocumentChange,
    expected: IfMatch,
) -> dict[str, Any]:
    """Merge metadata by key (null removes a key) and set the title. The content is not processed again, unless the value of
    one of the ontology's `entity_fields` changes.

    `meta.search` is `current` if search and its filters have the change. If it is `pending`, they get it soon,
    without another request.
    """
    changed = await services.documents.change_document(
        caller, document_id, title=body.title, fields=body.metadata, expected=expected
    )
    if changed.job is not None:
        response.status_code = 202
    tag(response, changed.document)
    return wrap_data(request, DocumentView.of(changed.document), search=search_state(changed))


@router.post(
    "/documents/{document_id}/chunks",
    status_code=202,
    response_model=Envelope[SubmittedView],
    summary="Chunk a document again",
    responses={200: {"model": Envelope[SubmittedView], "description": "unchanged: it already has these chunks"}, 412: {}},
)
async def chunk_again(
    request: Request,
    response: Response,
    services: Services,
    caller: Writer,
    document_id: str,
    body: ChunkingAgain,
    expected: IfMatch,
) -> dict[str, Any]:
    """Queue a version of the same content and metadata with other chunks. The old chunks stay until it is ready."""
    submitted = await services.documents.chunk_again(
        caller,
        document_id,
        body.options(),
        questions=body.questions.options() if body.questions else None,
        expected=expected,
    )
    if submitted.unchanged:
        response.status_code = 200
    tag(response, submitted.document)
    return wrap_data(request, SubmittedView.of(submitted))


@router.delete(
    "/documents/{document_id}",
    status_code=202,
    response_model=Envelope[JobAccepted],
    summary="Delete a document",
    responses={412: {}},
)
async def delete_document(
    request: Request, services: Services, caller: Writer, document_id: str, expected: IfMatch
) -> dict[str, Any]:
    """Hide the document immediately and queue its removal. The job's result is the receipt."""
    job = await services.documents.delete_document(caller, document_id, expected=expected)
    return wrap_data(request, JobAccepted(job_id=job.id, state=job.state))


@router.delete(
    "/documents",
    status_code=202,
    response_model=Envelope[DeletedDocuments],
    summary="Delete matching documents",
    openapi_extra={"parameters": [METADATA_PARAMETER]},
)
async def delete_documents(request: Request, services: Services, caller: Writer, wanted: MatchingQuery) -> dict[str, Any]:
    """Hide up to 1,000 documents immediately and queue the removal of each. At least one parameter must select them.

    If `remaining` is true, repeat the request.
    """
    deleting = await services.documents.delete_documents(caller, wanted)
    documents = [DeletedDocument(document_id=job.document_id or "", job_id=job.id) for job in deleting.jobs]
    return wrap_data(request, DeletedDocuments(count=len(documents), documents=documents, remaining=deleting.remaining))
