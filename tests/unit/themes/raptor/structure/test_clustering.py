"""Clusters of vectors are complete, each level is smaller than the one below, and order does not matter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.tree import TreeNode
from agentic_rag_backend.themes.raptor.build_options import METHODS, TreeOptions
from agentic_rag_backend.themes.raptor.structure import clustering
from agentic_rag_backend.themes.raptor.structure.clustering import Leaves, centre_of, cluster_rows, plan_tree, split_rows
from agentic_rag_backend.themes.raptor.structure.mixture import best_mixture, fit_mixture

TENANT = TenantId("t_" + "a" * 32)


@st.composite
def vectors(draw: st.DrawFn, most: int = 120) -> NDArray[np.float32]:
    """Return unit vectors around a few directions. Some of them are equal."""
    count = draw(st.integers(0, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    themes = rng.normal(size=(draw(st.integers(1, 8)), 24))
    spread = draw(st.sampled_from([0.0, 0.1, 0.5, 2.0]))
    found = themes[rng.integers(0, len(themes), count)] + spread * rng.normal(size=(count, 24))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)  # type: ignore[no-any-return]


shapes = st.builds(
    TreeOptions,
    max_levels=st.integers(1, 5),
    cluster_size=st.integers(2, 12),
    max_clusters_per_level=st.sampled_from([1, 3, 10, 5_000]),
    method=st.sampled_from(METHODS),
)


@settings(max_examples=60)
@given(vectors(), shapes)
def test_every_row_is_in_one_or_two_clusters_within_the_bounds(rows: NDArray[np.float32], options: TreeOptions) -> None:
    found = cluster_rows(rows, options)
    counts = np.zeros(len(rows), int)
    for each in found:
        assert len(set(each)) == len(each)
        counts[list(each)] += 1

    assert len(found) <= options.max_clusters_per_level
    if len(rows):
        size = max(options.cluster_size, -(-len(rows) // options.max_clusters_per_level))
        joined = len(found) == options.max_clusters_per_level or size > options.cluster_size
        assert counts.min() == 1 if options.method == "kmeans" else counts.min() >= 1
        assert joined or max(map(len, found)) <= options.ceiling
        assert len(found) == options.max_clusters_per_level or max(map(len, found)) <= 2 * size
        assert joined or counts.max() <= 3
        assert min(map(len, found)) >= min(len(rows), options.floor)
        assert len(found) == 1 or len(found) < len(rows)
    assert cluster_rows(rows.copy(), options) == found


@settings(max_examples=40)
@given(vectors(), shapes)
def test_each_level_gathers_all_of_the_one_below_in_fewer_nodes(rows: NDArray[np.float32], options: TreeOptions) -> None:
    leaves = Leaves(tuple(f"c{n}" for n in range(len(rows))), tuple(f"d{n % 7}" for n in range(len(rows))), rows)
    nodes = plan_tree(TENANT, leaves, options)
    levels: dict[int, list[TreeNode]] = {}
    for node in nodes:
        levels.setdefault(node.level, []).append(node)
    below = set(leaves.ids)
    for level in sorted(levels):
        here = levels[level]
        assert {child for node in here for child in node.children} == below
        assert len(here) < len(below) or len(below) == 1
        assert len({node.id for node in here}) == len(here)
        below = {node.id for node in here}

    assert len(levels) <= options.max_levels
    assert not rows.size or len(levels) == options.max_levels or len(below) == 1
    document = dict(zip(leaves.ids, leaves.documents, strict=True))
    for node in levels.get(1, []):
        assert [document[child] for child in node.children] == list(node.documents)
        assert node.size == len(node.children)
    if below and len(below) == 1:
        assert nodes[-1].size == len(rows)


def test_themes_that_lie_apart_are_told_apart() -> None:
    rng = np.random.default_rng(3)
    themes = np.eye(6, 48)
    labels = np.repeat(np.arange(6), 9)
    rows = (themes[labels] + 0.05 * rng.normal(size=(54, 48))).astype(np.float32)
    for method in METHODS:
        for each in cluster_rows(rows, TreeOptions(cluster_size=10, method=method)):
            assert len(set(labels[list(each)])) == 1


def test_passages_on_an_edge_belong_to_both_sides() -> None:
    rng = np.random.default_rng(5)
    rows = (np.eye(3, 16)[rng.integers(0, 3, 90)] + 0.25 * rng.normal(size=(90, 16))).astype(np.float32)
    soft, hard = (cluster_rows(rows, TreeOptions(cluster_size=20, method=method)) for method in METHODS)
    shared = [row for row in range(90) if sum(row in each for each in soft) > 1]

    assert 0 < len(shared) < 30
    assert sum(map(len, hard)) == 90


def planted(count: int) -> NDArray[np.float32]:
    """Return rows around three themes, spread so that a mixture has few parts and many points on edges."""
    rng = np.random.default_rng(13)
    rows = rng.normal(size=(3, 32))[rng.integers(0, 3, count)] + 3 * rng.normal(size=(count, 32))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)  # type: ignore[no-any-return]


def test_what_is_compared_grows_with_the_rows_and_not_with_their_square(monkeypatch: pytest.MonkeyPatch) -> None:
    centres = 0

    def counted(rows: NDArray[np.float32]) -> NDArray[np.float32]:
        nonlocal centres
        centres += 1
        return centre_of(rows)

    monkeypatch.setattr(clustering, "centre_of", counted)
    rows = planted(1_200)
    soft = sum(map(len, cluster_rows(rows, TreeOptions())))

    assert soft > len(rows), "there are edges"
    assert centres < 2 * len(rows)


def test_a_row_on_an_edge_finds_its_cluster_where_there_are_too_many_to_compare_with_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = planted(1_200)
    all_compared = cluster_rows(rows, TreeOptions())
    monkeypatch.setattr(clustering, "_COMPARED", 4)
    few_compared = cluster_rows(rows, TreeOptions())
    monkeypatch.setattr(clustering, "_WAYS", len(rows))

    assert cluster_rows(rows, TreeOptions()) == all_compared
    assert few_compared != all_compared
    assert tightness(rows, few_compared) > 0.97 * tightness(rows, all_compared)


def tightness(rows: NDArray[np.float32], clusters: Sequence[Sequence[int]]) -> float:
    """Return the mean cosine of members and their cluster's centre."""
    return float(np.mean(np.concatenate([rows[list(each)] @ centre_of(rows[list(each)]) for each in clusters])))


