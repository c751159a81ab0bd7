from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.filter_grammar import parse_filter
from agentic_rag_backend.domain.filters import matches_filter
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.retrieval.passages.hydration import (
    FIRST_READ,
    SHOWN_ENTITIES,
    entities_of,
    visible_chunks,
    visible_in_order,
)

Make = Callable[..., Any]


class Shown:
    """A catalogue that shows some chunks."""

    def __init__(self, *chunks: VisibleChunk) -> None:
        self._chunks = {found.chunk.id: found for found in chunks}
        self.read: list[int] = []

    async def hydrate(self, tenant: TenantId, ids: Sequence[str]) -> Mapping[str, VisibleChunk]:
        self.read.append(len(ids))
        return {id: self._chunks[id] for id in ids if id in self._chunks}


async def shown(query: Query, *chunks: VisibleChunk, ids: Sequence[str] = ("c1", "c2", "c3")) -> set[str]:
    found = await visible_chunks(Shown(*chunks), query, ids)  # type: ignore[arg-type]
    assert all(id == each.chunk.id for id, each in found.items())
    return set(found)


async def test_only_what_the_catalogue_shows_is_shown(query: Make, visible: Make) -> None:
    assert await shown(query(), visible("c1"), visible("c4")) == {"c1"}
    assert await shown(query(), visible("c1"), ids=[]) == set()


async def test_candidates_are_read_until_enough_may_be_shown(query: Make, visible: Make) -> None:
    for hidden, limit, reads in [
        (0, 5, [FIRST_READ]),
        (FIRST_READ - 5, 5, [FIRST_READ]),
        (FIRST_READ - 4, 5, [FIRST_READ, 200 - FIRST_READ]),
        (200, 5, [FIRST_READ, 200 - FIRST_READ]),
        (0, 80, [160]),
        (100, 80, [160, 40]),
    ]:
        order = [f"c{number:03}" for number in range(200)]
        shown = order[hidden:]
        catalogue: Any = Shown(*map(visible, shown))
        found = await visible_in_order(catalogue, query(limit=limit), order, {})
        assert [id for id in order if id in found][:limit] == shown[:limit]
        assert catalogue.read == reads


async def test_what_was_read_before_is_not_read_again(query: Make, visible: Make) -> None:
    order = [f"c{number:03}" for number in range(100)]
    held = {id: visible(id) for id in (*order[:8], order[45])}
    catalogue: Any = Shown(*map(visible, order[40:]))
    assert await visible_in_order(catalogue, query(limit=8), order, held, 40) == held
    assert catalogue.read == []
    found = await visible_in_order(catalogue, query(limit=20), order, held, 40)
    assert set(found) == {*held, *order[40:FIRST_READ]}
    assert catalogue.read == [FIRST_READ - 40 - 1]


async def test_only_what_passes_the_filter_is_shown(query: Make, visible: Make) -> None:
    chunks = [visible("c1", year=2019), visible("c2", year=2021), visible("c3")]
    assert await shown(query(filters=parse_filter({"year": {"gte": 2020}})), *chunks) == {"c2"}
    assert await shown(query(filters=parse_filter({"not": {"year": 2019}})), *chunks) == {"c2", "c3"}


async def test_confidence_counts_as_one_where_it_is_absent(query: Make, visible: Make) -> None:
    chunks = [visible("c1", confidence=0.4), visible("c2", confidence=0.9), visible("c3")]
    assert await shown(query(filters=parse_filter({"confidence": {"gte": 0.8}})), *chunks) == {"c2", "c3"}


def test_a_documents_own_fields_win_over_metadata_of_the_same_name(visible: Make) -> None:
    fields = visible("c1", document_id="d9", title="forged", key="forged", author="Mara").fields
    assert fields == {"document_id": "d9", "key": "c1", "title": "Title of c1", "author": "Mara"}
    assert matches_filter(parse_filter({"metadata.title": "Title of c1"}), fields)  # type: ignore[arg-type]


MOMENT = datetime(2020, 6, 1, 12, tzinfo=UTC)


