from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from knowledge_worlds import known
from tenant_graphs import build_tenant_graph, naming

from agentic_rag_backend.domain.graph import Mention, Support
from agentic_rag_backend.knowledge.tenant_graph.graph import ABOUT_WEIGHT, TenantGraph
from agentic_rag_backend.knowledge.tenant_graph.linking import link_question
from agentic_rag_backend.knowledge.tenant_graph.pagerank import personalised_pagerank
from agentic_rag_backend.knowledge.tenant_graph.rows import Edges

Build = Callable[..., TenantGraph]


def names_of(graph: TenantGraph, chunk: str) -> set[str]:
    return {graph.entity(number).name for number in graph.entities_of(graph.chunk_index[chunk])}


def frequency(graph: TenantGraph, name: str) -> int:
    number = graph.entity_index.get(f"e:{name}")
    return 0 if number is None else int(graph.document_frequency[number])


def row(edges: Edges, number: int) -> dict[int, float]:
    _, columns, weights = edges.gather(np.array([number], dtype=np.int32))
    return dict(zip(columns.tolist(), weights.tolist(), strict=True))


def shares(graph: TenantGraph, *, chunk: str = "", entity: str = "") -> dict[str, float]:
    """Return the targets of one step from a chunk or an entity, with their shares."""
    if chunk:
        mass = np.zeros(graph.chunk_places)
        mass[graph.chunk_index[chunk]] = 1.0
        reached = graph.transitions.to_entities(mass)
        return {graph.entity(number).name: float(reached[number]) for number in np.flatnonzero(reached).tolist()}
    mass = np.zeros(graph.entity_places)
    mass[graph.entity_index[f"e:{entity}"]] = 1.0
    reached = graph.transitions.to_chunks(mass)
    return {graph.chunk_ids[number]: float(reached[number]) for number in np.flatnonzero(reached).tolist()}


def test_a_chunk_leads_to_what_it_mentions(graph_of: Build) -> None:
    graph = graph_of({"c1": ["Mira", "Osric"], "c2": ["Osric"]})
    assert set(graph.chunk_index) == {"c1", "c2"}
    assert names_of(graph, "c1") == {"Mira", "Osric"}
    assert names_of(graph, "c2") == {"Osric"}
    assert [frequency(graph, name) for name in ("Mira", "Osric", "Petra")] == [1, 2, 0]


def test_only_visible_versions_count() -> None:
    said = [
        ("d1", 1, "Mira", "old"),
        ("d1", 2, "Osric", "current"),
        ("d1", 3, "Petra", "coming"),
        ("deleted", 1, "Petra", "gone"),
    ]
    mentions = [Mention(f"e:{name}", Support(document, version, chunk)) for document, version, name, chunk in said]
    mentions.append(Mention("e:unknown", Support("d1", 2, "current")))
    namings = [naming(document, name, version=version) for document, version, name, _ in said]
    graph = build_tenant_graph(known({"d1": 2}, mentions, namings))
    assert set(graph.chunk_index) == {"current"}
    assert names_of(graph, "current") == {"Osric"}
    assert set(graph.entity_index) == {"e:Osric"}
    assert set(graph.names) == {"osric"}


def test_what_a_chunk_is_about_weighs_twice(graph_of: Build) -> None:
    graph = graph_of({"c1": ["*Mira"], "c2": ["Mira"]})
    mira = graph.entity_index["e:Mira"]
    assert row(graph.links, mira) == {graph.chunk_index["c1"]: ABOUT_WEIGHT, graph.chunk_index["c2"]: 1.0}
    assert shares(graph, entity="Mira") == pytest.approx({"c1": 2 / 3, "c2": 1 / 3})
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
    reached = shares(graph, chunk="c0")
    assert reached["Rare"] / reached["Common"] == pytest.approx(graph.idf[rare] / graph.idf[common])


def test_transitions_are_shares(random_graph: Build) -> None:
    graph = random_graph(chunks=200, entities=80)
    for chunk in list(graph.chunk_index)[:50]:
        assert sum(shares(graph, chunk=chunk).values()) == pytest.approx(1.0)
    for number in graph.entity_index.values():
        mass = np.zeros(graph.entity_places)
        mass[number] = 1.0
        reached = graph.transitions.to_chunks(mass).sum()
        assert reached == pytest.approx(1.0 if graph.document_frequency[number] else 0.0)


def test_names_and_aliases_are_compared_in_one_form(graph_of: Build) -> None:
    graph = graph_of(
        {"c1": ["International Business Machines", "Mira Voss"], "c2": ["The I.B.M."]},
        aliases={"International Business Machines": ["IBM", "I.B.M.", "!?"], "Mira Voss": ["Mira"]},
    )
    machines, acronym = graph.entity_index["e:International Business Machines"], graph.entity_index["e:The I.B.M."]
    assert graph.names["ibm"] == (machines, acronym)  # by id
    assert graph.names["mira"] == graph.names["mira voss"] == (graph.entity_index["e:Mira Voss"],)
    assert "" not in graph.names


def test_an_empty_graph_works(graph_of: Build) -> None:
    graph = graph_of({}, extra=["Mira"])
    assert graph.find_mentioned_number("e:Mira") is None
    assert (graph.chunk_count, graph.chunk_places, dict(graph.names)) == (0, 0, {})
    assert link_question(graph, "Mira") == {}
    assert personalised_pagerank(graph, np.zeros(0), np.ones(1)).shape == (0,)
    assert build_tenant_graph(known({})).size_bytes >= 0


def test_size_grows_with_the_graph(random_graph: Build) -> None:
    small, large = random_graph(chunks=100, entities=50), random_graph(chunks=1000, entities=500)
    assert 5 * small.size_bytes < large.size_bytes < 20 * small.size_bytes


def test_gather_repeats_rows_and_keeps_their_order(graph_of: Build) -> None:
    graph = graph_of({"c1": ["Mira"], "c2": ["Mira", "Osric"]})
    mira, osric = graph.entity_index["e:Mira"], graph.entity_index["e:Osric"]
    of_mira, of_osric = graph.links.of(mira).tolist(), graph.links.of(osric).tolist()
    position, columns, weights = graph.links.gather(np.array([osric, mira, osric], dtype=np.int32))
    assert position.tolist() == [0, 1, 1, 2]
    assert columns.tolist() == [*of_osric, *of_mira, *of_osric]
    assert weights.tolist() == [1.0] * 4


def test_a_step_is_the_matrix_product(random_graph: Build) -> None:
    graph = random_graph(chunks=60, entities=30)
    random = np.random.default_rng(1)
    chunks, entities = random.random(graph.chunk_places), random.random(graph.entity_places)
    weights = np.zeros((60, 30))
    for entity in range(30):
        for chunk, weight in row(graph.links, entity).items():
            weights[chunk, entity] = weight
    from_chunks = weights * graph.idf
    from_chunks /= from_chunks.sum(axis=1, keepdims=True)
    from_entities = weights / np.maximum(weights.sum(axis=0), 1)
    assert graph.transitions.to_entities(chunks) == pytest.approx(chunks @ from_chunks)
    assert graph.transitions.to_chunks(entities) == pytest.approx(from_entities @ entities)
    for edges, expected in (
        (graph.transitions.from_chunks(np.arange(60)), from_chunks),
        (graph.transitions.from_entities(np.arange(30)), from_entities.T),
    ):
        steps = np.zeros_like(expected)
        steps[edges[0], edges[1]] = edges[2]
        assert steps == pytest.approx(expected)
