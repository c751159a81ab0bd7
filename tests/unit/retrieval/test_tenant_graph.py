from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from agentic_rag_backend.domain.graph import Entity, Mention, Support
from agentic_rag_backend.retrieval.linking import link_question
from agentic_rag_backend.retrieval.pagerank import personalised_pagerank
from agentic_rag_backend.retrieval.tenant_graph import ABOUT_WEIGHT, TenantGraph, build_tenant_graph

Build = Callable[..., TenantGraph]


def names_of(graph: TenantGraph, chunk: str) -> set[str]:
    return {graph.entities[number].name for number in graph.entities_of(graph.chunk_index[chunk])}


def row(adjacency, number: int) -> dict[int, float]:
    _, columns, weights = adjacency.gather(np.array([number], dtype=np.int32))
    return dict(zip(columns.tolist(), weights.tolist(), strict=True))


def test_a_chunk_leads_to_what_it_mentions(graph_of: Build) -> None:
    graph = graph_of({"c1": ["Mira", "Osric"], "c2": ["Osric"]})
    assert graph.chunk_ids == ("c1", "c2")
    assert names_of(graph, "c1") == {"Mira", "Osric"}
    assert names_of(graph, "c2") == {"Osric"}
    assert graph.document_frequency.tolist() == [1, 2]


def test_only_visible_versions_count() -> None:
    entities = [Entity(id=name, name=name, type="person") for name in ("Mira", "Osric", "Petra")]
    mentions = [
        Mention("Mira", Support("d1", 1, "old")),
        Mention("Osric", Support("d1", 2, "current")),
        Mention("Petra", Support("d1", 3, "coming")),
        Mention("Petra", Support("deleted", 1, "gone")),
        Mention("unknown", Support("d1", 2, "current")),
    ]
    graph = build_tenant_graph(entities, mentions, {"d1": 2})
    assert graph.chunk_ids == ("current",)
    assert names_of(graph, "current") == {"Osric"}
    assert graph.document_frequency.tolist() == [0, 1, 0]
    assert set(graph.names) == {"osric"}


def test_what_a_chunk_is_about_weighs_twice(graph_of: Build) -> None:
    graph = graph_of({"c1": ["*Mira"], "c2": ["Mira"]})
    mira = graph.entity_index["e:Mira"]
    assert row(graph.links, mira) == {0: ABOUT_WEIGHT, 1: 1.0}
    assert row(graph.entity_to_chunk, mira) == pytest.approx({0: 2 / 3, 1: 1 / 3})
    assert graph.about.tolist() == [True]
    assert not graph_of({"c1": ["Mira"]}).about.any()


@pytest.mark.parametrize("held", [["*Mira", "Mira"], ["Mira", "*Mira"]])
def test_mentioned_and_about_at_once_is_about(graph_of: Build, held: list[str]) -> None:
    graph = graph_of({"c1": held})
    assert row(graph.links, 0) == {0: ABOUT_WEIGHT}
    assert graph.document_frequency.tolist() == [1]


def test_rare_names_weigh_more(graph_of: Build) -> None:
    graph = graph_of({f"c{number}": ["Common", *(["Rare"] if number == 0 else [])] for number in range(9)})
    common, rare = graph.entity_index["e:Common"], graph.entity_index["e:Rare"]
    assert graph.idf[rare] == pytest.approx(math.log1p(9 / 1))
    assert graph.idf[common] == pytest.approx(math.log1p(9 / 9))
    shares = row(graph.chunk_to_entity, graph.chunk_index["c0"])
    assert shares[rare] / shares[common] == pytest.approx(graph.idf[rare] / graph.idf[common])


def test_transitions_are_shares(random_graph: Build) -> None:
    graph = random_graph(chunks=200, entities=80)
    chunk_sums = np.add.reduceat(graph.chunk_to_entity.weights, graph.chunk_to_entity.starts[:-1])
    assert chunk_sums == pytest.approx(np.ones(len(graph.chunk_ids)))
    for number in range(len(graph.entities)):
        total = sum(row(graph.entity_to_chunk, number).values())
        assert total == pytest.approx(1.0 if graph.document_frequency[number] else 0.0)


def test_names_and_aliases_are_compared_in_one_form(graph_of: Build) -> None:
    graph = graph_of(
        {"c1": ["International Business Machines", "Mira Voss"], "c2": ["The I.B.M."]},
        aliases={"International Business Machines": ["IBM", "I.B.M.", "!?"], "Mira Voss": ["Mira"]},
    )
    machines, acronym = graph.entity_index["e:International Business Machines"], graph.entity_index["e:The I.B.M."]
    assert graph.names["ibm"] == (machines, acronym)
    assert graph.names["mira"] == graph.names["mira voss"] == (graph.entity_index["e:Mira Voss"],)
    assert "" not in graph.names


def test_an_empty_graph_works(graph_of: Build) -> None:
    graph = graph_of({}, extra=["Mira"])
    assert graph.chunk_ids == ()
    assert graph.names == {}
    assert link_question(graph, "Mira") == {}
    assert personalised_pagerank(graph, np.zeros(0), np.ones(1)).shape == (0,)
    assert build_tenant_graph([], [], {}).size_bytes >= 0


def test_size_grows_with_the_graph(random_graph: Build) -> None:
    small, large = random_graph(chunks=100, entities=50), random_graph(chunks=1000, entities=500)
    assert 5 * small.size_bytes < large.size_bytes < 20 * small.size_bytes


def test_gather_repeats_rows_and_keeps_their_order(graph_of: Build) -> None:
    graph = graph_of({"c1": ["Mira"], "c2": ["Mira", "Osric"]})
    position, columns, weights = graph.links.gather(np.array([1, 0, 1], dtype=np.int32))
    assert position.tolist() == [0, 1, 1, 2]
    assert columns.tolist() == [1, 0, 1, 1]
    assert weights.tolist() == [1.0] * 4


@pytest.mark.parametrize("floor", [0.0, 1e-12])
def test_push_is_the_matrix_product(random_graph: Build, floor: float) -> None:
    graph = random_graph(chunks=60, entities=30)
    mass = np.random.default_rng(1).random(60)
    expected = np.zeros(30)
    for chunk in range(60):
        for entity, weight in row(graph.chunk_to_entity, chunk).items():
            expected[entity] += weight * mass[chunk]
    assert graph.chunk_to_entity.push(mass, floor) == pytest.approx(expected)


def test_push_holds_back_what_is_not_above_the_floor(graph_of: Build) -> None:
    graph = graph_of({"c1": ["Mira"], "c2": ["Osric"]})
    assert graph.chunk_to_entity.push(np.array([0.5, 0.1]), 0.1).tolist() == [0.5, 0.0]
