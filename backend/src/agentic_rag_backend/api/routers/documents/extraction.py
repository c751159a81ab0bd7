"""Extraction of documents that are already stored."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from agentic_rag_backend.api.dependencies import Services, Writer
from agentic_rag_backend.api.requests.documents import IfMatch, tag
from agentic_rag_backend.api.requests.idempotency import IdempotentRoute
from agentic_rag_backend.api.responses.envelopes import Envelope, wrap_data
from agentic_rag_backend.api.schemas.documents.documents import SubmittedView
from agentic_rag_backend.api.schemas.documents.previews import ChunkExtractionBody, ChunkExtractionView, ExtractionBody

router = APIRouter(tags=["documents"], route_class=IdempotentRoute)


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
