"""Submission of documents: text as JSON, or files as a multipart form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.datastructures import FormData, UploadFile

from agentic_rag_backend.api.dependencies import Services, Writer, container_of
from agentic_rag_backend.api.requests.bodies import (
    DOCUMENT_BYTES,
    MAX_FILES,
    json_field,
    media_type_of,
    read_form,
    read_json,
    reads,
    require_fields,
    require_json,
    text_field,
)
from agentic_rag_backend.api.requests.documents import IfMatch, tag
from agentic_rag_backend.api.requests.idempotency import IdempotentRoute
from agentic_rag_backend.api.responses.envelopes import Envelope, wrap_data
from agentic_rag_backend.api.responses.error_responses import log_error, request_id_of
from agentic_rag_backend.api.schemas.documents.documents import (
    NewDocument,
    SubmittedFiles,
    SubmittedView,
    chunking_of,
    questions_of,
    search_state,
)
from agentic_rag_backend.application import Application
from agentic_rag_backend.domain.document import ATTACHMENT_MODES, ProcessingOptions
from agentic_rag_backend.domain.tenant import Principal
from agentic_rag_backend.errors import AgenticRagError, InvalidRequest
from agentic_rag_backend.ingestion.accept.uploads import DEFAULT_ATTACHMENTS, Upload, attachment_mode
from agentic_rag_backend.knowledge.extraction.methods import METHODS
from agentic_rag_backend.stores.catalogue.base import Expected

router = APIRouter(tags=["documents"], route_class=IdempotentRoute)
_FORM_SLACK_BYTES = 1024 * 1024
"""Bytes for form fields and boundaries, in addition to the files."""
_FORM_FIELDS = frozenset({"file", "title", "key", "metadata", "chunking", "extraction", "questions", "attachments"})

_Submitted = Envelope[SubmittedView | SubmittedFiles]


def _body_limit(request: Request) -> int:
    if media_type_of(request) != "multipart/form-data":
        return DOCUMENT_BYTES
    return MAX_FILES * container_of(request).settings.max_upload_mb * 1024 * 1024 + _FORM_SLACK_BYTES


@router.post(
    "/documents",
    status_code=202,
    response_model=_Submitted,
    summary="Upload a document as JSON, or files as multipart",
    responses={200: {"model": _Submitted, "description": "unchanged: the document exists with this content"}, 412: {}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/NewDocument"}},
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "required": ["file"],
                        "examples": [{"file": ["minutes.md"], "metadata": '{"category": "minutes"}'}],
                        "properties": {
                            "file": {"type": "array", "items": {"type": "string", "format": "binary"}, "maxItems": MAX_FILES},
                            "title": {"type": "string"},
                            "key": {"type": "string"},
                            "metadata": {"type": "string", "description": "a JSON object"},
                            "chunking": {"type": "string", "description": "a JSON object"},
                            "extraction": {"type": "string", "enum": list(METHODS)},
                            "questions": {"type": "string", "description": "a JSON object: options of synthetic questions"},
                            "attachments": {
                                "type": "string",
                                "enum": list(ATTACHMENT_MODES),
                                "default": DEFAULT_ATTACHMENTS,
                                "description": "of a message: a document each, sections of its document, or not read",
                            },
                        },
                    }
                },
            },
        }
    },
)
@reads(_body_limit)
async def submit(request: Request, response: Response, services: Services, caller: Writer, expected: IfMatch) -> dict[str, Any]:
    """Queue one document (JSON) or several files (multipart), each with its own job.

    The same key with other content is a new version. With the same content, the response is 200 with `unchanged`.
    """
    if media_type_of(request) == "multipart/form-data":
        form = await read_form(request)
        try:
            files, common = _read_form(form, expected)
            if len(files) == 1:
                views = [await _submit_alone(services, caller, await _read_upload(common, files[0]), response)]
            else:
                views = []
                for file in files:
                    upload = await _read_upload(common, file)  # one file at a time is in memory
                    views.append(await _submit_one(services, caller, upload, request_id_of(request)))
        finally:
            await form.close()
        if all(view.unchanged for view in views):
            response.status_code = 200
        data: SubmittedView | SubmittedFiles = SubmittedFiles(documents=views)
        return wrap_data(request, data)
    require_json(request, instead="application/json or multipart/form-data")
    body = _validate_body(await read_json(request))
    upload = Upload(
        content=body.text.encode("utf-8", errors="surrogatepass"),
        media_type=body.media_type,
        file_name=None,
        title=body.title,
        key=body.key,
        metadata=body.metadata,
        options=body.processing(),
        extraction=body.extraction,
        questions=body.questions.options() if body.questions else None,
        expected=expected,
    )
    submitted = await services.documents.submit_document(caller, upload)
    if submitted.unchanged:
        response.status_code = 200
    tag(response, submitted.document)
    return wrap_data(request, SubmittedView.of(submitted), search=search_state(submitted))


def _validate_body(value: Any) -> NewDocument:
    try:
        return NewDocument.model_validate(value)
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False)) from None


def _read_form(form: FormData, expected: Expected) -> tuple[list[UploadFile], Upload]:
    """Return the files of a form, and an upload without content that has what the form says about each of them."""
    require_fields(form, _FORM_FIELDS)
    files = [item for item in form.getlist("file") if isinstance(item, UploadFile)]
    if not 1 <= len(files) <= MAX_FILES:
        raise InvalidRequest(f"send 1 to {MAX_FILES} parts named 'file'; got {len(files)}")
    title, key = text_field(form, "title"), text_field(form, "key")
    if len(files) > 1 and (title is not None or key is not None):
        raise InvalidRequest(f"title and key apply to one document; got {len(files)} files")
    if len(files) > 1 and expected is not None:
        raise InvalidRequest(f"If-Match applies to one document; got {len(files)} files")
    questions = questions_of(json_field(form, "questions"))
    return files, Upload(
        content=b"",
        title=title,
        key=key,
        metadata=_read_metadata(form),
        options=ProcessingOptions(chunking=chunking_of(json_field(form, "chunking")).options()),
        extraction=text_field(form, "extraction"),
        questions=questions.options() if questions else None,
        attachments=attachment_mode(text_field(form, "attachments")),
        expected=expected,
    )


async def _read_upload(common: Upload, file: UploadFile) -> Upload:
    """Return the upload of a file."""
    return replace(
        common,
        content=await file.read(),
        media_type=file.content_type,
        file_name=file.filename,
        key=common.key or file.filename,
    )


async def _submit_alone(services: Application, caller: Principal, upload: Upload, response: Response) -> SubmittedView:
    """Submit the only file of a request. An error is that of the request."""
    submitted = await services.documents.submit_document(caller, upload)
    tag(response, submitted.document)
    return SubmittedView.of(submitted, file=upload.file_name)


async def _submit_one(services: Application, caller: Principal, upload: Upload, request_id: str) -> SubmittedView:
    """Submit one of several files. An error is an item of the response, so that the caller sees what became of the others."""
    try:
        return SubmittedView.of(await services.documents.submit_document(caller, upload), file=upload.file_name)
    except AgenticRagError as error:
        problem = error
    except Exception as error:  # noqa: BLE001 - the boundary of one file, as the HTTP handler is that of a request
        problem = log_error(error, request_id=request_id)
    return SubmittedView(
        document_id=None, state="refused", file=upload.file_name, error={"code": problem.code, "detail": problem.message}
    )


def _read_metadata(form: FormData) -> dict[str, Any]:
    value = json_field(form, "metadata")
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidRequest(f"metadata must be a JSON object; got {type(value).__name__}")
    return value
