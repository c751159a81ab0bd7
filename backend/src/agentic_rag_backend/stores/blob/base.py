"""The blob store port: uploaded originals, by key, within a tenant."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Protocol

from agentic_rag_backend.domain.tenant import TenantId


class BlobStore(Protocol):
    """Stores blobs by key. Keys come from `blob_key`, never from a file name. `InvalidScope` for anything but a `TenantId`."""

    async def put(self, tenant: TenantId, key: str, content: bytes) -> None:
        """Store ``content`` durably. Replace an existing blob under the key."""

    async def get(self, tenant: TenantId, key: str) -> bytes:
        """Return the content.

        Raises:
            NotFound: there is no blob under the key.
        """

    async def delete(self, tenant: TenantId, key: str) -> bool:
        """Remove the content. Return whether it existed."""

    def keys(self, tenant: TenantId, *, before: datetime) -> AsyncIterator[list[str]]:
        """Stream the keys of blobs stored before an aware time, in any order, in pages of at most 1,000.

        The store may leave out recent ones. Leftovers of an interrupted `put` are removed.
        """

    async def missing(self, tenant: TenantId, keys: Sequence[str]) -> list[str]:
        """Return the keys among ``keys`` without content."""

    async def tenants(self) -> list[TenantId]:
        """Return every tenant with at least one blob. For the operator's housekeeping only."""

    async def delete_tenant(self, tenant: TenantId) -> int:
        """Remove all blobs of the tenant. Return their number."""

    async def ping(self) -> None:
        """Raise `StoreUnavailable` unless the store answers."""


def blob_key(document_id: str, version: int) -> str:
    """Return the key of a version's original."""
    return f"{document_id}/{version}"
