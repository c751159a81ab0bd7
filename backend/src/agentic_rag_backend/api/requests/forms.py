"""Multipart forms, read once for whoever looks at them; files above a megabyte are on disk meanwhile."""

from __future__ import annotations

from fastapi import Request
from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException

from agentic_rag_backend.errors import InvalidRequest

MAX_FILES = 50
MAX_FORM_FIELDS = 20
_UTF8 = frozenset({"utf-8", "utf8"})


async def read_form(request: Request) -> FormData:
    """Return a request's form, the same one however often; closing it is the caller's.

    Raises:
        InvalidRequest: it has too many parts, is no form, or names another encoding than UTF-8.
    """
    _require_utf8(request)
    try:
        # One more than is accepted, so that the refusal can name the limit.
        return await request.form(max_files=MAX_FILES + 1, max_fields=MAX_FORM_FIELDS)
    except HTTPException as error:
        raise InvalidRequest(
            f"the form cannot be read (at most {MAX_FILES} files and {MAX_FORM_FIELDS} fields): {error.detail}"
        ) from None


def _require_utf8(request: Request) -> None:
    # The parser would decode names and values by any codec that the header names: Punycode's takes quadratic time.
    _, options = parse_options_header(request.headers.get("content-type"))
    charset = options.get(b"charset", b"utf-8").decode("latin-1")
    if charset.lower() not in _UTF8:
        raise InvalidRequest(f"a form's charset must be utf-8, or left out; got {charset[:80]!r}")
