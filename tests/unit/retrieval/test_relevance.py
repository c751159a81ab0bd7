from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.models.embedding.calibration import BUNDLED_CALIBRATION
from agentic_rag_backend.retrieval.scoring import relevance

COSINE, COVERAGE = st.floats(-1, 1), st.floats(0, 1)


@given(COSINE, COVERAGE)
def test_it_lies_between_zero_and_one(cosine: float, coverage: float) -> None:
    assert 0.0 <= relevance(cosine, coverage, BUNDLED_CALIBRATION) <= 1.0


@given(st.tuples(COSINE, COSINE), st.tuples(COVERAGE, COVERAGE))
def test_it_grows_with_both(cosines: tuple[float, float], coverages: tuple[float, float]) -> None:
    assert relevance(min(cosines), min(coverages), BUNDLED_CALIBRATION) <= relevance(
        max(cosines), max(coverages), BUNDLED_CALIBRATION
    )


def test_its_ends() -> None:
    assert relevance(1.0, 1.0, BUNDLED_CALIBRATION) == 1.0
    assert relevance(0.0, 0.0, BUNDLED_CALIBRATION) == relevance(-1.0, 0.0, BUNDLED_CALIBRATION) == 0.0
    assert (
        relevance(0.5, 0.0, BUNDLED_CALIBRATION)
        < relevance(0.5, 0.1, BUNDLED_CALIBRATION)
        < relevance(0.6, 0.1, BUNDLED_CALIBRATION)
    )

    assert relevance(1.0000001, 1.0000001, BUNDLED_CALIBRATION) == 1.0
