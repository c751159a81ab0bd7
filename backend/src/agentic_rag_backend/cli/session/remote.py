"""Clients of a server, by a given address or by the address file in DATA_DIR."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx2

from agentic_rag_backend.cli.command import DEFAULT_TENANT
from agentic_rag_backend.cli.session.address import read_address, read_credentials
from agentic_rag_backend.cli.session.client import BASE_PATH, Client
from agentic_rag_backend.errors import InvalidRequest

if TYPE_CHECKING:
    from agentic_rag_backend.settings import Settings

_TIMEOUT = httpx2.Timeout(660.0, connect=5.0)
"""Above the maximum of REQUEST_TIMEOUT_S, so that the server's response to a slow request arrives."""
_PROBE_S = 30.0
"""The address file shows that the server's process is alive, so this is for a busy one. Others answer in milliseconds."""


@asynccontextmanager
async def open_remote(url: str, key: str | None, tenant: str | None) -> AsyncIterator[Client]:
    """Yield a client of the server at ``url``. ``tenant`` (name or id) requires the operator's key.

    Raises:
        InvalidRequest: the scheme of ``url`` is not http or https.
        NotFound: the tenant does not exist.
    """
    headers = {"X-API-Key": key} if key else {}
    origin = _parse_origin(url)
    async with httpx2.AsyncClient(base_url=origin, headers=headers, timeout=_TIMEOUT, verify=_choose_tls(origin)) as http:
        client = Client(http, where=origin, in_process=False)
        if tenant is not None:
            http.headers["X-Tenant-Id"] = await client.find_tenant_id(tenant)
        yield client


async def find_server(settings: Settings) -> str | None:
    """Return the address of the server that has DATA_DIR open, or None if no server runs."""
    address = read_address(settings.data_dir)
    if address is None:
        return None
    try:
        async with httpx2.AsyncClient(timeout=_PROBE_S, verify=_choose_tls(address.url)) as http:
            response = await http.get(f"{address.url}/health/live")
    except httpx2.HTTPError:
        return None
    return address.url if response.is_success else None


@asynccontextmanager
async def open_neighbour(url: str, settings: Settings, tenant: str | None, *, operator: bool = False) -> AsyncIterator[Client]:
    """Yield a client of the server that has DATA_DIR open, with the keys stored there or OPERATOR_KEY.

    With the operator's key, ``tenant`` has the same meaning as without a server. With ``operator``, the client acts for no
    tenant.
    """
    key = find_operator_key(settings)
    if key is not None:
        tenant = None if operator else tenant or DEFAULT_TENANT
    async with open_remote(url, key or find_tenant_key(settings), tenant) as client:
        yield client


def find_operator_key(settings: Settings) -> str | None:
    """Return OPERATOR_KEY, else the first of OPERATOR_KEYS or of its file, else the operator's key stored in DATA_DIR."""
    if operators := settings.operators:
        return next(iter(operators.values()))
    credentials = read_credentials(settings.data_dir)
    return credentials.operator_key if credentials is not None else None


def find_tenant_key(settings: Settings) -> str | None:
    """Return the default tenant's key stored in DATA_DIR."""
    credentials = read_credentials(settings.data_dir)
    return credentials.key if credentials is not None else None


def _choose_tls(url: str) -> ssl.SSLContext:
    """Return the TLS settings for ``url``. For http, they trust no certificate: to load them takes longer than most commands."""
    return httpx2.create_ssl_context() if httpx2.URL(url).scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _parse_origin(url: str) -> str:
    parsed = httpx2.URL(url)
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InvalidRequest(f"--url must be an address such as https://rag.example.org; got {url[:200]!r}")
    return str(parsed.copy_with(query=None, fragment=None)).rstrip("/").removesuffix(BASE_PATH)
