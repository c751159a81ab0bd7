"""Multipart forms, read once for whoever looks at them; files above a megabyte are on disk meanwhile."""

from __future__ import annotations

from fastapi import Request
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException

from agentic_rag_backend.errors import InvalidRequest

MAX_FILES = 50
MAX_FORM_FIELDS = 20


async def read_form(request: Request) -> FormData:
    """Return a request's form, the same one however often; closing it is the caller's.

    Raises:
        InvalidRequest: it has too many parts, or is no form.
    """
    try:
        # One more than is accepted, so that the refusal can name the limit.
        return await request.form(max_files=MAX_FILES + 1, max_fields=MAX_FORM_FIELDS)
    except HTTPException as error:
        raise InvalidRequest(
            f"the form cannot be read (at most {MAX_FILES} files and {MAX_FORM_FIELDS} fields): {error.detail}"
        ) from None
