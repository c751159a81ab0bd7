"""The page behind permalinks: it asks for a key, and shows a passage in its document."""

from __future__ import annotations

from importlib.resources import files
from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import Response

from agentic_rag_backend.errors import NotFound

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_FILES = {"page.js": "text/javascript", "page.css": "text/css"}

# Nothing here belongs to a tenant. The page reads documents through the API, with the key that a person enters.
router = APIRouter(include_in_schema=False)


@router.get("/console/")
async def show_page() -> Response:
    """Return the page. What it shows is named after `#`, which browsers do not send."""
    headers = {"Content-Security-Policy": _POLICY, "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}
    return Response(_read("page.html"), media_type="text/html", headers=headers)


@router.get("/console/{name}")
async def show_file(name: Annotated[str, Path(max_length=64)]) -> Response:
    """Return a file of the page."""
    if name not in _FILES:
        raise NotFound("there is no resource at this address")
    return Response(_read(name), media_type=_FILES[name], headers={"X-Content-Type-Options": "nosniff"})


def _read(name: str) -> bytes:
    return (files(__package__ or "") / name).read_bytes()
