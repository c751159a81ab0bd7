"""A question that describes a person gets no passages that describe other people of the name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.query import Hit, Retrieval, Trace
from agentic_rag_backend.retrieval.described_names import about_described, described_names

Make = Callable[..., VisibleChunk]
NURSE = "What did the nurse Rowan Teller propose?"
TEXTS = {
    "nurse": "Rowan Teller, a nurse, proposed a clinic boat.",
    "painter": "The painter Rowan Teller proposed a mural.",
    "open": "Rowan Teller proposed a walk.",
    "hint": "The nurses agreed with Rowan Teller.",
    "none": "A clinic boat was proposed.",
}


def kept(visible: Make, question: str, *ids: str) -> list[str]:
    hits = tuple(Hit(visible=visible(id, TEXTS[id]), score=1.0) for id in ids)
    found = about_described(Retrieval(hits=hits, trace=Trace(strategy="s")), described_names(question))
    return [hit.id for hit in found.hits]


def test_passages_about_others_and_undecided_ones_are_left_out(visible: Make) -> None:
    assert kept(visible, NURSE, *TEXTS) == ["nurse", "hint", "none"]
    assert kept(visible, "What did Rowan Teller, the painter, propose?", *TEXTS) == ["painter", "none"]


def test_without_another_description_everything_stays(visible: Make) -> None:
    assert kept(visible, NURSE, "nurse", "open", "hint", "none") == ["nurse", "open", "hint", "none"]
    assert kept(visible, "What did Rowan Teller propose?", *TEXTS) == list(TEXTS)
    assert kept(visible, "What did Mr Rowan Teller propose?", *TEXTS) == list(TEXTS)


@pytest.mark.parametrize(
    "question",
    [
        "Which river flows through the city Sarah Sorge was born in?",
        "Who owns the company Novair International is part of?",
        "who?",
    ],
)
def test_other_nouns_before_a_name_describe_nobody(question: str) -> None:
    assert described_names(question) == ()
