"""The outbox port: changes that the catalogue has committed and another store still has to apply.

An entry is written in the transaction of its change, so neither exists without the other. It names what to check, not what to
write: its handler reads the catalogue again, so that handling is idempotent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from agentic_rag_backend.domain.tenant import TenantId


class Topic(StrEnum):
    """Topics of entries.

    - ``edits``: resolve the names of the documents that an edit of the graph changes.
    - ``labels``: copy a document's title and metadata to the vectors.
    - ``leftovers``: remove graph and vector data of document versions that will not become visible.
    - ``names``: find the documents in which a normalised name means another entity than it should.
    - ``knowledge``: resolve the names of a document again.
    - ``original``: remove a blob that no version names.
    - ``tenant``: remove all data of a deleted tenant.
    """

    EDITS = "edits"
    LABELS = "labels"
    LEFTOVERS = "leftovers"
    NAMES = "names"
    KNOWLEDGE = "knowledge"
    ORIGINAL = "original"
    TENANT = "tenant"


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry to deliver. ``token`` is new each time the same topic and subject are recorded."""

    topic: Topic
    subject: str
    token: str


READ_BY_FILTERS = (Topic.LABELS,)
"""Topics of changes that filters of searches do not see yet."""
SETTLING = (Topic.EDITS, Topic.NAMES, Topic.KNOWLEDGE)
"""Topics of a graph in which some names do not mean the entities yet that they should."""


class Outbox(Protocol):
    """Entries of each tenant, oldest first."""

    async def add(self, tenant: TenantId, topic: Topic, subject: str) -> None:
        """Record an entry in its own transaction. A tenant that does not exist has no entries."""

    async def add_all(self, tenant: TenantId, topic: Topic, subjects: Sequence[str]) -> None:
        """Record several entries of a topic in one transaction. A tenant that does not exist has no entries."""

    async def pending(self, tenant: TenantId, *, limit: int, topics: Sequence[Topic] | None = None) -> list[Entry]:
        """Return the tenant's entries, optionally of some topics, oldest first."""

    async def holds(self, tenant: TenantId, topics: Sequence[Topic]) -> bool:
        """Return whether the tenant has entries of some topics."""

    async def delivered(self, tenant: TenantId, entries: Sequence[Entry]) -> None:
        """Remove entries, except entries that were recorded again since they were read.

        Raises ``state_version`` if a handler of an entry wrote to stores that searches read. The change itself raised it before
        the handler ran, and a result of the time between must not be used any longer.
        """

    async def tenants(
        self, *, limit: int, topics: Sequence[Topic] | None = None, after: TenantId | None = None
    ) -> list[TenantId]:
        """Return tenants that have entries, of ``topics`` if given, in the order of their ids and behind ``after``."""
