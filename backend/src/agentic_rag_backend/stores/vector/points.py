"""Points as both engines store them: checked vectors, the payload, and the fingerprint of the stored vectors."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, StoredPoint, Vector, VectorPoint
from agentic_rag_backend.stores.vector.bm25 import Bm25Parameters
from agentic_rag_backend.stores.vector.conditions import TAGS, tags_of

DENSE = "dense"
"""The name of a point's dense vector."""
SPARSE = "sparse"
"""The name of a point's BM25 vector."""
_NAMESPACE = uuid.UUID("9b0c7a3e-6a0f-5d0b-8a53-0f6f6f0e4c55")
_LAYOUT = "layout 1"
"""Raised when payloads change in a way that stored points would not fit."""
MAX_LIMIT = 10_000
DESCRIBED = ["id", "scope", "document_id", "version", "generation", TAGS]
"""The fields of a payload that `parse_payload` reads."""


def fingerprint_of(embedder_fingerprint: str, dimensions: int, bm25: Bm25Parameters) -> str:
    """Return the identity of all parameters that stored points depend on."""
    return f"{embedder_fingerprint}; {dimensions} x float32; {bm25.fingerprint}; {_LAYOUT}"


def checked_vectors(vectors: Sequence[Vector | None], dimensions: int) -> list[Vector | None]:
    """Return the vectors at unit length.

    The engine would accept NaN, and would apply a batch up to its first invalid vector.

    Raises:
        InvalidRequest: a vector has another length, or a value that is not finite.
    """
    arrays = [np.asarray(vector, dtype=np.float32) for vector in vectors if vector is not None]
    if not arrays:
        return [None] * len(vectors)
    for array in arrays:
        if array.shape != (dimensions,):
            raise InvalidRequest(f"vectors of this store have {dimensions} dimensions; got shape {array.shape}")
    matrix = np.stack(arrays)
    if not np.isfinite(matrix).all():
        raise InvalidRequest("vectors hold finite numbers; got NaN or infinity")
    scaled = iter(unit_length(matrix))
    return [None if vector is None else next(scaled) for vector in vectors]


def check_limit(limit: int) -> None:
    """Raise `InvalidRequest` if a search's limit is out of range."""
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidRequest(f"the limit of a search is 1 to {MAX_LIMIT}; got {limit}")


def scope_name(tenant: TenantId, kind: NodeKind, generation: int | None) -> str:
    """Return the scope of a search as one keyword. Two keywords would cost the engine five times as much."""
    return f"{tenant.value}/{kind.value}" if generation is None else f"{tenant.value}/{kind.value}/{generation}"


def point_id(tenant: TenantId, collection: Collection, id: str) -> str:
    """Return the engine's id of a point. Equal ids of two tenants give different points."""
    return str(uuid.uuid5(_NAMESPACE, f"{tenant.value}/{collection}/{id}"))


def payload_of(tenant: TenantId, point: VectorPoint, tags: Sequence[str]) -> dict[str, Any]:
    """Return the payload of a point."""
    payload: dict[str, Any] = {
        "tenant": tenant.value,
        "scope": [scope_name(tenant, point.kind, None)],
        "id": point.id,
        "version": point.version or 0,
        TAGS: list(tags),
    }
    if point.document_id is not None:
        payload["document_id"] = point.document_id
    if point.generation is not None:
        payload["generation"] = point.generation
        payload["scope"].append(scope_name(tenant, point.kind, point.generation))
    return payload


def parse_payload(payload: Mapping[str, Any]) -> StoredPoint:
    """Return the point for a payload."""
    return StoredPoint(
        id=str(payload["id"]),
        kind=str(payload["scope"][0]).rpartition("/")[2],
        document_id=payload.get("document_id"),
        version=int(payload.get("version") or 0),
        generation=payload.get("generation"),
        tags=frozenset(payload.get(TAGS, ())),
    )


def tags_of_points(points: Sequence[VectorPoint]) -> list[list[str]]:
    """Return the tags of each point. Chunks of a document mostly share one metadata object, which is read once."""
    tags_by_label: dict[tuple[object, ...], list[str]] = {}
    tags = []
    for point in points:
        source = (id(point.metadata), point.document_id, point.key, point.title)
        if source not in tags_by_label:
            tags_by_label[source] = tags_of(point.fields)
        tags.append(tags_by_label[source])
    return tags


def unit_length(vectors: Vector) -> Vector:
    """Return ``vectors`` (rows) scaled to length 1, computed in double precision; zeros stay zeros."""
    exact = vectors.astype(np.float64)
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    return (exact / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
