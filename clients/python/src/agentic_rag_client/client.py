"""The clients."""

from __future__ import annotations

from dataclasses import replace
from types import TracebackType
from typing import Self, TypedDict, Unpack
from urllib.parse import urlsplit

import httpx2

from agentic_rag_client.blocking import run_to_end
from agentic_rag_client.methods import Asynchronous, Blocking
from agentic_rag_client.operations import Operations
from agentic_rag_client.session import Options, Session
from agentic_rag_client.transport import AsyncTransport, BlockingTransport

_BASE_PATH = "/api/v1"
_LIMITS = httpx2.Limits(max_connections=100, max_keepalive_connections=20)


class Changes(TypedDict, total=False):
    """Options that `with_options` changes."""

    tenant: str | None
    timeout_s: float
    max_retries: int


class Client(Operations[Blocking]):
    """Client of a server. Calls block. It may be shared by threads.

    Args:
        base_url: address of the server, such as ``https://rag.example.org``.
        api_key: of a tenant, or of the operator.
        tenant: name or id of the tenant that the operator acts for.
        timeout_s: seconds until the next part of a response must arrive. The default is above the server's REQUEST_TIMEOUT_S.
        max_retries: repetitions of a request that the server refused for the moment, or whose connection broke. Requests with
            an effect are repeated only with an Idempotency-Key.
        http: client to use instead of a new one, for proxies, certificates or tests. It is not closed.

    Raises:
        ValueError: the address is not of http or https.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        tenant: str | None = None,
        timeout_s: float = 90.0,
        max_retries: int = 3,
        http: httpx2.Client | None = None,
    ) -> None:
        options = Options(parse_origin(base_url), api_key, tenant, timeout_s, max_retries)
        self._owned = http is None
        super().__init__(Session(BlockingTransport(http or httpx2.Client(limits=_LIMITS)), options))

    def with_options(self, **changes: Unpack[Changes]) -> Client:
        """Return a client with other options on the same connections. Closing it changes nothing."""
        changed = Client.__new__(Client)
        changed._session, changed._owned = _change_options(self._session, changes), False
        return changed

    def close(self) -> None:
        """Close the connections."""
        if self._owned:
            run_to_end(self._session.transport.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class AsyncClient(Operations[Asynchronous]):
    """Client of a server. Calls are coroutines. See `Client` for the arguments."""

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        tenant: str | None = None,
        timeout_s: float = 90.0,
        max_retries: int = 3,
        http: httpx2.AsyncClient | None = None,
    ) -> None:
        options = Options(parse_origin(base_url), api_key, tenant, timeout_s, max_retries)
        self._owned = http is None
        super().__init__(Session(AsyncTransport(http or httpx2.AsyncClient(limits=_LIMITS)), options))

    def with_options(self, **changes: Unpack[Changes]) -> AsyncClient:
        """Return a client with other options on the same connections. Closing it changes nothing."""
        changed = AsyncClient.__new__(AsyncClient)
        changed._session, changed._owned = _change_options(self._session, changes), False
        return changed

    async def close(self) -> None:
        """Close the connections."""
        if self._owned:
            await self._session.transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()


def parse_origin(base_url: str) -> str:
    """Return the address of a server without the base path of its API.

    Raises:
        ValueError: the address is not of http or https.
    """
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"base_url must be an address such as https://rag.example.org; got {base_url[:200]!r}")
    return base_url.rstrip("/").removesuffix(_BASE_PATH)


def _change_options(session: Session, changes: Changes) -> Session:
    return Session(session.transport, replace(session.options, **changes))
