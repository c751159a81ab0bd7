"""Previews of chunking."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.datastructures import FormData, UploadFile

from agentic_rag_backend.api.dependencies import Services, Writer
from agentic_rag_backend.api.requests.bodies import (
    DOCUMENT_BYTES,
    GuardedRoute,
    json_field,
    media_type_of,
    read_form,
    read_json,
    reads,
    require_fields,
    require_json,
    text_field,
    works_on_full_disk,
)
from agentic_rag_backend.api.responses.envelopes import Envelope, wrap_data
from agentic_rag_backend.api.schemas.documents.documents import chunking_of
from agentic_rag_backend.api.schemas.documents.previews import MAX_PREVIEWED_CHUNKS, PreviewBody, PreviewView
from agentic_rag_backend.application import Application
from agentic_rag_backend.domain.tenant import Principal
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.ingestion.prepare.previewing import MAX_PREVIEW_BYTES

router = APIRouter(tags=["documents"], route_class=GuardedRoute)
_FORM_FIELDS = frozenset({"file", "media_type", "chunking", "extraction", "limit"})


@router.post(
    "/chunking/preview",
    response_model=Envelope[PreviewView],
    summary="Preview the chunks of a document",
    responses={404: {"description": "no such document"}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/PreviewBody"}},
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "required": ["file"],
                        "examples": [{"file": "minutes.md", "chunking": '{"strategy": "structure"}'}],
                        "properties": {
                            "file": {"type": "string", "format": "binary"},
                            "media_type": {"type": "string", "maxLength": 200},
                            "chunking": {"type": "string", "description": "a JSON object"},
                            "extraction": {"type": "string", "description": "method of extraction for `ingestion`"},
                            "limit": {"type": "integer", "minimum": 1, "maximum": MAX_PREVIEWED_CHUNKS},
                        },
                    }
                },
            },
        }
    },
)
@reads(lambda _: DOCUMENT_BYTES)
@works_on_full_disk
async def preview(request: Request, services: Services, caller: Writer) -> dict[str, Any]:
    """Parse and chunk a document of at most 2 MiB, and return its chunks. Nothing is stored."""
    if media_type_of(request) == "multipart/form-data":
        form = await read_form(request)
        try:
            return wrap_data(request, await _preview_file(services, caller, form))
        finally:
            await form.close()
    require_json(request, instead="application/json or multipart/form-data")
    body = _validate_body(await read_json(request))
    options = (body.chunking or chunking_of(None)).options()
    if body.document_id is not None:
        result = await services.documents.preview_document(caller, body.document_id, options, method=body.extraction)
    else:
        content = (body.text or "").encode("utf-8", errors="surrogatepass")
        result = await services.documents.preview_content(
            caller, content, options, media_type=body.media_type, method=body.extraction
        )
    return wrap_data(request, PreviewView.of(result, limit=body.limit))


async def _preview_file(services: Application, caller: Principal, form: FormData) -> PreviewView:
    require_fields(form, _FORM_FIELDS)
    files = [item for item in form.getlist("file") if isinstance(item, UploadFile)]
    if len(files) != 1:
        raise InvalidRequest(f"send one part named 'file'; got {len(files)}")
    file, options, limit = files[0], chunking_of(json_field(form, "chunking")).options(), _read_limit(form)
    declared = text_field(form, "media_type") or file.content_type
    content = await file.read(MAX_PREVIEW_BYTES + 1)
    result = await services.documents.preview_content(
        caller, content, options, media_type=declared, file_name=file.filename, method=text_field(form, "extraction")
    )
    return PreviewView.of(result, limit=limit)


def _read_limit(form: FormData) -> int:
    text = text_field(form, "limit") or "100"
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= MAX_PREVIEWED_CHUNKS):
        raise InvalidRequest(f"limit must be 1 to {MAX_PREVIEWED_CHUNKS}; got {text[:80]!r}")
    return int(text)


def _validate_body(value: Any) -> PreviewBody:
    try:
        return PreviewBody.model_validate(value)
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False)) from None
