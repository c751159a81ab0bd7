"""Multipart forms, parsed once per request. Files above a megabyte are on disk meanwhile."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from fastapi import Request
from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException

from agentic_rag_backend.api.requests.json_body import load_json
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


def require_fields(form: FormData, allowed: Collection[str]) -> None:
    """Refuse a form with unknown fields.

    Raises:
        InvalidRequest: the message names the first unknown field, and those that are known.
    """
    unknown = sorted(set(form.keys()) - set(allowed))
    if unknown:
        raise InvalidRequest(f"unknown form field {unknown[0][:80]!r}; known are {', '.join(sorted(allowed))}")


def text_field(form: FormData, name: str) -> str | None:
    """Return the text of a field. None if it is absent or empty.

    Raises:
        InvalidRequest: it occurs twice, or is a file.
    """
    values = form.getlist(name)
    if len(values) > 1 or any(not isinstance(value, str) for value in values):
        raise InvalidRequest(f"send the form field {name!r} at most once, as text")
    return str(values[0]) if values and values[0] else None


def json_field(form: FormData, name: str) -> Any:
    """Return the value of a field whose text is JSON. None if it is absent or empty.

    Raises:
        InvalidRequest: it is not JSON.
    """
    text = text_field(form, name)
    return None if text is None else load_json(text, what=f"the form field {name!r}")
