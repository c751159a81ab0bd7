"""Sample points and filters for tests on a vector store."""

from __future__ import annotations

import random
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import numpy as np

from agentic_rag_backend.domain.filters import OPERATORS, And, ChunkSet, Comparison, Filter, LinkCondition, Not, Or
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError, InvalidRequest
from agentic_rag_backend.stores.vector.base import (
    Collection,
    Legs,
    NodeKind,
    ScoredId,
    Vector,
    VectorPoint,
    VectorSearch,
    VectorStore,
)

DIMENSIONS = 8
OpenStore = Callable[[str], AbstractAsyncContextManager[VectorStore]]
"""Opens and closes the store at a named place, for `DIMENSIONS` dimensions. A place is initially empty and keeps its data."""
Check = Callable[[OpenStore], Awaitable[None]]
A = TenantId("t_" + "a" * 32)
B = TenantId("t_" + "b" * 32)
CHUNKS, NODES = Collection.CHUNKS, Collection.NODES


def point_id(number: int) -> str:
    """Return the id of the ``number``-th sample point."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, str(number)))


def vector(number: int) -> Vector:
    """Return a reproducible vector that does not have unit length."""
    return np.random.default_rng(number).normal(size=DIMENSIONS).astype(np.float32)


def chunk(number: int, text: str | None = "a harbour at night", *, document: str = "d1", **fields: Any) -> VectorPoint:
    """Return a sample chunk with its own vector."""
    given = {"kind": NodeKind.CHUNK, "dense": vector(number), "version": 1, "title": f"Title of {document}", **fields}
    return VectorPoint(id=point_id(number), text=text, document_id=document, **given)


def node(number: int, kind: NodeKind, text: str = "a harbour at night", **fields: Any) -> VectorPoint:
    """Return a sample node."""
    return VectorPoint(id=point_id(number), kind=kind, text=text, **{"dense": vector(number), **fields})


def random_value(choose: random.Random) -> Any:
    """Return an unusual metadata value."""
    plain = [
        True,
        False,
        0,
        1,
        1.0,
        -2,
        2.5,
        10**17,
        10**17 + 1,
        float(10**17),
        "",
        "1",
        "true",
        "Straße",
        "Str",
        "STRASSE",
        "2019-04-30",
        "a.b",
    ]
    return choose.choice([None, [], [None], *plain, [choose.choice(plain) for _ in range(choose.randint(1, 3))], {"a": 1}, {}])


def random_filter(choose: random.Random, fields: Sequence[str], chunks: Sequence[str] = (), depth: int = 3) -> Filter:
    """Return a filter over ``fields`` with any operators, including defaults, and over sets of ``chunks``."""
    shape = choose.random() if depth else 1.0
    if shape < 0.4:
        parts = tuple(random_filter(choose, fields, chunks, depth - 1) for _ in range(choose.randint(0, 3)))
        return And(parts) if shape < 0.2 else Or(parts)
    if shape < 0.5:
        return Not(random_filter(choose, fields, chunks, depth - 1))
    if chunks and choose.random() < 0.2:
        return ChunkSet(frozenset(choose.sample(chunks, choose.randint(0, len(chunks) // 2))), LinkCondition("entity", "exists"))
    operator = choose.choice(OPERATORS)
    scalars = [value for value in (random_value(choose) for _ in range(9)) if isinstance(value, (str, int, float))] or [1]
    value = tuple(scalars[:2]) if operator in ("in", "nin") else scalars[0]
    return Comparison(choose.choice(fields), operator, value, choose.choice([None, None, scalars[-1]]))


def random_chunk(choose: random.Random, number: int, names: Sequence[str]) -> VectorPoint:
    """Return a sample chunk with some of the metadata fields ``names``."""
    metadata = {name: random_value(choose) for name in names if choose.random() < 0.7}
    return chunk(number, document=f"d{number % 5}", key=choose.choice([None, "k1"]), metadata=metadata)


async def find(store: VectorStore, tenant: TenantId, collection: Collection = CHUNKS, **search: Any) -> Legs:
    """Run one search, by default for the text and a vector of the samples."""
    given = {"kind": NodeKind.CHUNK, "text": "harbour night", "dense": vector(1), **search}
    return (await store.search(tenant, collection, [VectorSearch(**given)]))[0]


def ids(leg: Sequence[ScoredId]) -> list[str]:
    """Return the ids of a leg in order."""
    return [scored.id for scored in leg]


async def refused(call: Awaitable[object], error: type[AgenticRagError] = InvalidRequest) -> None:
    """Raise `AssertionError` unless the call raises ``error``."""
    try:
        await call
    except error:
        return
    raise AssertionError(f"{error.__name__} expected")


def cosine(left: Vector, right: Vector) -> float:
    """Return the cosine similarity of two vectors."""
    return float(left @ right / (np.linalg.norm(left) * np.linalg.norm(right)))
