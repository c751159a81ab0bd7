"""Questions with several parts."""

from __future__ import annotations

import pytest
from evidence_judge import judge

from agentic_rag_backend.generation.answerability.estimate import mean_of_odds
from agentic_rag_backend.generation.answerability.evidence import PassageText
from agentic_rag_backend.generation.answerability.parts import about_the_first, not_said, split_question

ACCORD = PassageText(
    "Narrows Accord", "The Narrows Accord was signed on 9 November 2012. A corridor 400 metres wide shall be kept open.", 1.0
)


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("Who signed the Accord?", ("Who signed the Accord?",)),
        (
            "How wide is the corridor of the Narrows Accord, and who must pay for the buoys?",
            ("How wide is the corridor of the Narrows Accord", "who must pay for the buoys"),
        ),
        ("When was the quay opened? Who opened it?", ("When was the quay opened", "Who opened it")),
        ("Who lent STEC money and in which year did STEC repay it?", ("Who lent STEC money", "in which year did STEC repay it")),
        ("Which boats and which crews were hired and paid?", ("Which boats and which crews were hired and paid?",)),
        ("What is the difference between what and how?", ("What is the difference between what and how?",)),
        ("On what day and in which town was she born?", ("On what day and in which town was she born?",)),
        ("Who founded STEC, and what did Ingrid Vassall earn?", ("Who founded STEC", "what did Ingrid Vassall earn")),
        ("", ("",)),
    ],
)
def test_parts(question: str, parts: tuple[str, ...]) -> None:
    assert split_question(question) == parts


@pytest.mark.parametrize(
    ("parts", "judged"),
    [
        (("When was the quay opened", "who paid"), ("When was the quay opened", "who paid")),
        (("When did Ada Finch buy the Bright Annis", "who paid"), "who paid (Ada Finch, Bright Annis)"),
        (("When was the Narrows Accord signed", "what did STEC pay"), "what did STEC pay"),
    ],
)
def test_a_part_without_a_name_is_about_the_names_of_the_first(parts: tuple[str, ...], judged: str | tuple[str, ...]) -> None:
    assert about_the_first(parts) == ((parts[0], judged) if isinstance(judged, str) else judged)


@pytest.mark.parametrize(
    ("one", "other", "mean"), [(0.5, 0.5, 0.5), (0.2, 0.8, 0.5), (0.0, 0.9, 0.0), (1.0, 0.5, 1.0), (0.1, 0.5, 0.25)]
)
def test_the_mean_of_odds(one: float, other: float, mean: float) -> None:
    assert mean_of_odds(one, other) == pytest.approx(mean)
    assert mean_of_odds(other, one) == pytest.approx(mean)


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        ("who must pay for the buoys", "The documents do not say who must pay for the buoys."),
        ("What colour it has?", "The documents do not say what colour it has."),
        ("in which year did STEC repay it", "The documents do not answer “in which year did STEC repay it?”"),
        ("When was it built?", "The documents do not answer “When was it built?”"),
        ("what colour are they", "The documents do not answer “what colour are they?”"),
        ("Is it red", "The documents do not answer “Is it red?”"),
    ],
)
def test_the_unanswered_part_is_named(part: str, sentence: str) -> None:
    assert not_said(part) == sentence


async def test_each_part_is_answered_by_itself() -> None:
    question = "When was the Narrows Accord signed, and how wide is the corridor?"
    both = await judge().judge(question, [ACCORD], least=0.15)
    assert both.unanswered == ()
    assert any("2012" in each.text for each in both.sentences)
    assert any("400" in each.text for each in both.sentences)
    one = await judge().judge("When was the Narrows Accord signed, and who invented the zeppelin?", [ACCORD], least=0.25)
    assert one.unanswered == ("who invented the zeppelin",)
    assert "2012" in one.sentences[0].text


async def test_two_values_for_one_thing_are_both_shown() -> None:
    passages = [
        PassageText("Courier", "The new quay at Port Ellery was opened on Saturday 22 July 2023. Many came.", 1.0),
        PassageText("Minutes", "The new quay at Port Ellery was opened on Saturday 29 July 2023. It rained.", 0.9),
        PassageText("Letter", "The old quay at Scarrow was closed on 1 May 2001.", 0.5),
    ]
    judged = await judge().judge("When was the new quay at Port Ellery opened?", passages)
    assert judged.conflicts
    assert {each.passage for each in judged.sentences} >= {0, 1}
    alone = await judge().judge("When was the new quay at Port Ellery opened?", [passages[0], passages[2]])
    assert not alone.conflicts
