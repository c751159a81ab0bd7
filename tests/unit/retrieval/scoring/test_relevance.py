from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.retrieval.scoring.relevance import relevance

COSINE, COVERAGE = st.floats(-1, 1), st.floats(0, 1)


@given(COSINE, COVERAGE)
def test_it_lies_between_zero_and_one(cosine: float, coverage: float) -> None:
    assert 0.0 <= relevance(cosine, coverage) <= 1.0


@given(st.tuples(COSINE, COSINE), st.tuples(COVERAGE, COVERAGE))
def test_it_grows_with_both(cosines: tuple[float, float], coverages: tuple[float, float]) -> None:
    assert relevance(min(cosines), min(coverages)) <= relevance(max(cosines), max(coverages))


def test_its_ends() -> None:
    assert relevance(1.0, 1.0) == 1.0
    assert relevance(0.0, 0.0) == relevance(-1.0, 0.0) == 0.0
    assert relevance(0.5, 0.0) < relevance(0.5, 0.1) < relevance(0.6, 0.1)


def test_rounding_never_leads_out_of_bounds() -> None:
    assert relevance(1.0000001, 1.0000001) == 1.0
