"""Maps of neighbourhoods: their union, and places of entities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.domain.query import EntityRef
from agentic_rag_backend.knowledge.paths.base import Connection
from agentic_rag_backend.knowledge.paths.neighbourhood import Neighbourhood, NeighbourNode
from agentic_rag_backend.knowledge.paths.neighbourhood_map import (
    MAX_MAP_NODES,
    merge_neighbourhoods,
    place_entities,
    place_nodes,
)


def entity(name: str) -> EntityRef:
    return EntityRef(id=name, name=name, type="person")


def star(centre: str, *others: str) -> Neighbourhood:
    """Return a neighbourhood in which the centre is connected with every other entity."""
    nodes = [NeighbourNode(entity(centre), 0, 1), *(NeighbourNode(entity(other), 1, 1) for other in others)]
    edges = [
        Connection(source=entity(centre), target=entity(other), fact=None, weight=0.1, chunk_id="chunk", document_id="document")
        for other in others
    ]
    return Neighbourhood(tuple(nodes), tuple(edges), False)


def test_a_union_has_each_entity_once_at_its_least_distance() -> None:
    union = merge_neighbourhoods([star("a", "b", "c"), star("b", "c", "a")])

    assert {node.entity.id: node.hops for node in union.nodes} == {"a": 0, "b": 0, "c": 1}
    assert sorted((edge.source.id, edge.target.id) for edge in union.edges) == [("a", "b"), ("a", "c"), ("b", "a"), ("b", "c")]
    assert not union.bounded


def test_a_union_is_bounded() -> None:
    stars = [star(f"centre {number}", *(f"{number} {leaf}" for leaf in range(150))) for number in range(4)]

    union = merge_neighbourhoods(stars)

    assert len(union.nodes) == MAX_MAP_NODES
    assert union.bounded
    ids = {node.entity.id for node in union.nodes}
    assert all({edge.source.id, edge.target.id} <= ids for edge in union.edges)
    assert {f"centre {number}" for number in range(4)} <= ids


def test_connected_entities_are_near_each_other() -> None:
    union = merge_neighbourhoods([star("a", "b", "c", "d"), star("x", "y", "z")])

    places = {node.entity.id: np.array(node.position) for node in place_entities(union).nodes}

    def distance(first: str, second: str) -> float:
        return float(np.linalg.norm(places[first] - places[second]))

    assert max(distance("a", leaf) for leaf in "bcd") < min(distance("a", other) for other in "xyz")


@given(st.integers(0, 60), st.data())
def test_places_are_in_the_square_distinct_and_repeatable(count: int, data: st.DataObject) -> None:
    numbers = st.integers(0, max(count - 1, 0))
    pairs = data.draw(st.lists(st.tuples(numbers, numbers), max_size=80)) if count else []

    places = place_nodes(count, pairs)

    assert places.shape == (count, 2)
    assert np.all((places >= 0) & (places <= 1))
    assert len({tuple(place) for place in places.tolist()}) == count
    assert np.array_equal(places, place_nodes(count, pairs))


@pytest.mark.parametrize(("count", "expected"), [(0, []), (1, [[0.5, 0.5]])])
def test_few_nodes_have_places(count: int, expected: list[list[float]]) -> None:
    assert place_nodes(count, []).tolist() == expected
