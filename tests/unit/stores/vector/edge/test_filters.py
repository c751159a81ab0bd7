"""Filters in the engine match their definition, for any metadata and any filter."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from qdrant_edge import Filter as EngineFilter
from sampling import sampled

from agentic_rag_backend.domain.filters import (
    MAX_STORED_CHUNKS,
    OPERATORS,
    And,
    ChunkSet,
    Comparison,
    Filter,
    LinkCondition,
    Not,
    Or,
    matches_filter,
)
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, VectorPoint, VectorSearch
from agentic_rag_backend.stores.vector.conditions import FieldValues
from agentic_rag_backend.stores.vector.edge.edge_engine import Translation
from agentic_rag_backend.stores.vector.edge.store import EdgeVectorStore

FIELDS = ["year", "a.b", 'q"[0]', "title", "key", "document_id", ""]
words = st.one_of(
    st.sampled_from(["", "Straße", "strasse", "2019-04-30", "2019", "1", "true", "a\x00b", "\ud800"]), st.text(max_size=4)
)
numbers = st.one_of(st.integers(-3, 3), st.integers(2**53 - 2, 2**53 + 2), st.sampled_from([1.0, -0.0, 2.5, 1e300, float(2**53)]))
scalars = st.one_of(st.booleans(), numbers, st.floats(), words)
values = st.one_of(st.none(), scalars, st.lists(st.one_of(st.none(), scalars), max_size=3), st.just({"a": 1}), st.just([[1]]))
rows = st.lists(st.dictionaries(st.sampled_from(FIELDS), values, max_size=5), min_size=1, max_size=6)


def _comparison(field: str, operator: str, options: list[Any], default: Any) -> Comparison:
    return Comparison(field, operator, tuple(options) if operator in ("in", "nin") else options[0], default)


comparisons = st.builds(
    _comparison,
    st.sampled_from([*FIELDS, "unknown"]),
    st.sampled_from(OPERATORS),
    st.lists(scalars, min_size=1, max_size=3),
    st.one_of(st.none(), scalars),
)
chunk_sets = st.builds(
    lambda ids: ChunkSet(ids, LinkCondition("entity", "exists")), st.frozensets(st.sampled_from("0123456789"), max_size=4)
)
filters = st.recursive(
    comparisons | chunk_sets,
    lambda inner: st.one_of(
        st.builds(lambda parts: And(tuple(parts)), st.lists(inner, max_size=3)),
        st.builds(lambda parts: Or(tuple(parts)), st.lists(inner, max_size=3)),
        st.builds(Not, inner),
    ),
    max_leaves=6,
)


def translation(values: Callable[[], FieldValues]) -> Translation:
    return Translation(TenantId.new(), Collection.CHUNKS, values)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EdgeVectorStore]:
    folder: Path = tmp_path_factory.mktemp("filters")
    opened = asyncio.run(EdgeVectorStore.open(folder, dimensions=2, embedder_fingerprint="test"))
    yield opened
    asyncio.run(opened.close())


async def _selected(store: EdgeVectorStore, filter: Filter, points: list[VectorPoint]) -> set[str]:
    tenant = TenantId.new()
    half = len(points) // 2
    await store.upsert(tenant, Collection.CHUNKS, points[:half])
    search = VectorSearch(kind=NodeKind.CHUNK, dense=np.ones(2, np.float32), filter=filter, limit=100)
    await store.search(tenant, Collection.CHUNKS, [search])
    await store.upsert(tenant, Collection.CHUNKS, points[half:])
    (legs,) = await store.search(tenant, Collection.CHUNKS, [search])
    return {hit.id for hit in legs.dense}


@sampled(gate=60, deep=500)
@given(rows=rows, filter=filters)
def test_the_engine_selects_what_the_definition_selects(
    store: EdgeVectorStore, rows: list[dict[str, Any]], filter: Filter
) -> None:
    points = [
        VectorPoint(
            id=str(number),
            kind=NodeKind.CHUNK,
            dense=np.ones(2, np.float32),
            document_id=f"d{number % 2}",
            key="1" if number % 3 else None,
            title=f"Title {number}",
            metadata=metadata,
        )
        for number, metadata in enumerate(rows)
    ]
    expected = {point.id for point in points if matches_filter(filter, point.fields, point.id)}
    assert asyncio.run(_selected(store, filter, points)) == expected


def test_constants_never_become_an_empty_engine_filter() -> None:
    for filter, constant in [
        (And(()), True),
        (Or(()), False),
        (Not(Or(())), True),
        (Comparison("a", "in", ()), False),
        (Comparison("a", "eq", float("nan")), False),
        (Comparison("a", "gt", 1), False),
        (And((Comparison("a", "eq", 1), Or(()))), False),
        (Or((Comparison("a", "eq", 1), And(()))), True),
        (ChunkSet(frozenset(), LinkCondition("entity", "exists")), False),
    ]:
        assert translation(dict).of(filter) is constant


def test_values_are_read_only_for_order_and_substring() -> None:
    def refuse() -> dict[str, dict[str, Any]]:
        raise AssertionError("the distinct values were read")

    plain = And(tuple(Comparison("a", operator, (1,) if operator in ("in", "nin") else 1) for operator in OPERATORS[:4]))
    assert isinstance(translation(refuse).of(plain), EngineFilter)
    with pytest.raises(AssertionError, match="were read"):
        translation(refuse).of(Comparison("a", "contains", "x"))


def test_unknown_operators_are_named() -> None:
    with pytest.raises(InvalidRequest, match=r"'like'.*contains"):
        translation(dict).of(Comparison("a", "like", "x"))


def test_sets_that_the_engine_cannot_apply_select_more_points_never_fewer() -> None:
    large = ChunkSet(frozenset(map(str, range(MAX_STORED_CHUNKS + 1))), LinkCondition("entity", "exists"))
    small = ChunkSet(frozenset("1"), LinkCondition("entity", "exists"))
    of_chunks, of_questions = NodeKind.CHUNK, NodeKind.QUESTION
    for ignored, kind in ((large, of_chunks), (small, of_questions)):
        assert translation(dict).of(ignored, kind) is True
        assert translation(dict).of(Not(ignored), kind) is True
        assert translation(dict).of(Not(Not(ignored)), kind) is True
    assert isinstance(translation(dict).of(small, of_chunks), EngineFilter)
    with pytest.raises(ValueError, match="not resolved"):
        translation(dict).of(LinkCondition("entity", "eq", ("Mara",)))
