"""A question that describes a person gets no passages that describe other people of the name."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from cpu_time import cpu_s

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.query import Hit, Retrieval, Trace
from agentic_rag_backend.retrieval.stages.described_names import described_names, keep_described_bearers

Make = Callable[..., VisibleChunk]
NURSE = "What did the nurse Rowan Teller propose?"
TEXTS = {
    "nurse": "Rowan Teller, a nurse, proposed a clinic boat.",
    "painter": "The painter Rowan Teller proposed a mural.",
    "open": "Rowan Teller proposed a walk.",
    "hint": "The nurses agreed with Rowan Teller.",
    "hospital": "A boat is needed, said Rowan Teller of Aldry Hospital.",
    "council": "A bridge is needed, said Rowan Teller of the council.",
    "none": "A clinic boat was proposed.",
}


def kept(visible: Make, question: str, *ids: str) -> list[str]:
    hits = tuple(Hit(visible=visible(id, TEXTS[id]), score=1.0) for id in ids)
    found = keep_described_bearers(Retrieval(hits=hits, trace=Trace(strategy="s")), described_names(question))
    return [hit.id for hit in found.hits]


def test_passages_about_others_and_undecided_ones_are_left_out(visible: Make) -> None:
    assert kept(visible, NURSE, "nurse", "painter", "open", "hint", "none") == ["nurse", "hint", "none"]
    assert kept(visible, "What did Rowan Teller, the painter, propose?", "nurse", "painter", "open", "none") == [
        "painter",
        "none",
    ]


def test_what_a_name_belongs_to_describes_it(visible: Make) -> None:
    question = "What did Rowan Teller of Aldry Hospital propose?"
    assert kept(visible, question, "hospital", "council", "open", "none") == ["hospital", "none"]
    assert kept(visible, question, "council", "open", "none") == ["council", "open", "none"]


def test_without_another_description_everything_stays(visible: Make) -> None:
    assert kept(visible, NURSE, "nurse", "open", "hint", "none") == ["nurse", "open", "hint", "none"]
    assert kept(visible, NURSE, "painter", "open", "none") == ["painter", "open", "none"]
    assert kept(visible, "What did Rowan Teller propose?", *TEXTS) == list(TEXTS)
    assert kept(visible, "What did Mr Rowan Teller propose?", *TEXTS) == list(TEXTS)


def test_other_nouns_before_a_name_describe_nobody() -> None:
    for question in [
        "Which river flows through the city Sarah Sorge was born in?",
        "Who owns the company Novair International is part of?",
        "who?",
    ]:
        assert described_names(question) == ()


@pytest.mark.parametrize("part", ["Aa ", "Aa Bb. ", "the nurse Aa Bb, "])
def test_the_longest_question_costs_about_its_length(part: str) -> None:
    def seconds(characters: int) -> float:
        return cpu_s(lambda: described_names((part * characters)[:characters]))

    assert seconds(8_000) < 24 * seconds(1_000)


def test_of_a_question_with_many_names_the_first_are_described() -> None:
    names = [f"Ba{first} Ko{last}" for first in "bcdfgklm" for last in "bcdfgklm"]
    found = described_names(", ".join(f"the nurse {name}" for name in names))
    assert [each.forms for each in found] == [tuple(name.lower().split()) for name in names[:20]]
