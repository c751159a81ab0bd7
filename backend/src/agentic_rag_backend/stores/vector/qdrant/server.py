"""A client of a Qdrant server: timeouts, retries, and the layout of the collections.

Requests are idempotent, so every transient failure is retried within the time limit of the call. The exception is the creation
of a collection: it is sent once, and then the collection is read.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import re
import ssl
import warnings
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from urllib.parse import urlsplit

import grpc
import httpx
from pydantic import ValidationError
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from agentic_rag_backend.errors import ConfigurationError, ReindexRequired, StoreUnavailable
from agentic_rag_backend.stores.vector.base import Collection
from agentic_rag_backend.stores.vector.conditions import TAGS
from agentic_rag_backend.stores.vector.points import DENSE, SPARSE
from agentic_rag_backend.telemetry.logs import get_logger

OLDEST_SERVER = (1, 19)
"""The oldest version that counts document frequencies within a corpus. Older versions silently ignore the parameter."""
_ATTEMPTS = 4
_FIRST_PAUSE_S = 0.1
_TRANSIENT_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
_TRANSIENT_CODES = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.INTERNAL,
    }
)
_BYTES_PER_NUMBER = 4
_SCANNED_POINTS = 20_000
"""Number of points per scope up to which a search scans, which is exact, instead of walking a graph."""
_FINGERPRINT, _BUILDING, _REPLACES = "fingerprint", "building", "replaces"
_log = get_logger(__name__)
P = ParamSpec("P")
T = TypeVar("T")


def connect(
    url: str,
    *,
    api_key: str | None = None,
    prefer_grpc: bool = False,
    grpc_port: int = 6334,
    timeout_s: float = 10.0,
    ca_file: Path | None = None,
) -> AsyncQdrantClient:
    """Return a client of the server at ``url`` without connecting. ``https`` uses TLS, in gRPC too. The default port is 6333.

    Args:
        timeout_s: time limit of one request in seconds.
        ca_file: certificate authorities for checking the server's certificate; None: the system's.

    Raises:
        ConfigurationError: the URL is neither ``http`` nor ``https``, or ``ca_file`` cannot be used.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError("QDRANT_URL is http:// or https://, a host and optionally a port")
    with warnings.catch_warnings():
        # Within a private network of containers, a key over plain HTTP is acceptable. The guide describes when it is not.
        warnings.filterwarnings("ignore", message="Api key is used with an insecure connection", category=UserWarning)
        return AsyncQdrantClient(
            url=url,
            api_key=api_key,
            prefer_grpc=prefer_grpc,
            grpc_port=grpc_port,
            timeout=ceil(timeout_s),
            check_compatibility=False,
            **_trust_context(parts.scheme, ca_file, prefer_grpc=prefer_grpc),
        )


def _trust_context(scheme: str, ca_file: Path | None, *, prefer_grpc: bool) -> dict[str, Any]:
    """Return the client options that check the server's certificate against ``ca_file``."""
    if ca_file is None:
        return {}
    if scheme != "https":
        raise ConfigurationError("QDRANT_CA_FILE needs an https:// QDRANT_URL")
    if prefer_grpc:
        raise ConfigurationError("gRPC reads its certificates from GRPC_DEFAULT_SSL_ROOTS_FILE_PATH, not from QDRANT_CA_FILE")
    try:
        return {"verify": ssl.create_default_context(cafile=ca_file)}
    except OSError as error:  # no such file, or no certificate in it
        raise ConfigurationError(f"QDRANT_CA_FILE={ca_file} cannot be read: {error.strerror or error}") from error


class UnconfirmedWrite(Exception):
    """The server accepted a write but did not confirm that it is applied."""


@dataclass(frozen=True, slots=True)
class QdrantFailure:
    """Outcome of a failed attempt. If ``transient``, another attempt may succeed."""

    reason: str
    transient: bool


def failure_of(error: Exception) -> QdrantFailure:
    """Classify ``error``, one of `_OF_THE_SERVER`."""
    if isinstance(error, ResponseHandlingException):
        if isinstance(error.source, httpx.TransportError):
            return QdrantFailure(f"no answer ({type(error.source).__name__})", transient=True)
        return QdrantFailure("an answer that the client cannot read", transient=False)
    if isinstance(error, UnexpectedResponse):
        return QdrantFailure(f"HTTP status {error.status_code}", error.status_code in _TRANSIENT_STATUS)
    if isinstance(error, grpc.aio.AioRpcError):
        return QdrantFailure(f"gRPC status {error.code().name}", error.code() in _TRANSIENT_CODES)
    if isinstance(error, ResourceExhaustedResponse):
        return QdrantFailure("too many requests", transient=True)
    if isinstance(error, ValidationError):
        return QdrantFailure("an answer that the client cannot read", transient=False)
    return QdrantFailure("the write was not finished in time", transient=True)


