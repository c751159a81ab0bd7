from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.retrieval.scoring import cover, list_terms

TERMS = st.frozensets(st.integers(0, 12), max_size=8)


@given(question=TERMS, passages=st.dictionaries(st.integers(0, 30), TERMS, max_size=6))
def test_weights_of_terms_are_shares(question: frozenset[int], passages: dict[int, frozenset[int]]) -> None:
    coverage = cover(question, passages)
    assert set(coverage.weights) == question
    assert all(0.0 <= weight <= 1.0 for weight in coverage.weights.values())
    if question:
        assert sum(coverage.weights.values()) == pytest.approx(1.0)
    for key, terms in passages.items():
        assert coverage.held[key] == question & terms
        assert 0.0 <= coverage.of(coverage.held[key]) <= 1.0 + 1e-9


def test_rare_terms_weigh_more() -> None:
    coverage = cover(frozenset({1, 2, 3}), {"a": frozenset({1, 2}), "b": frozenset({1}), "c": frozenset({1, 9})})
    assert coverage.weights[3] > coverage.weights[2] > coverage.weights[1]

    numbered = cover(frozenset({1, 2}), {"a": frozenset({1}), "b": frozenset({2})}).number_passages({"b": 7})
    assert numbered.held == {7: frozenset({2})}
    assert numbered.weigh_added_terms(3, 7) == numbered.weights[2]

    coverage = cover(frozenset(), {"a": frozenset({1})})
    assert coverage.of(coverage.held["a"]) == 0.0


def test_only_what_the_first_passage_lacks_is_added() -> None:
    coverage = cover(frozenset({1, 2, 3}), {"source": frozenset({1}), "target": frozenset({1, 2})})
    assert coverage.weigh_added_terms("source", "target") == coverage.weights[2]
    assert coverage.weigh_added_terms("target", "source") == 0.0
    assert coverage.weigh_added_terms("source", "unread") == 0.0
    assert coverage.weigh_added_terms("unread", "target") == pytest.approx(coverage.weights[1] + coverage.weights[2])


@given(question=TERMS, passages=st.dictionaries(st.integers(0, 30), TERMS, max_size=6))
def test_terms_held_are_those_of_both(question: frozenset[int], passages: dict[int, frozenset[int]]) -> None:
    arrays = {key: np.array(sorted(terms), dtype=np.int64) for key, terms in passages.items()}
    assert list_terms(question, arrays) == {key: question & terms for key, terms in passages.items()}
