"""The outbox port: what the catalogue has committed and another store still has to follow.

An entry is written in the transaction of the change that calls for it, so there is never one without the other. It says what
to look at, not what to write: who delivers it reads the catalogue again, and repeating it changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from agentic_rag_backend.domain.tenant import TenantId


class Topic(StrEnum):
    """``labels``: the vectors' copy of a document's title and metadata. ``leftovers``: what graph and vectors hold of versions
    of a document that nobody will see. ``original``: a blob that no version names any more. ``tenant``: everything that a
    deleted tenant has."""

    LABELS = "labels"
    LEFTOVERS = "leftovers"
    ORIGINAL = "original"
    TENANT = "tenant"


@dataclass(frozen=True, slots=True)
class Entry:
    """Something to deliver; ``token`` is new each time that the same topic and subject are recorded."""

    topic: Topic
    subject: str
    token: str


class Outbox(Protocol):
    """Entries of each tenant, oldest first."""

    async def add(self, tenant: TenantId, topic: Topic, subject: str) -> None:
        """Record an entry in a transaction of its own; a tenant that does not exist has none."""

    async def pending(self, tenant: TenantId, *, limit: int) -> list[Entry]:
        """Return the tenant's entries, oldest first."""

    async def delivered(self, tenant: TenantId, entries: Sequence[Entry]) -> None:
        """Remove entries, except those that were recorded again meanwhile."""

    async def tenants(self, *, limit: int) -> list[TenantId]:
        """Return tenants that have entries."""