_OF_THE_SERVER = (
    ResponseHandlingException,
    UnexpectedResponse,
    ResourceExhaustedResponse,
    grpc.aio.AioRpcError,
    ValidationError,
    UnconfirmedWrite,
)


class QdrantServer:
    """A client with retries and a time limit.

    Args:
        timeout_s: time limit of a call in seconds, including retries.
    """

    def __init__(self, client: AsyncQdrantClient, *, timeout_s: float) -> None:
        self.client = client
        self._timeout_s = timeout_s
        self._closed = False

    async def call(self, doing: str, method: Callable[P, Awaitable[T]], *args: P.args, **arguments: P.kwargs) -> T:
        """Return the result of ``method`` of `client`, which must be idempotent.

        Args:
            doing: the purpose, as in "failed searching".

        Raises:
            StoreUnavailable: the server refused, or did not answer in time.
        """
        return await self._within_time(doing, lambda: method(*args, **arguments), _ATTEMPTS)

    async def call_once(self, doing: str, method: Callable[P, Awaitable[T]], *args: P.args, **arguments: P.kwargs) -> T:
        """Do as `call` does, but never send the request twice."""
        return await self._within_time(doing, lambda: method(*args, **arguments), 1)

    async def write(
        self, doing: str, method: Callable[P, Awaitable[models.UpdateResult]], *args: P.args, **arguments: P.kwargs
    ) -> None:
        """Apply ``method``. Afterwards every reader sees the write, and it survives a power loss.

        Raises:
            StoreUnavailable: the server refused the write, or did not confirm it in time; the write may still be applied.
        """

        async def applied() -> None:
            if (await method(*args, **arguments)).status is not models.UpdateStatus.COMPLETED:
                raise UnconfirmedWrite

        await self._within_time(doing, applied, _ATTEMPTS)

    async def close(self) -> None:
        """Close the connections. Later calls fail."""
        if not self._closed:
            self._closed = True
            await self.client.close()

    async def _within_time(self, doing: str, request: Callable[[], Awaitable[T]], attempts: int) -> T:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._attempt(doing, request, attempts)
        except TimeoutError:
            raise StoreUnavailable(f"the vector store did not answer within {self._timeout_s:g} s {doing}") from None

    async def _attempt(self, doing: str, request: Callable[[], Awaitable[T]], attempts: int) -> T:
        attempt = 1
        while not self._closed:
            try:
                return await request()
            except _OF_THE_SERVER as error:
                failure = failure_of(error)
                _log.warning("qdrant_failed", doing=doing, attempt=attempt, reason=failure.reason, said=str(error)[:200])
                if not failure.transient or attempt == attempts:
                    raise StoreUnavailable(f"the vector store failed {doing}: {failure.reason}") from error
            await asyncio.sleep(_FIRST_PAUSE_S * 4 ** (attempt - 1) * random.uniform(0.5, 1))  # noqa: S311 - spreads load
            attempt += 1
        raise StoreUnavailable("the vector store is closed")


def collection_name(prefix: str, collection: Collection, fingerprint: str) -> str:
    """Return the name of a collection for one fingerprint."""
    return f"{prefix}_{collection.value}_{hashlib.sha256(fingerprint.encode()).hexdigest()[:16]}"


async def open_collections(
    server: QdrantServer, prefix: str, mark: Mapping[str, str], *, fingerprint: str, dimensions: int, building: bool = False
) -> dict[Collection, str]:
    """Return the names of the collections of ``fingerprint``, and create missing ones. Another process may do so concurrently.

    Args:
        mark: metadata of a new collection (see `ownership`).
        building: create collections that are not in use before `activate_collections`.

    Raises:
        ReindexRequired: there are points of another fingerprint.
        StoreUnavailable: the server does not answer.
    """
    names = {collection: collection_name(prefix, collection, fingerprint) for collection in Collection}
    if not building:
        await _refuse_other_fingerprints(server, prefix, fingerprint, set(names.values()))
    for name in names.values():
        await _make_client(server, name, {**mark, _FINGERPRINT: fingerprint, _BUILDING: building}, dimensions)
    return names


async def activate_collections(server: QdrantServer, prefix: str, fingerprint: str) -> None:
    """Put the collections of ``fingerprint`` into use, and remove the collections of other fingerprints. Repeatable.

    The new collections first record which collections they replace, so that a leftover collection does no harm.
    """
    ours = {collection_name(prefix, collection, fingerprint) for collection in Collection}
    other_names = [name for name in await collections_of(server, prefix) if name not in ours]
    for name in sorted(ours):
        metadata = {**await metadata_of(server, name), _FINGERPRINT: fingerprint, _BUILDING: False, _REPLACES: other_names}
        await server.call("recording replaced collections", server.client.update_collection, name, metadata=metadata)
    for name in other_names:
        await server.call("removing a collection", server.client.delete_collection, name)


