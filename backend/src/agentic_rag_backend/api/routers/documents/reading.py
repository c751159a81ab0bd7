"""Reading of documents, their pages, chunks and originals, and extraction of stored documents."""

from __future__ import annotations

import math
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from agentic_rag_backend.api.dependencies import Reader, Services, Writer
from agentic_rag_backend.api.requests.documents import METADATA_PARAMETER, IfMatch, MatchingQuery, tag
from agentic_rag_backend.api.requests.idempotency import IdempotentRoute
from agentic_rag_backend.api.responses.attachments import respond_with_original
from agentic_rag_backend.api.responses.envelopes import Cursor, Envelope, Limit, ListEnvelope, wrap_data, wrap_page
from agentic_rag_backend.api.schemas.documents.documents import (
    ChunkInDocument,
    ChunkView,
    DocumentDetail,
    DocumentView,
    SubmittedView,
)
from agentic_rag_backend.api.schemas.documents.places import PageView
from agentic_rag_backend.api.schemas.documents.previews import ChunkExtractionBody, ChunkExtractionView, ExtractionBody
from agentic_rag_backend.domain.location import Box
from agentic_rag_backend.errors import InvalidRequest

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
    return respond_with_original(await services.documents.read_original(caller, document_id))


MAX_BOXES = 100

PageNumber = Annotated[int, Path(ge=1, le=1_000_000, description="page, slide or chapter, from 1")]
Scale = Annotated[float, Query(ge=0.1, le=10, allow_inf_nan=False, description="pixels a point; 1 gives 72 dots per inch")]
Highlight = Annotated[
    list[str] | None,
    Query(max_length=MAX_BOXES, description="box to mark, as in `bbox`: `left,bottom,right,top`; can be repeated"),
]
_PNG = {"image/png": {"schema": {"type": "string", "format": "binary"}}}


@router.get("/documents/{document_id}/pages/{page}", response_model=Envelope[PageView], summary="Get a page's text with boxes")
async def get_page(request: Request, services: Services, caller: Reader, document_id: str, page: PageNumber) -> dict[str, Any]:
    """Return a page of the visible version, with the place of each line. 404 if the format has no pages."""
    result = await services.documents.read_page(caller, document_id, page)
    return wrap_data(request, PageView.of(document_id, result))


@router.get(
    "/documents/{document_id}/pages/{page}/image",
    summary="Get a picture of a page",
    response_class=Response,
    responses={
        200: {"content": _PNG, "description": "the page as PNG"},
        415: {"description": "pages of this format have no picture"},
    },
)
async def get_page_image(
    services: Services,
    caller: Reader,
    document_id: str,
    page: PageNumber,
    scale: Scale = 2.0,
    highlight: Highlight = None,
) -> Response:
    """Draw a page of a PDF file, with the boxes of a citation marked. 404 if the original was not kept."""
    boxes = [_box(text) for text in highlight or ()]
    content = await services.documents.draw_page(caller, document_id, page, scale=scale, boxes=boxes)
    return Response(content, media_type="image/png")


def _box(text: str) -> Box:
    try:
        left, bottom, right, top = map(float, text.split(","))
    except ValueError:
        raise InvalidRequest(f"highlight: give left,bottom,right,top as four numbers; got {text[:100]!r}") from None
    if not all(map(math.isfinite, (left, bottom, right, top))) or max(map(abs, (left, bottom, right, top))) > 1e6:
        raise InvalidRequest(f"highlight: numbers must be between -1000000 and 1000000; got {text[:100]!r}")
    return left, bottom, right, top


@router.post(
    "/documents/{document_id}/extract",
    status_code=202,
    response_model=Envelope[SubmittedView],
    summary="Extract a document's knowledge again",
    responses={412: {}},
)
async def extract_document(
    request: Request,
    response: Response,
    services: Services,
    caller: Writer,
    document_id: str,
    body: ExtractionBody,
    expected: IfMatch,
) -> dict[str, Any]:
    """Queue a version of the same content and metadata, whose entities and relationships are extracted again.

    The version follows the current ontology. Its method stays the document's method. Results on record are reused: neither
    vectors nor replies of a language model are computed twice. The old knowledge stays until the version is ready.
    """
    submitted = await services.documents.extract_again(caller, document_id, body.extraction, expected=expected)
    tag(response, submitted.document)
    return wrap_data(request, SubmittedView.of(submitted))


@router.post(
    "/chunks/{chunk_id}/extract",
    status_code=202,
    response_model=Envelope[SubmittedView | ChunkExtractionView],
    summary="Extract a chunk's entities and relationships",
    responses={200: {"model": Envelope[ChunkExtractionView], "description": "with `dry_run`: the knowledge of the chunk"}},
)
async def extract_chunk(
    request: Request, response: Response, services: Services, caller: Writer, chunk_id: str, body: ChunkExtractionBody
) -> dict[str, Any]:
    """Queue a version of the chunk's document, as `POST /documents/{document_id}/extract` does.

    With `dry_run`, extract from this chunk alone and return what was found. Nothing is written to the graph. A reply of a
    language model is recorded, so that it is not paid again.
    """
    if body.dry_run:
        response.status_code = 200
        return wrap_data(
            request, ChunkExtractionView.of(await services.documents.try_extraction(caller, chunk_id, body.extraction))
        )
    submitted = await services.documents.extract_document_of(caller, chunk_id, body.extraction)
    tag(response, submitted.document)
    return wrap_data(request, SubmittedView.of(submitted))