async def test_as_of(query: Make, visible: Make) -> None:
    for metadata, valid in [
        ({}, True),
        ({"valid_from": "2020-06-01T12:00:00+00:00"}, True),
        ({"valid_from": "2020-06-01T12:00:01Z"}, False),
        ({"valid_to": "2020-06-01T12:00:00Z"}, False),
        ({"valid_to": "2020-06-01T12:00:01Z"}, True),
        ({"valid_from": "2020-01-01", "valid_to": "2021-01-01"}, True),
        ({"valid_from": "2020-06-02"}, False),
        ({"valid_from": "2020-06-01T13:30:00+02:00"}, True),
        ({"valid_from": "2020-06-01T11:30:00-02:00"}, False),
        ({"valid_from": "2020-06-01T12:30:00"}, False),
        ({"valid_from": "soon", "valid_to": None}, True),
        ({"valid_from": "2020"}, True),
        ({"valid_from": "2021"}, False),
        ({"valid_to": "2020"}, True),
        ({"valid_to": "2019"}, False),
        ({"valid_from": 2021}, False),
        ({"valid_to": 2019}, False),
        ({"valid_from": 2020, "valid_to": 2020}, True),
        ({"valid_from": "2020-06", "valid_to": "2020-06"}, True),
        ({"valid_from": "2020-07"}, False),
        ({"valid_to": "2020-05"}, False),
        ({"valid_from": "2020-06-01", "valid_to": "2020-06-01"}, True),
        ({"valid_to": "2020-05-31"}, False),
        ({"valid_to": "9999"}, True),
        ({"valid_to": "9999-12-31"}, True),
        ({"valid_from": "0000"}, True),
        ({"valid_from": "2020-13"}, True),
        ({"valid_to": "2020-06-31"}, True),
        ({"valid_from": "0001-01-01T00:00:00+23:59"}, True),
        ({"valid_to": "9999-12-31T23:59:59-23:59"}, True),
        ({"valid_from": True}, True),
        ({"valid_from": 10**9}, True),
        ({"valid_from": -5}, True),
        ({"valid_from": ["2021"]}, False),
        ({"valid_from": ["2021", "2020"]}, True),
        ({"valid_to": 2019.0}, False),
    ]:
        assert await shown(query(as_of=MOMENT), visible("c1", **metadata)) == ({"c1"} if valid else set())
        assert await shown(query(asked_at=MOMENT), visible("c1", **metadata)) == ({"c1"} if valid else set())


async def test_a_query_knows_when_the_first_document_that_it_read_becomes_invalid(query: Make, visible: Make) -> None:
    asked = query(asked_at=MOMENT)
    await shown(asked, visible("c1", valid_from="2019"), visible("c2", valid_to="2020-06-01T11:59:59Z"))
    assert asked.seen.valid_until is None
    await shown(asked, visible("c1", valid_to="2020"), visible("c2", valid_to=["2020-06-01T12:00:09Z", "2022"]))
    assert asked.seen.valid_until == MOMENT + timedelta(seconds=9)
    await shown(asked, visible("c1", valid_to=2020))
    assert asked.seen.valid_until == MOMENT + timedelta(seconds=9)


async def test_as_of_in_another_zone_is_the_same_moment(query: Make, visible: Make) -> None:
    moment = MOMENT.astimezone(timezone(timedelta(hours=9)))
    assert await shown(query(as_of=moment), visible("c1", valid_from="2020-06-01T12:00:00Z")) == {"c1"}


def test_a_chunks_entities_come_rarest_first(graph_of: Callable[..., TenantGraph]) -> None:
    graph = graph_of({"c1": ["Everywhere", "Twice", "Once", "Again"], "c2": ["Everywhere", "Twice"], "c3": ["Everywhere"]})
    assert [ref.name for ref in entities_of(graph, "c1")] == ["Again", "Once", "Twice", "Everywhere"]
    many = graph_of({"c1": [f"E{number:02}" for number in range(SHOWN_ENTITIES + 2)]})
    assert entities_of(many, "c1") == entities_of(many, "c1")
    assert [ref.name for ref in entities_of(many, "c1")] == [f"E{number:02}" for number in range(SHOWN_ENTITIES)]
    assert entities_of(graph, "unknown") == ()
    (first, *_) = entities_of(graph, "c1")
    assert (first.id, first.type) == ("e:Again", "thing")


async def test_a_question_reads_one_version_of_a_document(query: Make, visible: Make) -> None:
    """After a commit between two reads, a query must not show an old passage together with a new one."""
    old, new = visible("c1", document_id="d"), visible("c2", document_id="d")
    new = replace(new, chunk=replace(new.chunk, version=2))
    asked = query()
    assert await shown(asked, old, visible("c3")) == {"c1", "c3"}
    assert await shown(asked, new, visible("c3")) == {"c3"}
    assert await shown(replace(asked, limit=50), new) == set()
    assert await shown(query(), new, visible("c3")) == {"c2", "c3"}
