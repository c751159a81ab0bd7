"""Pages of documents: text with boxes, and pictures."""

from __future__ import annotations

import math
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from agentic_rag_backend.api.dependencies import Reader, Services
from agentic_rag_backend.api.requests.idempotency import IdempotentRoute
from agentic_rag_backend.api.responses.envelopes import Envelope, wrap_data
from agentic_rag_backend.api.schemas.documents.places import PageView
from agentic_rag_backend.domain.location import Box
from agentic_rag_backend.errors import InvalidRequest

router = APIRouter(tags=["documents"], route_class=IdempotentRoute)

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
