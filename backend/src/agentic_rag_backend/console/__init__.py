"""The console: pages that show a tenant's data in a browser. They call the HTTP API with the key that a person enters.

The files in `static` are served as they are. Nothing in them belongs to a tenant, so they need no key.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import Annotated

from fastapi import APIRouter, Header, Path
from fastapi.responses import Response

from agentic_rag_backend.errors import NotFound

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Scripts, styles and requests come from this server only, and no string becomes markup or a script."""
_PAGE = "index.html"
_MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",  # browsers ask whether a file has changed, so a new version is whole
}
IfNoneMatch = Annotated[str | None, Header(max_length=1024)]

router = APIRouter(include_in_schema=False)


@router.get("/console/")
async def show_page(if_none_match: IfNoneMatch = None) -> Response:
    """Return the page. What it shows is named after `#`, which browsers do not send."""
    return _respond(_PAGE, "text/html; charset=utf-8", if_none_match)


@router.get("/console/{name}")
async def show_file(name: Annotated[str, Path(max_length=64)], if_none_match: IfNoneMatch = None) -> Response:
    """Return a script, a style or a picture of the page."""
    media_type = _MEDIA_TYPES.get(name[name.rfind(".") :]) if name in read_files() else None
    if media_type is None:
        raise NotFound("there is no resource at this address")
    return _respond(name, media_type, if_none_match)


def _respond(name: str, media_type: str, if_none_match: str | None) -> Response:
    content, tag = read_files()[name]
    headers = {**_HEADERS, "ETag": tag}
    if if_none_match is not None and tag in if_none_match:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=media_type, headers=headers)


@cache
def read_files() -> dict[str, tuple[bytes, str]]:
    """Return the content and the entity tag of each file, by name."""
    contents = {file.name: file.read_bytes() for file in (files(__name__) / "static").iterdir() if file.is_file()}
    return {name: (content, f'"{hashlib.sha256(content).hexdigest()[:32]}"') for name, content in contents.items()}
