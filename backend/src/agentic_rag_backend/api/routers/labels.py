"""Labels of texts."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from agentic_rag_backend.api.dependencies import Reader, Services
from agentic_rag_backend.api.requests.bodies import QUERY_BYTES, JsonRoute, reads
from agentic_rag_backend.api.responses.envelopes import Envelope, wrap_data
from agentic_rag_backend.api.schemas.labels import LabelBody, LabelView
from agentic_rag_backend.api.schemas.questions.questions import QUESTION_BYTES

router = APIRouter(tags=["labels"], route_class=JsonRoute)


@router.post(
    "/label", response_model=Envelope[LabelView], summary="Label a text by the labelled documents that are nearest to it"
)
@reads(lambda _: QUERY_BYTES + QUESTION_BYTES)
async def label_text(request: Request, services: Services, caller: Reader, body: LabelBody) -> dict[str, Any]:
    """Return the label that the nearest documents with the metadata `label` have, or that a language model chooses from theirs.

    The text is not kept.
    """
    labelling = await services.labels.label_text(caller, body)
    return wrap_data(request, LabelView.of(labelling), warnings=list(labelling.warnings))
