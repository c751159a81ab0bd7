"""Responses that a browser saves as a file, under a name that is safe on every system."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import quote

from fastapi import Response

from agentic_rag_backend.ingestion.accept.originals import Original

MAX_NAME_CHARACTERS = 120
_RESERVED = frozenset('/\\:*?"<>|%;')
_FALLBACK = "document"
UNKNOWN_TYPE = "application/octet-stream"
_MEDIA_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+\Z")
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,12}\Z")


def respond_with_original(original: Original) -> Response:
    """Return the bytes of a document as an attachment with their uploaded media type."""
    # Content-Type is set as a header, because the framework would add an unchecked charset for text.
    headers = {
        "Content-Type": content_type(original.media_type),
        "Content-Disposition": content_disposition(original.file_name),
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "ETag": f'"{original.revision}"',
    }
    return Response(original.content, headers=headers)


def content_type(media_type: str) -> str:
    """Return the value of ``Content-Type`` for stored bytes.

    It is the recorded type if that is a valid media type (RFC 9110), otherwise ``application/octet-stream``.
    """
    return media_type if len(media_type) <= MAX_NAME_CHARACTERS and _MEDIA_TYPE.match(media_type) else UNKNOWN_TYPE


def content_disposition(file_name: str) -> str:
    """Return the value of ``Content-Disposition`` (RFC 6266) that saves under ``file_name``.

    Path separators, control and direction characters and characters that file systems reserve become ``_``. The name is
    given in ASCII and, if it has other characters, in UTF-8 as well (RFC 5987).
    """
    stem, suffix = _parts(file_name)
    ascii_stem = _trim_name(unicodedata.normalize("NFKD", stem).encode("ascii", "ignore").decode())
    name, ascii_name = (f"{part or _FALLBACK}{suffix}" for part in (stem, ascii_stem))
    value = f'attachment; filename="{ascii_name}"'
    return value if ascii_name == name else f"{value}; filename*=UTF-8''{quote(name, safe='')}"


def _parts(file_name: str) -> tuple[str, str]:
    """Return a safe name without its suffix, and the suffix."""
    cleaned = "".join(" " if char.isspace() else "_" if _unsafe(char) else char for char in file_name)
    suffix_match = _SUFFIX.search(cleaned)
    suffix = suffix_match[0] if suffix_match else ""
    return _trim_name(cleaned.removesuffix(suffix))[: MAX_NAME_CHARACTERS - len(suffix)], suffix


def _trim_name(stem: str) -> str:
    return " ".join(stem.split()).strip(". ")


def _unsafe(char: str) -> bool:
    return char in _RESERVED or unicodedata.category(char)[0] == "C"