async def require_supported_version(server: QdrantServer) -> None:
    """Raise `ConfigurationError` if the server is too old."""
    version = (await server.call("reading the version", server.client.info)).version
    match = re.match(r"(\d+)\.(\d+)", version)
    if match is None or (int(match[1]), int(match[2])) < OLDEST_SERVER:
        oldest = ".".join(map(str, OLDEST_SERVER))
        raise ConfigurationError(f"the Qdrant server is version {version}; {oldest} or newer is needed for scores of one tenant")


async def _refuse_other_fingerprints(server: QdrantServer, prefix: str, fingerprint: str, ours: set[str]) -> None:
    collections = await collections_of(server, prefix)
    replaced: set[str] = set()
    for name in sorted(ours & set(collections)):
        replaced |= set((await metadata_of(server, name)).get(_REPLACES, ()))
    for name in collections:
        if name in ours or name in replaced:
            continue
        counted_points = await server.call("counting", server.client.count, name, exact=True)
        if counted_points.count:
            metadata = await metadata_of(server, name)
            if metadata.get(_BUILDING):
                continue
            made_with = metadata.get(_FINGERPRINT, "something else")
            raise ReindexRequired(
                f"the vectors in collection {name} were made with [{made_with}], but [{fingerprint}] is configured: "
                "run 'agentic-rag reindex', or configure what they were made with",
                made_with=str(made_with),
            )


async def collections_of(server: QdrantServer, prefix: str) -> list[str]:
    """Return the names of all collections under ``prefix``, for all fingerprints."""
    pattern = re.compile(rf"{re.escape(prefix)}_({'|'.join(collection.value for collection in Collection)})_[0-9a-f]{{16}}")
    response = await server.call("listing collections", server.client.get_collections)
    return sorted(collection.name for collection in response.collections if pattern.fullmatch(collection.name))


async def metadata_of(server: QdrantServer, name: str) -> dict[str, Any]:
    """Return a collection's metadata."""
    about = await server.call("reading its collections", server.client.get_collection, name)
    return dict(about.config.metadata or {})


async def _make_client(server: QdrantServer, name: str, metadata: dict[str, Any], dimensions: int) -> None:
    """Create the missing parts of a collection. Another process may have just done each step."""

    async def exists() -> bool:
        return await server.call("looking for a collection", server.client.collection_exists, name)

    if not await exists():
        try:
            await server.call_once("making a collection", _create_collection, server.client, name, metadata, dimensions)
        except StoreUnavailable:
            # Another process was faster, or the response was lost.
            if not await exists():
                raise
    about = await server.call("reading its collections", server.client.get_collection, name)
    for field, schema in field_indexes().items():
        if field not in about.payload_schema:
            await server.write(
                "indexing a field", server.client.create_payload_index, name, field, field_schema=schema, wait=True
            )


async def _create_collection(client: AsyncQdrantClient, name: str, metadata: dict[str, Any], dimensions: int) -> bool:
    scanned_kb = -(-_SCANNED_POINTS * dimensions * _BYTES_PER_NUMBER // 1024)
    return await client.create_collection(
        name,
        vectors_config={
            DENSE: models.VectorParams(size=dimensions, distance=models.Distance.COSINE, datatype=models.Datatype.FLOAT32)
        },
        sparse_vectors_config={SPARSE: models.SparseVectorParams(modifier=models.Modifier.IDF)},
        # No graph over all points, but one per tenant, so that links never lead into another tenant.
        hnsw_config=models.HnswConfigDiff(m=0, payload_m=16, ef_construct=128, full_scan_threshold=scanned_kb),
        # The server counts document frequencies within a shard, so all points of a tenant must be in one shard.
        shard_number=1,
        metadata=metadata,
    )


def field_indexes() -> dict[str, models.KeywordIndexParams | models.IntegerIndexParams]:
    """Return the indexed payload fields and their indexes."""
    keyword = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, enable_hnsw=False)
    integer = models.IntegerIndexParams(type=models.IntegerIndexType.INTEGER, lookup=True, range=True, enable_hnsw=False)
    return {
        # A search covers one scope, which includes the tenant, so graph links stay within it.
        "scope": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True, enable_hnsw=True),
        "tenant": keyword,
        "document_id": keyword,
        TAGS: keyword,
        "version": integer,
        "generation": integer,
    }
