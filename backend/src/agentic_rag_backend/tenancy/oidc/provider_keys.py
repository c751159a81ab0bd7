"""Keys of the OpenID provider, fetched when a token needs them and kept for a bounded time.

A request waits for a fetch only if there are no keys that it may use. A provider that does not respond, or responds with
something else, therefore makes tokens fail after `max_age_s` at the latest. It never lets a token pass.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx2
import jwt
import orjson

from agentic_rag_backend.domain.identity_provider import check_provider_address
from agentic_rag_backend.errors import IdentityProviderUnavailable
from agentic_rag_backend.telemetry.logs import get_logger
from agentic_rag_backend.tenancy.oidc.key_set import KeySet

_log = get_logger(__name__)
DISCOVERY_PATH = "/.well-known/openid-configuration"
MAX_DOCUMENT_BYTES = 256 * 1024
FETCH_TIMEOUT_S = 5.0
"""Seconds for both documents of the provider."""
REFRESHED_AFTER_S = 300.0
"""Age in seconds at which the keys in use are fetched again. Meanwhile, they are used."""
FAILURE_PAUSE_S = 5.0
"""Seconds after a failure in which the provider is not asked again."""
UNKNOWN_KEY_PAUSE_S = 60.0
"""Seconds between two fetches that tokens with unknown key ids cause. Anybody can make up ids."""


@dataclass(frozen=True, slots=True)
class _FetchedKeys:
    """Keys, and the monotonic time at which they were fetched."""

    keys: KeySet
    fetched_at: float


class ProviderKeys:
    """The keys of one provider.

    Args:
        issuer: address of the provider. Its documents are read from there only, without redirects.
        local: whether the provider is on this machine. Its keys may be there as well, without TLS.
        max_age_s: seconds for which keys are used while the provider does not respond.
        create_client: makes the HTTP client, in a thread: reading certificates takes long.
    """

    def __init__(
        self,
        issuer: str,
        *,
        local: bool,
        max_age_s: float,
        create_client: Callable[[], httpx2.AsyncClient] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._issuer = issuer
        self._local = local
        self._max_age_s = max_age_s
        self._create_client = create_client or _create_client
        self._clock = clock
        self._client: httpx2.AsyncClient | None = None
        self._fetched: _FetchedKeys | None = None
        self._fetching: asyncio.Task[_FetchedKeys] | None = None
        self._failed_at = self._asked_for_unknown_at = float("-inf")

    async def find_key(self, key_id: str | None, algorithm: str) -> jwt.PyJWK | None:
        """Return the provider's key with an id that fits an algorithm. None: it has none.

        Raises:
            IdentityProviderUnavailable: the provider's keys are not known, or the id is new and the provider does not respond.
        """
        before = self._fetched
        current = await self._current_keys()
        key = current.keys.find_key(key_id, algorithm)
        # Keys that this request has waited for are new enough.
        if key is None and current is before and self._may_ask_for_unknown():
            key = (await self._fetch_keys()).keys.find_key(key_id, algorithm)
        return key

    async def close(self) -> None:
        """Release connections."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait([self._fetching])
        if self._client is not None:
            await self._client.aclose()

    async def _current_keys(self) -> _FetchedKeys:
        fetched = self._fetched
        age_s = float("inf") if fetched is None else self._clock() - fetched.fetched_at
        if fetched is None or age_s >= self._max_age_s:
            return await self._fetch_keys()
        if age_s >= REFRESHED_AFTER_S and not self._in_pause():
            self._begin_fetch()
        return fetched

    def _may_ask_for_unknown(self) -> bool:
        """Return whether an unknown key id may wait for a fetch: for one that runs, or for one of its own after a pause."""
        if self._fetching is not None:
            return True
        if self._clock() - self._asked_for_unknown_at < UNKNOWN_KEY_PAUSE_S:
            return False
        self._asked_for_unknown_at = self._clock()
        return True

    def _in_pause(self) -> bool:
        return self._clock() - self._failed_at < FAILURE_PAUSE_S

    async def _fetch_keys(self) -> _FetchedKeys:
        """Return the provider's keys of now. All requests wait for the same fetch, which none of them cancels."""
        if self._fetching is None and self._in_pause():
            raise self._unavailable()
        return await asyncio.shield(self._begin_fetch())

    def _begin_fetch(self) -> asyncio.Task[_FetchedKeys]:
        if self._fetching is None:
            self._fetching = asyncio.create_task(self._fetch(), name="provider-keys")
            self._fetching.add_done_callback(self._end_fetch)
        return self._fetching

    def _end_fetch(self, task: asyncio.Task[_FetchedKeys]) -> None:
        self._fetching = None
        if not task.cancelled():
            task.exception()  # read, so that a failure that nobody waited for is not reported as forgotten

    async def _fetch(self) -> _FetchedKeys:
        try:
            async with asyncio.timeout(FETCH_TIMEOUT_S):
                keys = await self._read_keys()
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, OSError, ValueError) as error:
            self._failed_at = self._clock()
            reason = str(error) or type(error).__name__
            _log.warning("provider_keys_not_fetched", issuer=self._issuer, reason=reason[:300])
            raise self._unavailable() from error
        self._fetched = _FetchedKeys(keys, self._clock())
        _log.debug("provider_keys_fetched", issuer=self._issuer, keys=len(keys))
        return self._fetched

    def _unavailable(self) -> IdentityProviderUnavailable:
        left_s = self._failed_at + FAILURE_PAUSE_S - self._clock()
        return IdentityProviderUnavailable(
            "the OpenID provider (OIDC_ISSUER) does not respond with its keys, so tokens cannot be checked; keys of tenants work",
            retry_after_s=max(1.0, left_s),
        )

    async def _read_keys(self) -> KeySet:
        metadata = await self._read_document(self._issuer.rstrip("/") + DISCOVERY_PATH)
        issuer, address = (metadata.get(name) if isinstance(metadata, dict) else None for name in ("issuer", "jwks_uri"))
        if issuer != self._issuer:
            raise ValueError(f"the provider's issuer is {str(issuer)[:200]!r}")
        if not isinstance(address, str):
            raise ValueError("the provider names no jwks_uri")
        try:
            check_provider_address(address, local=self._local)
            return KeySet(await self._read_document(address))
        except ValueError as error:
            raise ValueError(f"jwks_uri {address[:200]!r}: {error}") from error

    async def _read_document(self, address: str) -> Any:
        if self._client is None:
            self._client = await asyncio.to_thread(self._create_client)
        content = bytearray()
        async with self._client.stream(
            "GET", address, headers={"Accept": "application/json", "Accept-Encoding": "identity"}
        ) as reply:
            if reply.status_code != httpx2.codes.OK:
                raise ValueError(f"{address[:200]} responds with status {reply.status_code}")
            async for part in reply.aiter_raw():  # not decompressed, so that the bytes read are the bytes kept
                content += part
                if len(content) > MAX_DOCUMENT_BYTES:
                    raise ValueError(f"{address[:200]} has more than {MAX_DOCUMENT_BYTES} bytes")
        return orjson.loads(bytes(content))


def _create_client() -> httpx2.AsyncClient:
    return httpx2.AsyncClient(follow_redirects=False, timeout=FETCH_TIMEOUT_S)
