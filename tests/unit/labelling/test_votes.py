"""Votes of labelled documents."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.labelling.votes import LabelledDocument, confidence_of, count_votes


def document(number: int, labels: tuple[str, ...], proximity: float) -> LabelledDocument:
    name = str(number)
    return LabelledDocument(
        document_id=name, chunk_id=name, title=name, text=name, labels=labels, proximity=proximity, score=proximity
    )


DOCUMENTS = st.lists(
    st.tuples(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3).map(tuple), st.floats(-1, 1)), min_size=1, max_size=30
).map(lambda items: [document(number, labels, proximity) for number, (labels, proximity) in enumerate(items)])


@given(DOCUMENTS, st.randoms(use_true_random=False))
def test_shares_sum_to_one_in_any_order(documents: list[LabelledDocument], random: object) -> None:
    votes = count_votes(documents)
    assert sum(vote.share for vote in votes) == pytest.approx(1)
    assert [vote.share for vote in votes] == sorted((vote.share for vote in votes), reverse=True)
    assert {vote.label for vote in votes} == {label for item in documents for label in item.labels}
    again = {vote.label: vote.share for vote in count_votes(documents[::-1])}
    assert again == pytest.approx({vote.label: vote.share for vote in votes})


@given(DOCUMENTS)
def test_another_document_never_takes_votes_from_its_label(documents: list[LabelledDocument]) -> None:
    before = {vote.label: vote.share for vote in count_votes(documents)}
    nearest = max(item.proximity for item in documents)
    after = {vote.label: vote.share for vote in count_votes([*documents, document(99, ("a",), nearest)])}
    assert after["a"] >= before.get("a", 0.0) - 1e-9


def test_several_near_documents_outvote_the_nearest() -> None:
    near = [document(1, ("a",), 0.80), document(2, ("b",), 0.79), document(3, ("b",), 0.78), document(4, ("c",), 0.2)]
    votes = count_votes(near)
    assert [(vote.label, vote.documents) for vote in votes] == [("b", 2), ("a", 1), ("c", 1)]
    assert votes[-1].share < 0.001
    assert count_votes([]) == []


@given(st.floats(0, 1), st.floats(0, 1), st.none() | st.floats(-1, 1))
def test_confidence_rises_with_the_share(share: float, more: float, similarity: float | None) -> None:
    low, high = sorted((share, more))
    assert 0 <= confidence_of(low, similarity) <= confidence_of(high, similarity) <= 1


def test_confidence_falls_for_a_text_that_is_like_no_document() -> None:
    assert confidence_of(0.9, 0.9) > 0.95
    assert confidence_of(0.9, 0.0) < 0.6
