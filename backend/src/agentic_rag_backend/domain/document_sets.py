"""Named selections of a tenant's documents, in which a search can stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from agentic_rag_backend.domain.document import DocumentState

ALL_DOCUMENTS = "all"
"""Id of the set of all documents, which every tenant has."""
MAX_SETS = 1_000
MAX_MEMBERS = 5_000
"""Members of a set. A search names them all; a filter has no such limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentSet:
    """A set of documents: its members or, with a ``filter``, the documents that pass it.

    ``filter`` is as the caller wrote it. The set of all documents has an empty one.
    """

    id: str
    name: str
    description: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    filter: Mapping[str, Any] | None = None
    created_at: datetime

    @property
    def has_members(self) -> bool:
        """Whether documents are added to it one by one."""
        return self.filter is None


@dataclass(frozen=True, slots=True)
class StateCounts:
    """Number of documents by state, and the bytes of their originals."""

    documents: Mapping[DocumentState, int] = field(default_factory=dict)
    size_bytes: int = 0

    def count_states(self, *states: DocumentState) -> int:
        """Return the number of documents in some states."""
        return sum(self.documents.get(state, 0) for state in states)


@dataclass(frozen=True, slots=True)
class MemberBatch:
    """Documents that were added to a set by one request."""

    id: str
    added_at: datetime
    counts: StateCounts
