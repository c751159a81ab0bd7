from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.knowledge.tenant_graph.pagerank import local_walk

Build = Callable[..., TenantGraph]


def defined(graph: TenantGraph, chunk_seeds: np.ndarray, entity_seeds: np.ndarray, floor: float, iterations: int) -> np.ndarray:
    """Walk over whole arrays, by definition."""
    chunks, entities = chunk_seeds, entity_seeds
    for _ in range(iterations):
        to_chunks = graph.transitions.to_chunks(np.where(entities > floor, entities, 0.0))
        to_entities = graph.transitions.to_entities(np.where(chunks > floor, chunks, 0.0))
        chunks, entities = 0.9 * to_chunks + 0.1 * chunk_seeds, 0.9 * to_entities + 0.1 * entity_seeds
    return chunks


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**16),
    chunks=st.integers(1, 60),
    entities=st.integers(5, 60),
    seeds=st.dictionaries(st.integers(0, 119), st.floats(0.01, 1), max_size=8),
    floor=st.sampled_from([0.0, 1e-4, 0.01, 0.2]),
    iterations=st.integers(0, 12),
)
def test_it_is_the_walk_over_the_whole_graph(
    random_graph: Build, seed: int, chunks: int, entities: int, seeds: dict[int, float], floor: float, iterations: int
) -> None:
    graph = random_graph(chunks=chunks, entities=entities, per_chunk=3, seed=seed)
    given_mass = np.zeros(graph.chunk_places + graph.entity_places)
    for place, mass in seeds.items():
        given_mass[place % len(given_mass)] = mass
    start = given_mass[: graph.chunk_places], given_mass[graph.chunk_places :]
    walked = local_walk(graph.transitions, *start, damping=0.9, iterations=iterations, floor=floor)
    assert walked == pytest.approx(defined(graph, *start, floor, iterations), abs=1e-12)
    again = local_walk(graph.transitions, *start, damping=0.9, iterations=iterations, floor=floor)
    assert walked.tobytes() == again.tobytes()


def test_a_node_that_is_not_above_the_floor_passes_nothing_on(graph_of: Build) -> None:
    graph = graph_of({"c1": ["Mira"], "c2": ["Mira", "Osric"], "c3": ["Osric"]})
    seeds = np.zeros(graph.chunk_places)
    seeds[graph.chunk_index["c1"]] = 1.0
    walk = partial(local_walk, graph.transitions, seeds, np.zeros(graph.entity_places), damping=0.9)
    reached = {
        floor: {
            graph.chunk_ids[number]
            for iterations in range(6)
            for number in np.flatnonzero(walk(iterations=iterations, floor=floor)).tolist()
        }
        for floor in (0.0, 0.41)
    }
    assert reached == {0.0: {"c1", "c2", "c3"}, 0.41: {"c1", "c2"}}


def test_it_reads_no_more_than_the_neighbourhood(random_graph: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(chunks=3000, entities=3000, per_chunk=3)
    read: list[int] = []
    rows_of = graph.transitions.from_chunks
    seeds = np.zeros(graph.chunk_places)
    seeds[0] = 1.0

    class Counted:
        chunk_keys, entity_keys = graph.transitions.chunk_keys, graph.transitions.entity_keys
        from_entities = staticmethod(graph.transitions.from_entities)

        @staticmethod
        def from_chunks(rows: np.ndarray) -> object:
            read.extend(rows.tolist())
            return rows_of(rows)

    local_walk(Counted(), seeds, np.zeros(graph.entity_places), damping=0.9, iterations=25, floor=1e-3)  # type: ignore[arg-type]
    assert len(read) == len(set(read)), "the edges of a node are read once"
    assert len(read) <= 1000
