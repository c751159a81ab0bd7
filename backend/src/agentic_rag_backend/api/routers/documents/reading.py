"""Reading of documents, their chunks and their originals."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from agentic_rag_backend.api.dependencies import Reader, Services
from agentic_rag_backend.api.requests.documents import METADATA_PARAMETER, MatchingQuery, tag
from agentic_rag_backend.api.requests.idempotency import IdempotentRoute
from agentic_rag_backend.api.responses.attachments import content_disposition, content_type
from agentic_rag_backend.api.responses.envelopes import Cursor, Envelope, Limit, ListEnvelope, wrap_data, wrap_page
from agentic_rag_backend.api.schemas.documents.documents import ChunkInDocument, ChunkView, DocumentDetail, DocumentView

router = APIRouter(tags=["documents"], route_class=IdempotentRoute)

_BYTES = {"schema": {"type": "string", "format": "binary"}}
_ORIGINAL = {
    "text/markdown": {**_BYTES, "example": "# Tidal barrage\n\nThe Harbour Authority began the tidal barrage in May 2019.\n"},
    "text/plain": {**_BYTES, "example": "The Harbour Authority began the tidal barrage in May 2019.\n"},
    "*/*": _BYTES,
}


@router.get(
    "/documents",
    response_model=ListEnvelope[DocumentView],
    summary="List documents, newest first",
    openapi_extra={"parameters": [METADATA_PARAMETER]},
)
async def list_documents(
    request: Request, services: Services, caller: Reader, wanted: MatchingQuery, limit: Limit = 50, cursor: Cursor = None
) -> dict[str, Any]:
    """List documents. `metadata.NAME=VALUE` in the query string selects documents with that metadata."""
    page = await services.documents.list_documents(caller, wanted, limit=limit, cursor=cursor)
    return wrap_page(request, [DocumentView.of(document) for document in page.items], page.next_cursor)


@router.get("/documents/{document_id}", response_model=Envelope[DocumentDetail], summary="Get a document")
async def get_document(
    request: Request, response: Response, services: Services, caller: Reader, document_id: str
) -> dict[str, Any]:
    """Return a document. Its `ETag` identifies its newest version, title and metadata.

    `attachments` are the documents of a message's attachments, oldest first; each may have attachments of its own.
    """
    document, attachments = await services.documents.get_document(caller, document_id)
    tag(response, document)
    return wrap_data(request, DocumentDetail.with_attachments(document, attachments))


@router.get("/documents/{document_id}/chunks", response_model=ListEnvelope[ChunkView], summary="List a document's chunks")
async def list_chunks(
    request: Request, services: Services, caller: Reader, document_id: str, limit: Limit = 50, cursor: Cursor = None
) -> dict[str, Any]:
    """List the visible version's chunks in reading order."""
    page, questions = await services.documents.list_chunks(caller, document_id, limit=limit, cursor=cursor)
    views = [ChunkView.of(visible, questions.get(visible.chunk.id, ())) for visible in page.items]
    return wrap_page(request, views, page.next_cursor)


@router.get("/chunks/{chunk_id}", response_model=Envelope[ChunkInDocument], summary="Get a chunk")
async def get_chunk(request: Request, services: Services, caller: Reader, chunk_id: str) -> dict[str, Any]:
    """Return a chunk of a visible version, with its neighbours, the parent around it, its entities and relationships.

    If the graph store does not respond, entities and relationships are left out, and `meta.warnings` says so.
    """
    chunk = await services.documents.get_chunk(caller, chunk_id)
    view = ChunkInDocument.at(chunk.visible, chunk.order, chunk.parent, chunk.questions, chunk.knowledge)
    return wrap_data(request, view, warnings=list(chunk.warnings))


@router.get(
    "/documents/{document_id}/content",
    summary="Get a document's original",
    response_class=Response,
    responses={200: {"content": _ORIGINAL, "description": "the original, with its uploaded media type"}},
)
async def get_content(services: Services, caller: Reader, document_id: str) -> Response:
    """Return the uploaded bytes as an attachment, of the visible version, or of the newest if none is visible."""
    original = await services.documents.read_original(caller, document_id)
    # Content-Type is set as a header, because the framework would add an unchecked charset for text.
    headers = {
        "Content-Type": content_type(original.media_type),
        "Content-Disposition": content_disposition(original.file_name),
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "ETag": f'"{original.revision}"',
    }
    return Response(original.content, headers=headers)
