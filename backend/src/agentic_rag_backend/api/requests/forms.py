"""Multipart forms, parsed once per request. Files above a megabyte are on disk meanwhile."""

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
    """Return a request's form; repeated calls return the same form. The caller closes it.

    Raises:
        InvalidRequest: the form has too many parts, is malformed, or has an encoding other than UTF-8.
    """
    _require_utf8(request)
    try:
        # One more than the limit, so that our message can name the limit.
        return await request.form(max_files=MAX_FILES + 1, max_fields=MAX_FORM_FIELDS)
    except HTTPException as error:
        raise InvalidRequest(
            f"the form cannot be read (at most {MAX_FILES} files and {MAX_FORM_FIELDS} fields): {error.detail}"
        ) from None


def _require_utf8(request: Request) -> None:
    # The parser would decode with any codec that the header names. Punycode takes quadratic time.
    _, options = parse_options_header(request.headers.get("content-type"))
    charset = options.get(b"charset", b"utf-8").decode("latin-1")
    if charset.lower() not in _UTF8:
        raise InvalidRequest(f"the charset of a form must be utf-8 or absent; got {charset[:80]!r}")
