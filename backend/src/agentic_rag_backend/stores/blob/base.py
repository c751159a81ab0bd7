"""The blob store port: uploaded originals, by key, within a tenant."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Protocol

from agentic_rag_backend.domain.tenant import TenantId


class BlobStore(Protocol):
    """Keys are made by `blob_key` alone, never from a file name; anything but a `TenantId` raises `InvalidScope`."""

    async def put(self, tenant: TenantId, key: str, content: bytes) -> None:
        """Store ``content``; the same key again replaces it. Durable when it returns."""

    async def get(self, tenant: TenantId, key: str) -> bytes:
        """Return the content.

        Raises:
            NotFound: there is none.
        """

    async def delete(self, tenant: TenantId, key: str) -> bool:
        """Remove the content; return whether there was any."""

    def keys(self, tenant: TenantId, *, before: datetime) -> AsyncIterator[list[str]]:
        """Stream the keys of blobs stored before an aware time, in any order, in pages of at most 1,000.

        The store may leave out recent ones. Leftovers of an interrupted `put` are removed.
        """

    async def missing(self, tenant: TenantId, keys: Sequence[str]) -> list[str]:
        """Return the keys among ``keys`` without content."""

    async def tenants(self) -> list[TenantId]:
        """Return every tenant with at least one blob. For the operator's housekeeping only."""

    async def delete_tenant(self, tenant: TenantId) -> int:
        """Remove everything of the tenant and return how many blobs went."""

    async def ping(self) -> None:
        """Raise `StoreUnavailable` unless the store answers."""


def blob_key(document_id: str, version: int) -> str:
    """Return the key of one version's original."""
    return f"{document_id}/{version}"
