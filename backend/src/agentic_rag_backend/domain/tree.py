"""The tree over a tenant's passages: clusters of passages, clusters of those, each with a summary."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from agentic_rag_backend.domain.document import stable_id
from agentic_rag_backend.domain.tenant import TenantId


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeNode:
    """A cluster. The passages are level 0; a node of level 1 has passages as children, one above that has nodes.

    A child may have several parents. ``documents`` are those of the children at level 1, place by place, and empty above.
    ``size`` counts the passages below it. ``prompt_version`` and ``model`` say which of the summaries on record under its
    ``fingerprint`` is the node's.
    """

    id: str
    level: int
    children: tuple[str, ...]
    documents: tuple[str, ...] = ()
    fingerprint: str
    size: int
    prompt_version: str = ""
    model: str = ""

    def point_id(self, tenant: TenantId) -> str:
        """Return the id of its vector: another one as soon as the cluster or the writer of its summary is another."""
        return stable_id("raptor-point", tenant, self.id, self.fingerprint, self.prompt_version, self.model)


def leaf_fingerprint(chunk_ids: Iterable[str]) -> str:
    """Return 64 hex digits that change with the passages of a cluster; a passage's id is that of its text."""
    return _digest("raptor-1", chunk_ids)


def inner_fingerprint(level: int, fingerprints: Iterable[str]) -> str:
    """Return 64 hex digits that change with any of the children's."""
    return _digest(f"raptor-{level}", fingerprints)


def _digest(kind: str, parts: Iterable[str]) -> str:
    return hashlib.sha256("\x1f".join([kind, *sorted(parts)]).encode()).hexdigest()
