"""The confidence of an answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.generation.confidence import confidence

SHARE = st.floats(0, 1)


@given(SHARE, st.integers(0, 9), st.integers(0, 9))
def test_it_is_a_probability(answerable: float, kept: int, dropped: int) -> None:
    assert 0.0 <= confidence(answerable, kept, dropped) <= 1.0


def test_dropped_sentences_cost_and_none_kept_is_none() -> None:
    assert confidence(0.9, 2, 0) == pytest.approx(0.9)
    assert confidence(0.9, 1, 1) < 0.9
    assert confidence(0.9, 0, 3) == 0.0
