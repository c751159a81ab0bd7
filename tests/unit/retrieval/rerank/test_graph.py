"""Signals of the graph: walk mass, distance and mentions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.retrieval.rerank.graph import (
    Pool,
    centre_of,
    distance,
    hops_from,
    mass,
    mentions,
    refine_score,
    weigh_signal,
)

GraphOf = Callable[..., TenantGraph]
CHAIN = {"c1": ["Ada", "Bay"], "c2": ["Bay", "Cole"], "c3": ["Cole", "Dorn"], "c4": ["Dorn", "Elm"], "c5": ["Elm", "Fen"]}
"""Chunks in a row: each shares an entity with the next."""


def pool(graph: TenantGraph, names: Sequence[str], ids: Sequence[str] = tuple(CHAIN), *scores: float) -> Pool:
    centre, _ = centre_of(graph, "", names)
    titles = [f"Title of {id}" for id in ids]
    return Pool(graph, [graph.chunk_index.get(id) for id in ids], titles, scores or [1.0] * len(ids), centre)


def test_distance_is_the_number_of_shared_entities(graph_of: GraphOf) -> None:
    graph = graph_of(CHAIN)
    assert distance(pool(graph, ["Ada"])) == [1.0, 1 / 2, 1 / 3, 1 / 4, 0.0]
    assert distance(pool(graph, ["Cole"])) == [1 / 2, 1.0, 1.0, 1 / 2, 1 / 3]
    assert distance(pool(graph, [])) == [0.0] * 5


def test_distance_visits_everything_once(graph_of: GraphOf) -> None:
    graph = graph_of({"c1": ["Ada", "Bay"], "c2": ["Ada", "Bay"], "c3": ["Bay"]})
    numbers = graph.chunk_index
    assert hops_from(graph, [graph.entity_index["e:Ada"]]) == {numbers["c1"]: 0, numbers["c2"]: 0, numbers["c3"]: 1}


def test_mentions_of_rare_centre_entities_weigh_more(graph_of: GraphOf) -> None:
    graph = graph_of({"c1": ["Ada", "Bay"], "c2": ["Bay"], "c3": ["Bay"], "c4": ["Dorn"]})
    both, common, other, none = mentions(pool(graph, ["Ada", "Bay"], ["c1", "c2", "c3", "c4"]))
    assert both == 1.0
    assert 0 < common == other < 0.5
    assert none == 0.0


def test_mass_falls_with_the_distance_from_the_centre(graph_of: GraphOf) -> None:
    values = mass(pool(graph_of(CHAIN), ["Ada"]))
    assert values[0] == 1.0
    assert values == sorted(values, reverse=True)
    assert values[4] > 0


def test_passages_of_one_title_share_their_mass(graph_of: GraphOf) -> None:
    alone = pool(graph_of(CHAIN), ["Ada"])
    values = mass(replace(alone, titles=["T", "T", "U", "U", "U"]))
    assert values[0] == values[1] == 1.0
    assert 0 < values[2] == values[3] == values[4] < 1
    first, second, *_ = mass(alone)
    third = mass(replace(alone, titles=["T", "T", "U", "V", "W"]))[2]
    assert third == pytest.approx(mass(alone)[2] / ((first + second) / 2))


def test_without_a_centre_the_walk_begins_at_the_candidates(graph_of: GraphOf) -> None:
    graph = graph_of(CHAIN)
    near, far = mass(pool(graph, [], ["c2", "c4"], 1.0, 0.1))
    assert near == 1.0
    assert 0 < far < 1


def test_chunks_outside_the_graph_have_no_signal_and_keep_their_order(graph_of: GraphOf) -> None:
    graph = graph_of(CHAIN)
    for signal in (mass, distance, mentions):
        assert signal(pool(graph, ["Ada"], ["unknown", "c1"]))[0] == 0.0
        assert signal(pool(graph, [], ["unknown", "strange"])) == [0.0, 0.0]
    assert refine_score(0.9, 0.0) > refine_score(0.4, 0.0) > refine_score(0.0, 0.0) > 0
    assert weigh_signal(0.9, 0.0) > weigh_signal(0.4, 0.0)


@pytest.mark.parametrize("blend", [refine_score, weigh_signal])
def test_scores_rise_with_the_score_of_the_strategy_and_with_the_signal(blend: Callable[[float, float], float]) -> None:
    for value in (0.0, 0.5, 1.0):
        assert 0 <= blend(0.0, value) < blend(0.5, value) < blend(1.0, value) <= 1
        assert 0 <= blend(value, 0.0) < blend(value, 0.5) < blend(value, 1.0) <= 1
    assert blend(1.0, 1.0) == pytest.approx(1.0)


def test_a_signal_that_decides_outweighs_the_strategy() -> None:
    assert weigh_signal(0.0, 0.5) > weigh_signal(1.0, 0.1)


def test_the_centre_is_named_by_the_request_or_else_by_the_question(graph_of: GraphOf) -> None:
    graph = graph_of(CHAIN)
    numbers = graph.entity_index
    assert centre_of(graph, "Where did Ada meet Cole?", [])[0].keys() == {numbers["e:Ada"], numbers["e:Cole"]}
    assert centre_of(graph, "Where did Ada meet Cole?", ["Dorn"]) == ({numbers["e:Dorn"]: 1.0}, ())
    assert centre_of(graph, "", ["e:Dorn", "Zed"]) == ({numbers["e:Dorn"]: 1.0}, ("Zed",))
