"""The documentation page of the API. This server serves all its files, so it works without the internet."""

from __future__ import annotations

from importlib.resources import files
from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from agentic_rag_backend.errors import NotFound

_ASSETS = {"swagger-ui-bundle.js": "text/javascript", "swagger-ui.css": "text/css", "favicon.png": "image/png"}
"""Files of Swagger UI, from the package `fastapi-offline`."""
_START = "start.js"
# Swagger UI sets style attributes and has its icons as data URLs.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# Addresses are relative, so the page works below a proxy's prefix. Nothing is sent to Swagger's validator.
_PAGE = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>agentic-rag-backend</title>
<link rel="icon" href="docs/favicon.png">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/{_START}"></script>
</body>
</html>
"""
_SCRIPT = """SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  validatorUrl: null,
  presets: [SwaggerUIBundle.presets.apis, SwaggerUIBundle.SwaggerUIStandalonePreset],
});
"""


def docs_router(base_path: str) -> APIRouter:
    """Return the routes of the page below ``base_path``, of its files, and of ``/``, which redirects to the page."""
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    async def root(request: Request) -> Response:
        return RedirectResponse(f"{request.scope.get('root_path', '')}{base_path}/docs", status_code=307)

    @router.get(f"{base_path}/docs")
    async def page() -> Response:
        return HTMLResponse(_PAGE, headers={"Content-Security-Policy": _POLICY})

    @router.get(f"{base_path}/docs/{{name}}")
    async def asset(name: Annotated[str, Path(max_length=64)]) -> Response:
        headers = {"Cache-Control": "public, max-age=3600"}
        if name == _START:
            return Response(_SCRIPT, media_type="text/javascript", headers=headers)
        if name not in _ASSETS:
            raise NotFound("there is no resource at this address")
        content = (files("fastapi_offline") / "static" / name).read_bytes()
        return Response(content, media_type=_ASSETS[name], headers=headers)

    return router
