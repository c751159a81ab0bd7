"""Trails from both ends meet in every path, once a direction, and none repeats an entity."""

from __future__ import annotations

from itertools import pairwise, permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_rag_backend.knowledge.paths.links import Trails, passage_factor, path_score, strength

NODES = "abcdef"
Graph = dict[str, dict[str, float]]


def found(graph: Graph, sources: str, targets: str, max_hops: int) -> dict[tuple[str, ...], float]:
    ahead, behind = (Trails(*ends, lambda node: 0.5) for ends in ((sources, targets), (targets, sources)))
    for _ in range(min(max_hops, 2)):
        for trails in (ahead, behind):
            frontier = set(trails.frontier(99))
            trails.extend({node: near for node, near in graph.items() if node in frontier})
    return dict(ahead.meetings(behind, max_hops))


def expected(graph: Graph, sources: str, targets: str, max_hops: int) -> dict[tuple[str, ...], float]:
    """Return all paths by trying all orders of entities."""
    paths = {}
    for length in range(2, max_hops + 2):
        for nodes in permutations(NODES, length):
            inner = nodes[1:-1]
            ends = nodes[0] in sources and nodes[-1] in targets and not set(inner) & {*sources, *targets}
            steps = list(pairwise(nodes))
            if ends and all(other in graph.get(one, {}) for one, other in steps):
                score = 0.8 ** (len(steps) - 1) * 0.5 ** len(inner)
                for one, other in steps:
                    score *= graph[one][other]
                paths[nodes] = score
    return paths


_pairs = st.sampled_from([pair for pair in product(NODES, NODES) if pair[0] < pair[1]])


@settings(max_examples=60)
@given(
    edges=st.dictionaries(_pairs, st.sampled_from([0.25, 0.5, 0.75]), max_size=7),
    ends=st.sampled_from([("a", "f"), ("ab", "f"), ("a", "ef"), ("ab", "ab"), ("abc", "bcd")]),
    max_hops=st.integers(1, 4),
)
def test_every_path_is_found_with_its_score(edges: dict[tuple[str, str], float], ends: tuple[str, str], max_hops: int) -> None:
    graph: Graph = {}
    for (one, other), step in edges.items():
        graph.setdefault(one, {})[other] = graph.setdefault(other, {})[one] = step
    paths = found(graph, *ends, max_hops)
    assert {nodes: round(score, 9) for nodes, score in paths.items()} == {
        nodes: round(score, 9) for nodes, score in expected(graph, *ends, max_hops).items()
    }


def test_the_score_prefers_short_strong_paths_over_rare_entities() -> None:
    assert path_score([0.5], []) == strength(0.5) == 0.5
    assert path_score([1.0, 1.0], [1]) == pytest.approx(0.8 * (2 / 3) ** 2)
    assert path_score([1.0], []) > path_score([1.0, 1.0], [1]) > path_score([1.0, 0.5], [1]) > path_score([1.0, 0.5], [10])
    assert [passage_factor(mentions) for mentions in (0, 1, 10, 1000)] == [1, 1, 0.5, 0.25]


def test_the_best_trails_are_continued() -> None:
    graph: Graph = {"a": {node: 0.1 * number for number, node in enumerate("bcde", 1)}}
    trails = Trails("a", "f", lambda node: 1.0)
    assert trails.frontier(9) == ["a"]
    trails.extend(graph)
    assert trails.frontier(2) == ["e", "d"]
