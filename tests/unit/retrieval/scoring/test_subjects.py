"""Passages about one subject: the graph gives them one value, and the text orders them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.retrieval.scoring.subjects import SUBJECT_SHARE, share, subject_keys, subjects_of
from agentic_rag_backend.retrieval.strategies.graph import SCORE_BASE, GraphEvidence, direct_scores, walked_mass

Build = Callable[..., TenantGraph]


def test_a_subject_is_the_set_of_entities_that_a_chunk_is_about(
    graph_of: Build,
) -> None:
    graph = graph_of(
        {
            "first": ["*Rhine", "Basel"],
            "second": ["*Rhine", "Cologne", "Basel"],
            "section": ["*Rhine", "*Tributaries"],
            "none": ["Rhine", "Basel"],
        }
    )
    number = graph.chunk_index
    subjects = subjects_of(graph, list(number.values()))
    assert subjects[number["first"]] == subjects[number["second"]]
    assert subjects[number["section"]] != subjects[number["first"]]
    assert number["none"] not in subjects
    assert subjects_of(graph, []) == {}


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**16), numbers=st.lists(st.integers(0, 29), unique=True))
def test_keys_are_equal_where_subjects_are(random_graph: Build, seed: int, numbers: list[int]) -> None:
    graph = random_graph(chunks=30, entities=4, per_chunk=2, seed=seed)
    chunks = [number for number in numbers if number < graph.chunk_places]
    subjects, keys = subjects_of(graph, chunks), subject_keys(graph, np.array(chunks, dtype=np.int64)).tolist()
    for one, key in zip(chunks, keys, strict=True):
        assert (key == 0) == (one not in subjects)
        for other, another in zip(chunks, keys, strict=True):
            assert (key == another) == (subjects.get(one) == subjects.get(other))


@given(
    values=st.dictionaries(st.integers(0, 9), st.floats(0, 1)),
    subjects=st.dictionaries(st.integers(0, 9), st.tuples(st.integers(0, 2))),
)
def test_a_value_moves_to_the_greatest_of_its_subject(values: dict[int, float], subjects: dict[int, tuple[int, ...]]) -> None:
    shared = share(values, subjects)
    assert shared.keys() == values.keys()
    for chunk, value in values.items():
        same = [values[each] for each in values if chunk in subjects and subjects.get(each) == subjects[chunk]]
        assert shared[chunk] == pytest.approx(SUBJECT_SHARE * max(same, default=value) + (1 - SUBJECT_SHARE) * value)
        assert shared[chunk] == value or same


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
    assert walked["long"] > walked["answer"], "the walk prefers the passage with more names"
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
    subjects = subjects_of(graph, list(graph.chunk_index.values()))
    for one in hybrid:
        for other in hybrid:
            same = subjects.get(graph.chunk_index[one], "none") == subjects.get(graph.chunk_index[other])
            if same and (hybrid[one] + SCORE_BASE) * SUBJECT_SHARE > hybrid[other] + SCORE_BASE:
                assert direct[one] >= direct[other]
