from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.answering.draft import of_model, of_quotations
from agentic_rag_backend.domain.answer import ClaimStatus

pytestmark = pytest.mark.hypothesis

_STATUSES = st.lists(st.sampled_from(get_args(ClaimStatus)), max_size=5)
_SHARE = st.floats(0, 1)


@given(_SHARE, _STATUSES, st.booleans(), _SHARE)
def test_it_is_a_probability(answerable: float, statuses: list[ClaimStatus], agrees: bool, rank: float) -> None:
    assert 0.0 <= of_quotations(answerable, statuses) <= 1.0
    assert 0.0 <= of_model(answerable, statuses, agrees=agrees, rank=rank) <= 1.0


@given(_SHARE, _SHARE)
def test_a_contradicted_sentence_costs_more_than_an_unverified_one(answerable: float, rank: float) -> None:
    def sure(*statuses: ClaimStatus) -> float:
        return of_model(answerable, statuses, agrees=False, rank=rank)

    assert sure("supported") > sure("supported", "unverified") > sure("supported", "contradicted") > 0.0


def test_better_evidence_is_surer() -> None:
    def sure(answerable: float = 0.5, agrees: bool = False, rank: float = 0.5) -> float:
        return of_model(answerable, ["supported"], agrees=agrees, rank=rank)

    assert sure() < min(sure(answerable=0.9), sure(agrees=True), sure(rank=1.0))


def test_quotations_have_the_confidence_of_their_evidence() -> None:
    assert of_quotations(0.9, ["supported", "supported"]) == pytest.approx(0.9)
    assert of_quotations(0.9, ["supported", "contradicted"]) < 0.9
    assert of_quotations(0.9, ["unverified"]) == of_quotations(0.9, []) == of_model(0.9, [], agrees=True, rank=1.0) == 0.0
