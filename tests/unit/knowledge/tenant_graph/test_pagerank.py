from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentic_rag_backend.knowledge.tenant_graph import pagerank
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.knowledge.tenant_graph.pagerank import personalised_pagerank

Build = Callable[..., TenantGraph]


def seeded(graph: TenantGraph, *, chunks: dict[int, float], entities: dict[int, float]) -> tuple[np.ndarray, np.ndarray]:
    chunk_seeds, entity_seeds = np.zeros(graph.chunk_places), np.zeros(graph.entity_places)
    for number, mass in chunks.items():
        chunk_seeds[number] = mass
    for number, mass in entities.items():
        entity_seeds[number] = mass
    return chunk_seeds, entity_seeds


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**16), entities=st.integers(5, 60), chunks=st.integers(1, 80))
def test_mass_is_never_negative_nor_more_than_was_given(random_graph: Build, seed: int, entities: int, chunks: int) -> None:
    graph = random_graph(chunks=chunks, entities=entities, per_chunk=3, seed=seed)
    random = np.random.default_rng(seed)
    given_mass = random.random(graph.chunk_places + graph.entity_places)
    given_mass /= given_mass.sum()
    mass = personalised_pagerank(graph, given_mass[: graph.chunk_places], given_mass[graph.chunk_places :])
    assert (mass >= 0).all()
    assert mass.sum() <= 1.0 + 1e-9


def test_it_agrees_with_the_definition(random_graph: Build) -> None:
    """The stationary mass solves m = (1 - d) s + d P m, here with dense matrices."""
    graph = random_graph(chunks=40, entities=25, per_chunk=3)
    weights = np.zeros((40, 25))
    for entity in range(25):
        _, chunks, held = graph.links.gather(np.array([entity]))
        weights[chunks, entity] = held
    size = 40 + 25
    matrix = np.zeros((size, size))
    by_idf = weights * graph.idf
    matrix[40:, :40] = (by_idf / by_idf.sum(axis=1, keepdims=True)).T
    matrix[:40, 40:] = weights / np.maximum(weights.sum(axis=0), 1)
    seeds = np.zeros(size)
    seeds[3], seeds[41] = 0.4, 0.6
    exact = np.linalg.solve(np.eye(size) - 0.5 * matrix, 0.5 * seeds)[:40]
    walked = personalised_pagerank(graph, seeds[:40], seeds[40:], damping=0.5, iterations=60)
    assert walked == pytest.approx(exact, abs=1e-9)


def test_the_cut_walk_keeps_the_best(random_graph: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(chunks=17_000, entities=8_000)
    assert graph.node_count > pagerank.DENSE_BELOW
    random = np.random.default_rng(3)
    shared = []
    for _ in range(8):
        seeds = seeded(
            graph,
            chunks={int(number): 0.35 / 20 for number in random.choice(17_000, 20, replace=False)},
            entities={int(number): 0.65 / 2 for number in random.choice(8_000, 2, replace=False)},
        )
        cut = personalised_pagerank(graph, *seeds)
        with monkeypatch.context() as patched:
            patched.setattr(pagerank, "EPSILON", 0.0)
            exact = personalised_pagerank(graph, *seeds)
        assert (cut >= 0).all()
        assert cut.sum() <= exact.sum() + 1e-9
        assert np.count_nonzero(cut) < np.count_nonzero(exact)
        best = [set(np.argsort(-mass, kind="stable")[:20].tolist()) for mass in (cut, exact)]
        shared.append(len(best[0] & best[1]) / 20)
    assert sum(shared) / len(shared) >= 0.95


def test_the_same_seeds_give_the_same_bits(random_graph: Build) -> None:
    graph, again = (random_graph(chunks=300, entities=120) for _ in range(2))
    seeds = seeded(graph, chunks={0: 0.5}, entities={4: 0.5})
    assert personalised_pagerank(graph, *seeds).tobytes() == personalised_pagerank(again, *seeds).tobytes()


def test_seeds_are_not_changed(random_graph: Build) -> None:
    graph = random_graph(chunks=30, entities=10)
    seeds = seeded(graph, chunks={0: 0.5}, entities={1: 0.5})
    held = [each.copy() for each in seeds]
    personalised_pagerank(graph, *seeds)
    assert all((now == before).all() for now, before in zip(seeds, held, strict=True))


def test_unconnected_nodes_get_no_weight(graph_of: Build) -> None:
    graph = graph_of({"c1": ["Mira"], "c2": ["Mira", "Osric"], "c3": ["Osric"], "far": ["Petra"]})
    mass = personalised_pagerank(graph, *seeded(graph, chunks={}, entities={graph.entity_index["e:Mira"]: 1.0}))
    by_id = {id: mass[number] for id, number in graph.chunk_index.items()}
    assert by_id["c1"] > by_id["c3"] > 0
    assert by_id["far"] == 0


def test_a_seed_that_is_mentioned_nowhere_leaves_nothing(graph_of: Build) -> None:
    graph = graph_of({"c1": ["Mira"]}, extra=["Nobody"])
    mass = personalised_pagerank(graph, *seeded(graph, chunks={}, entities={graph.entity_index["e:Nobody"]: 1.0}))
    assert mass.tolist() == [0.0]
    assert personalised_pagerank(graph, *seeded(graph, chunks={}, entities={})).tolist() == [0.0]
