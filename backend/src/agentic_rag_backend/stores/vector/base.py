"""The vector store port: dense vectors and BM25 over two collections, always within one tenant.

Contract, which `testing.stores.vector_store` checks on every adapter:

- every method's first argument is the tenant; anything but a `TenantId` raises `InvalidScope`; another tenant's points
  are never returned, counted, changed or deleted, even when ids are equal;
- ``upsert`` of the same points changes nothing; a point is written whole or not at all; vectors of another dimension,
  or with values that are not finite, are refused with `InvalidRequest` before anything of the batch is written;
- ``search`` returns one *leg* per kind of query, best first, ties broken by id; it never fuses;
- BM25's document frequencies cover only the tenant's points of the searched kind (and generation), so no score or order
  depends, to the last bit, on other tenants' points or on the order of writing; for the scope of a restricted key, they cover
  only the points of `OF_DOCUMENTS` that its filter selects, and no other is found;
- points survive kill -9 once ``upsert`` has returned; after ``flush`` they survive a power loss.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.domain.filters import Filter, filterable_fields
from agentic_rag_backend.domain.tenant import TenantId

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class TermWeights:
    """A sparse vector: ids of distinct terms, and the weight of each, as many as there are ids."""

    indices: Sequence[int]
    values: Sequence[float]


class Collection(StrEnum):
    """Collections, whose points are separated by `NodeKind`.

    ``chunks`` holds passages and their synthetic questions, which belong to a version of a document. ``nodes`` holds facts,
    communities and tree nodes.
    """

    CHUNKS = "chunks"
    NODES = "nodes"


class NodeKind(StrEnum):
    CHUNK = "chunk"
    QUESTION = "question"
    ENTITY = "entity"
    FACT = "fact"
    COMMUNITY = "community"
    RAPTOR = "raptor"


OF_DOCUMENTS = (NodeKind.CHUNK, NodeKind.QUESTION)
"""Kinds whose points have the metadata of a document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorPoint:
    """A point to be stored. ``dense`` has the collection's dimension, or is None; ``text`` is the input of BM25, or None.

    ``id`` is a uuid string, unique within tenant and collection; a community's is `domain.graph.community_point_id`.
    ``document_id`` and ``version`` (none counts as 0) let chunks be purged by document; ``generation`` is a community's.
    ``metadata`` is the document's: JSON values, filtered together with the document fields (`domain.filters.filterable_fields`).
    """

    id: str
    kind: NodeKind
    dense: Vector | None = None
    text: str | None = None
    document_id: str | None = None
    version: int | None = None
    generation: int | None = None
    key: str | None = None
    title: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def language(self) -> str | None:
        """The language of the text, as the document's metadata has it; it decides on further terms of BM25."""
        language = self.metadata.get("language")
        return language if isinstance(language, str) else None

    @property
    def fields(self) -> dict[str, Any]:
        """The fields that a filter compares."""
        return filterable_fields(self.metadata, document_id=self.document_id, key=self.key, title=self.title)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPoint:
    """A stored point without its vectors; ``tags`` are the tags of its filterable fields (`conditions.tags_of`)."""

    id: str
    kind: str
    document_id: str | None = None
    version: int = 0
    generation: int | None = None
    tags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorSearch:
    """A search of one collection: a dense leg if ``dense`` is given, a BM25 leg if ``text`` is.

    ``limit`` is per leg, 1–10,000. ``filter`` selects exactly, except for a `ChunkSet` that `conditions.select` ignores. Searches
    of communities need ``generation``: the reader passes the current one.
    """

    kind: NodeKind
    dense: Vector | None = None
    text: str | None = None
    limit: int = 50
    filter: Filter | None = None
    generation: int | None = None


class ScoredId(NamedTuple):
    """A point found: cosine similarity in [-1, 1] in a dense leg, the BM25 score (> 0) in a sparse one.

    A tuple, because a search makes thousands of them, and a dataclass takes three times as long.
    """

    id: str
    score: float


