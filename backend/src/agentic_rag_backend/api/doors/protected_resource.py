"""What clients need to get a token for this server (RFC 9728), and the hint to it in responses to callers without a valid one."""

from __future__ import annotations

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.types import Scope

from agentic_rag_backend.api.dependencies import container_of
from agentic_rag_backend.api.doors.permalinks import Permalinks
from agentic_rag_backend.errors import NotFound
from agentic_rag_backend.settings_oidc import parse_scopes

METADATA_PATH = "/.well-known/oauth-protected-resource"
MCP_PATH = "/mcp"
_CLAIMS_OF_SCOPES = ("scope", "scp")
"""Claims whose values clients can ask the provider for. Those of others, such as roles, are granted by people."""

router = APIRouter(
    tags=["status"],
    responses={404: {"description": "the server accepts keys only", "content": {"application/problem+json": {}}}},
)


class ProtectedResource(BaseModel):
    """The server as a resource that tokens of a provider open. ``resource`` is the address that a token is asked for."""

    resource: str
    authorization_servers: list[str]
    scopes_supported: list[str] | None = Field(description="null: the provider decides by other claims than the scope")
    bearer_methods_supported: list[str]
    resource_name: str


@router.get(METADATA_PATH, response_model=ProtectedResource, summary="Which OpenID provider issues tokens for the API")
async def show_resource(request: Request) -> ProtectedResource:
    """Return the metadata of the API. 404 if the server accepts keys only (`OIDC_ISSUER` is unset)."""
    return _describe(request, "")


@router.get(
    f"{METADATA_PATH}{MCP_PATH}", response_model=ProtectedResource, summary="Which OpenID provider issues tokens for /mcp"
)
async def show_mcp_resource(request: Request) -> ProtectedResource:
    """Return the metadata of `/mcp`. 404 if the server accepts keys only (`OIDC_ISSUER` is unset)."""
    return _describe(request, MCP_PATH)


def _describe(request: Request, path: str) -> ProtectedResource:
    settings = container_of(request).settings
    if settings.oidc_issuer is None:
        raise NotFound("this server has no OpenID provider (OIDC_ISSUER): send a key")
    scopes = list(parse_scopes(settings.oidc_scopes)) if settings.oidc_scopes_claim in _CLAIMS_OF_SCOPES else None
    return ProtectedResource(
        resource=Permalinks.of(request).root + path,
        authorization_servers=[settings.oidc_issuer],
        scopes_supported=scopes,
        bearer_methods_supported=["header"],
        resource_name="agentic-rag-backend",
    )


def name_metadata(scope: Scope) -> str | None:
    """Return the parameter of ``WWW-Authenticate`` that names the metadata. None if the server accepts keys only."""
    request = Request(scope)
    if container_of(request).settings.oidc_issuer is None:
        return None
    path = MCP_PATH if scope["path"] == MCP_PATH else ""
    return f'resource_metadata="{Permalinks.of(request).root}{METADATA_PATH}{path}"'