@pytest.mark.parametrize("count", [1, 3])
def test_the_criterion_finds_as_many_components_as_there_are(count: int) -> None:
    rng = np.random.default_rng(11)
    rows = 8 * np.eye(count, 5)[np.repeat(np.arange(count), 60)] + rng.normal(size=(60 * count, 5))
    mixture = best_mixture(rows, range(1, 7))
    shares = mixture.compute_responsibilities(rows)

    assert len(mixture.weights) == count
    assert np.allclose(shares.sum(axis=1), 1)
    assert np.isclose(mixture.weights.sum(), 1)
    if count > 1:
        groups = [set(shares.argmax(axis=1)[60 * n : 60 * n + 60].tolist()) for n in range(count)]
        assert sorted(map(len, groups)) == [1] * count


def test_equal_points_are_one_component_and_still_divided() -> None:
    rows = np.ones((50, 4), np.float32) / 2
    assert np.isfinite(fit_mixture(rows.astype(np.float64), 5).bic)
    found = cluster_rows(rows, TreeOptions(cluster_size=5))
    assert sorted(row for each in found for row in each) == list(range(50))
    assert max(map(len, found)) <= 10


@settings(max_examples=40)
@given(vectors())
def test_a_split_shares_nothing_and_loses_nothing(rows: NDArray[np.float32]) -> None:
    if len(rows) < 4:
        return
    parts = split_rows(rows, TreeOptions(cluster_size=4))
    assert len(parts) >= 2
    assert sorted(row for part in parts for row in part) == list(range(len(rows)))


def test_a_centre_has_length_one_or_none() -> None:
    opposite: Any = np.array([[1, 0], [-1, 0]], np.float32)
    assert np.allclose(centre_of(opposite), 0)
    assert np.isclose(np.linalg.norm(centre_of(np.array([[3, 4], [1, 0]], np.float32))), 1)