@dataclass(frozen=True, slots=True)
class Legs:
    """The two lists, best first; a leg that was not requested is empty."""

    dense: tuple[ScoredId, ...] = ()
    sparse: tuple[ScoredId, ...] = ()


class IndexState(StrEnum):
    """The state of index upkeep of a collection: idle, one of three phases, or waiting to retry."""

    IDLE = "idle"
    COPYING = "copying"
    OPTIMISING = "optimising"
    SWAPPING = "swapping"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexUpkeepRun:
    """One index build: ``seconds`` is its duration, ``gap_s`` the longest time during which the process served nothing else.

    ``failure`` is the reason if the build failed; the previous index then stays in use.
    """

    finished_at: datetime
    seconds: float
    gap_s: float
    reason: str
    failure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStatus:
    """A collection's points, of all tenants, and the share of them that was there when the index was built, in [0, 1]."""

    collection: Collection
    points: int
    indexed_share: float
    state: IndexState = IndexState.IDLE
    last: IndexUpkeepRun | None = None


class VectorStore(Protocol):
    """Points of all tenants; see the module's contract."""

    @property
    def fingerprint(self) -> str:
        """Return the identity of the stored vectors: embedder, dimension, datatype, BM25 parameters."""

    def terms(self, text: str) -> frozenset[int]:
        """Return the ids of the terms that BM25 sees in ``text``: stemmed, stop words dropped; computed, never stored."""

    async def upsert(self, tenant: TenantId, collection: Collection, points: Sequence[VectorPoint]) -> None:
        """Write ``points`` (any number; the adapter batches)."""

    async def search(self, tenant: TenantId, collection: Collection, searches: Sequence[VectorSearch]) -> list[Legs]:
        """Answer several searches of one collection at once, in order."""

    async def vectors(self, tenant: TenantId, collection: Collection, ids: Sequence[str]) -> dict[str, Vector]:
        """Return the dense vectors, scaled to unit length, of the ids that exist and have one."""

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
        """Replace the filterable fields of the document's points in ``chunks`` whose version ≤ ``up_to_version``; vectors stay.

        Points of a later version, which is being committed, keep the fields that they were written with.
        """

    async def delete(self, tenant: TenantId, collection: Collection, ids: Sequence[str]) -> int:
        """Remove points by id and return how many existed; no ids removes nothing."""

    async def delete_document(self, tenant: TenantId, document_id: str, *, up_to_version: int, keep: Sequence[str] = ()) -> int:
        """Remove the document's points in ``chunks`` whose version ≤ ``up_to_version``, but ``keep``; return how many existed."""

    async def delete_generations(self, tenant: TenantId, *, below: int) -> int:
        """Remove communities of generations < ``below``; return how many existed."""

    async def delete_tenant(self, tenant: TenantId) -> int:
        """Remove every point of the tenant in every collection; return how many existed."""

    async def count(self, tenant: TenantId, collection: Collection, *, document_id: str | None = None) -> int:
        """Count the tenant's points, exactly; of one document if given."""

    def points(
        self,
        tenant: TenantId,
        collection: Collection,
        *,
        kind: NodeKind | None = None,
        document_ids: Sequence[str] | None = None,
        ids: Sequence[str] | None = None,
    ) -> AsyncIterator[list[StoredPoint]]:
        """Stream stored points in any order, in pages of at most 500; optionally of one kind, some documents, or some ids.

        Points written or removed during the stream may or may not be in it; a point that stays is never left out.
        """

    async def tenants(self) -> list[TenantId]:
        """Return every tenant with at least one point in any collection. For the operator's housekeeping only."""

    async def indexes(self) -> list[IndexStatus]:
        """Describe every collection over all tenants: for the operator alone."""

    async def flush(self) -> None:
        """Make everything written durable against a power loss."""

    async def ping(self) -> None:
        """Raise `StoreUnavailable` unless the store answers."""

    async def close(self) -> None:
        """Release the store; further calls fail."""
