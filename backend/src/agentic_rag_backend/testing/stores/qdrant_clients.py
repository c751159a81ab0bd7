"""Qdrant clients without a server: one that keeps its points in this process, and one whose requests are recorded."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import numpy as np
from numpy.typing import NDArray
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.local.persistence import CollectionPersistence

WITHOUT_INDEXES = "ignore:Payload indexes have no effect in the local Qdrant:UserWarning"
"""Warning filter for tests with a local client, which scans."""

_SERIALIZED = 3
"""Value of ``sqlite3.threadsafety`` at which threads may share connections."""


def _products(query: NDArray[np.floating], vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return inner products, each rounded once, independent of the other vectors in the comparison."""
    products: NDArray[np.float64] = np.multiply(vectors, query, dtype=np.float64).sum(axis=-1)
    return products.astype(np.float32)


class LocalClient(AsyncQdrantClient):
    """The client's local engine, which scans, with dense scores that depend on the two vectors only.

    By default, it scales vectors differently when they are written, loaded and searched, and sums in an order
    that depends on their number. Ours have unit length, so their inner product is the cosine.
    """

    async def create_collection(self, collection_name: str, vectors_config: Any = None, *args: Any, **named: Any) -> bool:
        products = {name: params.model_copy(update={"distance": models.Distance.DOT}) for name, params in vectors_config.items()}
        made = await super().create_collection(collection_name, products, *args, **named)
        self._unsynced(collection_name)
        return made

    async def query_batch_points(
        self, collection_name: str, requests: Sequence[models.QueryRequest], *args: Any, **named: Any
    ) -> list[models.QueryResponse]:
        with patch("qdrant_client.local.distances.dot_product", _products):
            return await super().query_batch_points(collection_name, requests, *args, **named)

    def _unsynced(self, collection_name: str) -> None:
        """Skip the disk sync after every point: a sample only has to survive closing."""
        local: Any = self._client
        local.collections[collection_name].storage.storage.execute("PRAGMA synchronous = OFF")


def local_client(folder: Path) -> AsyncQdrantClient:
    """Return a client that keeps its points in ``folder``, without a server. For small samples: it is a thousand times slower."""
    if CollectionPersistence.CHECK_SAME_THREAD is None:
        # Otherwise the client opens a database to learn this and never closes it, which causes a warning in Python 3.13.
        CollectionPersistence.CHECK_SAME_THREAD = sqlite3.threadsafety != _SERIALIZED
    return LocalClient(path=str(folder))


@dataclass(frozen=True, slots=True)
class Sent:
    """One request. ``query`` is the URL's query, ``body`` the JSON, or None without a body."""

    method: str
    path: str
    query: dict[str, str]
    headers: httpx.Headers
    body: Any
    size_bytes: int


Answer = Callable[[Sent], httpx.Response]


@dataclass
class RecordingServer:
    """A transport that answers with ``answer`` and records the requests."""

    answer: Answer
    sent: list[Sent] = field(default_factory=list)

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else None
        path = request.url.path
        query = dict(request.url.params)
        sent = Sent(request.method, path, query, request.headers, body, len(request.content))
        self.sent.append(sent)
        return self.answer(sent)

    def attach(self, client: AsyncQdrantClient) -> AsyncQdrantClient:
        """Redirect the REST requests of ``client`` to this transport."""
        http = client.http.client
        http._async_client._transport = httpx.MockTransport(self)
        http._async_client._mounts = {}
        return client
