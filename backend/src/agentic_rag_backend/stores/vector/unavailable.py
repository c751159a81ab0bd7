"""Vector store that refuses every call with `ReindexRequired`; the error names the embedders and the command that rebuilds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NoReturn

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import ReindexRequired
from agentic_rag_backend.stores.vector.base import (
    Collection,
    IndexStatus,
    Legs,
    NodeKind,
    StoredPoint,
    Vector,
    VectorPoint,
    VectorSearch,
)


class UnavailableVectorStore:
    """A `VectorStore` that raises `ReindexRequired` for every call: searches fail at once, jobs wait."""

    def __init__(self, reason: ReindexRequired) -> None:
        self._reason = reason

    def _refuse(self) -> NoReturn:
        raise ReindexRequired(self._reason.message, made_with=self._reason.made_with)

    @property
    def fingerprint(self) -> str:
        return self._reason.made_with

    def terms(self, text: str) -> frozenset[int]:
        self._refuse()

    async def upsert(self, tenant: TenantId, collection: Collection, points: Sequence[VectorPoint]) -> None:
        self._refuse()

    async def search(self, tenant: TenantId, collection: Collection, searches: Sequence[VectorSearch]) -> list[Legs]:
        self._refuse()

    async def vectors(self, tenant: TenantId, collection: Collection, ids: Sequence[str]) -> dict[str, Vector]:
        self._refuse()

    async def update_metadata(
        self,
        tenant: TenantId,
        document_id: str,
        metadata: Mapping[str, Any],
        *,
        title: str,
        key: str | None,
        up_to_version: int,
    ) -> None:
        self._refuse()

    async def delete(self, tenant: TenantId, collection: Collection, ids: Sequence[str]) -> int:
        self._refuse()

    async def delete_document(self, tenant: TenantId, document_id: str, *, up_to_version: int, keep: Sequence[str] = ()) -> int:
        self._refuse()

    async def delete_generations(self, tenant: TenantId, *, below: int) -> int:
        self._refuse()

    async def delete_tenant(self, tenant: TenantId) -> int:
        self._refuse()

    async def count(self, tenant: TenantId, collection: Collection, *, document_id: str | None = None) -> int:
        self._refuse()

    def points(
        self,
        tenant: TenantId,
        collection: Collection,
        *,
        kind: NodeKind | None = None,
        document_ids: Sequence[str] | None = None,
        ids: Sequence[str] | None = None,
    ) -> AsyncIterator[list[StoredPoint]]:
        self._refuse()

    async def tenants(self) -> list[TenantId]:
        self._refuse()

    async def indexes(self) -> list[IndexStatus]:
        return []

    async def flush(self) -> None:
        self._refuse()

    async def ping(self) -> None:
        self._refuse()

    async def close(self) -> None:
        """Nothing to release."""
