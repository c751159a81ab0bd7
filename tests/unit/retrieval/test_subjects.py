"""Passages about one subject: the graph gives them one value, and the text orders them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.retrieval.hops import SUBJECT_SHARE, share, subject_keys
from agentic_rag_backend.retrieval.strategies.graph import SCORE_BASE, GraphEvidence, direct_scores, walked_mass

Build = Callable[..., TenantGraph]


def test_a_subject_is_the_set_of_entities_that_a_chunk_is_about(graph_of: Build) -> None:
    chunks = {
        "first": ["*Rhine", "Basel"],
        "second": ["*Rhine", "Cologne", "Basel"],
        "section": ["*Rhine", "*Tributaries"],
        "none": ["Rhine", "Basel"],
    }
    graph = graph_of(chunks)
    numbers = [graph.chunk_index[id] for id in chunks]
    first, second, section, none = subject_keys(graph, np.array(numbers)).tolist()
    assert first == second != section
    assert none == 0 != first != section != 0
    assert len(subject_keys(graph, np.array([], dtype=np.int64))) == 0


@given(rows=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3)), max_size=12))
def test_a_value_moves_to_the_greatest_of_its_subject(rows: list[tuple[float, int]]) -> None:
    values = np.array([value for value, _ in rows])
    shared = share(values, np.array([subject for _, subject in rows], dtype=np.uint64))
    for (value, subject), moved in zip(rows, shared.tolist(), strict=True):
        greatest = max(other for other, same in rows if same == subject)
        assert moved == pytest.approx(SUBJECT_SHARE * greatest + (1 - SUBJECT_SHARE) * value if subject else value)


ARTICLE = {
    "answer": ["*Rhine", "Basel"],
    "long": ["*Rhine", "Basel", "Cologne", "Mainz", "Bonn"],
    "other": ["*Danube", "Basel", "Cologne", "Mainz"],
    "distant": ["*Elbe", "Dresden"],
}


def evidence(graph: TenantGraph, hybrid: dict[str, float], *names: str) -> GraphEvidence:
    linked = {graph.entity_index[f"e:{name}"]: 1.0 for name in names}
    return GraphEvidence(np.zeros(1, np.float32), hybrid, {}, linked)


def test_the_text_decides_between_passages_of_one_article(graph_of: Build) -> None:
    graph = graph_of(ARTICLE)
    found = evidence(graph, {"answer": 1.0, "long": 0.9, "other": 0.4}, "Cologne", "Mainz")
    walked = walked_mass(graph, found)
    mass = dict(zip(walked.numbers.tolist(), walked.mass.tolist(), strict=True))
    assert mass[graph.chunk_index["long"]] > mass[graph.chunk_index["answer"]], "the walk prefers the passage with more names"
    direct = direct_scores(graph, found)
    assert direct["answer"] > direct["long"] > direct["other"]


def test_the_graph_decides_between_articles(graph_of: Build) -> None:
    direct = direct_scores(
        graph := graph_of(ARTICLE),
        evidence(graph, {"distant": 0.5, "other": 0.5}, "Cologne", "Mainz"),
    )
    assert direct["other"] > direct["distant"]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**16),
    scores=st.lists(st.floats(0, 1), min_size=1, max_size=40),
)
def test_within_a_subject_the_walk_outweighs_small_differences_of_the_text_only(
    random_graph: Build, seed: int, scores: list[float]
) -> None:
    graph = random_graph(chunks=40, entities=12, per_chunk=3, seed=seed)
    hybrid = dict(zip(sorted(graph.chunk_index), scores, strict=False))
    direct = direct_scores(graph, GraphEvidence(np.zeros(1, np.float32), hybrid, {}, {0: 1.0}))
    numbers = np.array([graph.chunk_index[id] for id in hybrid])
    subjects = dict(zip(hybrid, subject_keys(graph, numbers).tolist(), strict=True))
    for one in hybrid:
        for other in hybrid:
            same = subjects[one] == subjects[other] != 0
            if same and (hybrid[one] + SCORE_BASE) * SUBJECT_SHARE > hybrid[other] + SCORE_BASE:
                assert direct[one] >= direct[other]
