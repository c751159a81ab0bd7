"""The tree over a tenant's passages: clusters of passages, and clusters of these clusters, each with a summary."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from agentic_rag_backend.domain.document import stable_id
from agentic_rag_backend.domain.tenant import TenantId


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeNode:
    """A cluster. Passages are level 0. The children of a node at level 1 are passages, those of higher nodes are nodes.

    A child may have several parents. At level 1, ``documents`` has the document of each child, in the same order; it is empty
    above. ``size`` is the number of passages below the node. ``prompt_version`` and ``model`` select the node's summary among
    those recorded under its ``fingerprint``.
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
        """Return the id of its vector. It changes with the cluster and with the prompt or model of its summary."""
        return stable_id("raptor-point", tenant, self.id, self.fingerprint, self.prompt_version, self.model)


def fingerprint_leaves(chunk_ids: Iterable[str]) -> str:
    """Return 64 hex digits that identify the passages of a cluster. A passage's id derives from its text."""
    return _digest_parts("raptor-1", chunk_ids)


def fingerprint_children(level: int, fingerprints: Iterable[str]) -> str:
    """Return 64 hex digits that change with any of the children's fingerprints."""
    return _digest_parts(f"raptor-{level}", fingerprints)


def _digest_parts(kind: str, parts: Iterable[str]) -> str:
    return hashlib.sha256("\x1f".join([kind, *sorted(parts)]).encode()).hexdigest()
