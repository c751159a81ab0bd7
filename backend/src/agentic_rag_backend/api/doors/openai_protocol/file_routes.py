"""Files of OpenAI's protocol: upload, list, read and delete documents."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from pathlib import PurePath
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.datastructures import FormData, UploadFile

from agentic_rag_backend.api.dependencies import Reader, Services, Writer, container_of
from agentic_rag_backend.api.doors.openai_protocol.file_objects import DeletedFile, FileObject, name_file
from agentic_rag_backend.api.doors.openai_protocol.object_pages import ObjectPage, Position
from agentic_rag_backend.api.doors.openai_protocol.reply_schemas import ERRORS
from agentic_rag_backend.api.doors.openai_protocol.route import OPENAI_PATH, OpenAIRoute
from agentic_rag_backend.api.requests.bodies import media_type_of, read_form, reads, text_field
from agentic_rag_backend.api.responses.attachments import respond_with_original
from agentic_rag_backend.domain.document import content_hash
from agentic_rag_backend.errors import InvalidRequest, UnsupportedMediaType
from agentic_rag_backend.ingestion.accept.uploads import Upload

router = APIRouter(prefix=OPENAI_PATH, tags=["openai"], route_class=OpenAIRoute, responses=ERRORS)
PURPOSES = ("assistants", "user_data")
"""Purposes that mean retrieval. Files have the first."""
MAX_FILE_NAME_CHARACTERS = 255
_FORM_BYTES = 1024 * 1024
"""Bytes for form fields and boundaries, in addition to the file."""
_HASH_DIGITS = 16
_FORM_SCHEMA = {
    "type": "object",
    "required": ["file", "purpose"],
    "examples": [{"file": "minutes.md", "purpose": "assistants"}],
    "properties": {
        "file": {"type": "string", "format": "binary"},
        "purpose": {"type": "string", "enum": list(PURPOSES)},
    },
}
_BYTES = {"*/*": {"schema": {"type": "string", "format": "binary"}}}


@router.post(
    "/files",
    summary="Upload a file",
    openapi_extra={"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": _FORM_SCHEMA}}}},
)
@reads(lambda request: container_of(request).settings.max_upload_mb * 1024 * 1024 + _FORM_BYTES)
async def upload_file(request: Request, services: Services, caller: Writer) -> FileObject:
    """Add a document. A file with the name and the content of an earlier one is that file."""
    if media_type_of(request) != "multipart/form-data":
        raise UnsupportedMediaType(f"send multipart/form-data; got {media_type_of(request)[:80] or 'no Content-Type'}")
    form = await read_form(request)
    try:
        upload = await _read_upload(form)
    finally:
        await form.close()
    return FileObject.of((await services.documents.submit_document(caller, upload)).document)


async def _read_upload(form: FormData) -> Upload:
    files = [item for item in form.getlist("file") if isinstance(item, UploadFile)]
    if len(files) != 1:
        raise InvalidRequest(f"send one file in the form field 'file'; got {len(files)}", field="file")
    purpose = text_field(form, "purpose")
    if purpose not in PURPOSES:
        raise InvalidRequest(f"purpose must be one of {', '.join(PURPOSES)}; got {(purpose or 'none')[:80]!r}", field="purpose")
    if any(name.startswith("expires_after") for name in form):
        raise InvalidRequest("files do not expire; delete them instead of sending 'expires_after'", field="expires_after")
    name = PurePath((files[0].filename or "").replace("\\", "/")).name
    if len(name) > MAX_FILE_NAME_CHARACTERS:
        raise InvalidRequest(f"a file name may have at most {MAX_FILE_NAME_CHARACTERS} characters; got {len(name)}", field="file")
    content = await files[0].read()
    digest = await asyncio.to_thread(content_hash, content)
    # Equal names with other contents are other files, so the key has both.
    return Upload(
        content=content,
        media_type=files[0].content_type,
        file_name=name or None,
        key=f"files/{digest[:_HASH_DIGITS]}/{name}" if name else None,
    )


@router.get("/files", summary="List files")
async def list_files(
    services: Services,
    caller: Reader,
    position: Position,
    purpose: Annotated[str | None, Query(max_length=40, description="other purposes than `assistants` have no files")] = None,
) -> ObjectPage[FileObject]:
    """List all documents of the tenant as files."""
    if purpose is not None and purpose not in PURPOSES:
        return ObjectPage[FileObject](data=[], has_more=False)
    with nullcontext() if position.after is None else name_file(position.after) as after:
        page = await services.documents.list_documents(
            caller, limit=position.limit, after=after, oldest_first=position.oldest_first
        )
    files = [FileObject.of(document) for document in page.items]
    return ObjectPage[FileObject].of(files, has_more=page.next_cursor is not None)


@router.get("/files/{file_id}", summary="Get a file")
async def get_file(services: Services, caller: Reader, file_id: str) -> FileObject:
    """Return a file. Its status follows the job of the document."""
    with name_file(file_id) as document_id:
        document, _ = await services.documents.get_document(caller, document_id)
    return FileObject.of(document)


@router.get(
    "/files/{file_id}/content", summary="Get a file's bytes", response_class=Response, responses={200: {"content": _BYTES}}
)
async def get_file_content(services: Services, caller: Reader, file_id: str) -> Response:
    """Return the uploaded bytes as an attachment. 404 if the original was not kept (KEEP_ORIGINALS)."""
    with name_file(file_id) as document_id:
        await services.documents.get_document(caller, document_id)
    return respond_with_original(await services.documents.read_original(caller, document_id))


@router.delete("/files/{file_id}", summary="Delete a file")
async def delete_file(services: Services, caller: Writer, file_id: str) -> DeletedFile:
    """Hide the document at once, and queue its removal from all stores."""
    with name_file(file_id) as document_id:
        await services.documents.delete_document(caller, document_id)
    return DeletedFile(id=file_id)
