"""Follow-up questions by rules: the conversations of the examples, and the decision whether a question leans on its history."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from agentic_rag_backend.generation.conversation.focus import Focus
from agentic_rag_backend.generation.conversation.leaning import MAX_CHARACTERS, lean_of
from agentic_rag_backend.generation.conversation.rules import focus_of, leans, rewrite
from agentic_rag_backend.models.llm.base import NOT_ANSWERED, Message

QUAY = Focus("When was the new quay at Port Ellery opened?", "Delphine Aster opened it on Saturday 22 July 2023.")


def conversations(config: pytest.Config) -> list[dict[str, Any]]:
    lines = (config.rootpath / "examples" / "conversations.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def history_of(row: dict[str, Any]) -> list[Message]:
    return [Message("assistant" if index % 2 else "user", text) for index, text in enumerate(row["history"])]


def test_conversations_of_the_examples_are_rewritten(request: pytest.FixtureRequest) -> None:
    rows = conversations(request.config)
    kinds = Counter(row["kind"] for row in rows)
    assert len(rows) >= 70
    assert kinds["stays"] >= 15
    wrong = [
        (row["id"], made, row["self_contained"])
        for row in rows
        if (made := rewrite(row["question"], focus_of(history_of(row)))) != row["self_contained"]
    ]
    assert wrong == []


def test_a_question_that_stays_leans_on_nothing(request: pytest.FixtureRequest) -> None:
    for row in conversations(request.config):
        if row["kind"] == "stays":
            assert leans(row["question"], focus_of(history_of(row))) is None, row["question"]


def test_a_rewritten_question_leans_on_nothing_more(request: pytest.FixtureRequest) -> None:
    """A second turn over the rewritten question changes nothing, except for names that a rule added in brackets."""
    for row in conversations(request.config):
        made = row["self_contained"]
        if made is not None and "(" not in made:
            assert rewrite(made, focus_of(history_of(row))) is None, made


@pytest.mark.parametrize(
    "question",
    [
        "Is there a ferry?",
        "Are there any homes to let?",
        "Is it true that the pier fell?",
        "How long does it take to row over?",
        "What time is it?",
        "What happens this year?",
        "Who said that the pier would hold?",
        "When did Rowan Teller say she would leave?",
        "Which company sold its boats?",
        "What did the council do after it met?",
        "Where was the professor when he died?",
        "And who leads the harbour authority?",
        "Wer hat das gebaut?",
        "quay cost 2023",
        "",
    ],
)
def test_a_self_contained_question_does_not_lean(question: str) -> None:
    assert lean_of(question) is None


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("And by whom?", "question_word"),
        ("Since when?", "question_word"),
        ("in 2024?", "time"),
        ("And in the summer of 2016?", "time"),
        ("How about the next year?", "time"),
        ("What about the clinic boat?", "subject"),
        ("And on Hollin Island?", "place"),
        ("When did the council appoint her?", "reference"),
        ("Which yard built it?", "reference"),
        ("What happened then?", "reference"),
        ("Who lives there?", "reference"),
        ("Who built that boat?", "reference"),
        ("Did that cost more?", "reference"),
        ("Who else signed?", "focus"),
    ],
)
def test_a_follow_up_question_leans(question: str, kind: str) -> None:
    lean = lean_of(question)
    assert lean is not None
    assert lean.kind == kind


def test_a_long_question_is_self_contained() -> None:
    assert lean_of("Who built it " + "and painted it " * MAX_CHARACTERS) is None


def test_without_a_conversation_nothing_leans() -> None:
    assert leans("And by whom?", Focus()) is None
    assert focus_of([Message("system", "Who founded STEC?")]) == Focus()


def test_a_refusal_names_nothing() -> None:
    history = [Message("user", "Who painted the old quay?"), Message("assistant", NOT_ANSWERED)]
    assert focus_of(history).answer == ""
    assert rewrite("How long is it?", focus_of(history)) == "How long is the old quay?"


def test_markers_of_an_answer_are_no_numbers() -> None:
    history = [Message("user", "Who opened the new quay?"), Message("assistant", "Delphine Aster opened it. [2023]")]
    assert rewrite("What happened that year?", focus_of(history)) != "What happened in 2023?"


def test_the_year_of_a_date_answers_that_year() -> None:
    assert rewrite("Who was harbour master in that year?", QUAY) == "Who was harbour master in 2023?"
    assert rewrite("What happened that day?", QUAY) == "What happened on 22 July 2023?"


def test_a_pronoun_takes_the_person_whose_gender_fits() -> None:
    focus = Focus("Who spoke at the hearing?", "Mr Tobias Renwick spoke first. Ms Ingrid Vassall spoke for an hour.")
    assert rewrite("Where did she study?", focus) == "Where did Ingrid Vassall study?"
    assert rewrite("Where did he study?", focus) == "Where did Tobias Renwick study?"


def test_a_surname_is_completed() -> None:
    focus = Focus("Who is the harbour master of Port Ellery?", "Delphine Aster is. Ms Aster was a pilot.")
    assert rewrite("When was she appointed?", focus) == "When was Delphine Aster appointed?"


def test_an_earlier_exchange_supplies_a_name() -> None:
    history = [
        Message("user", "Who directed The Slack Water Year?"),
        Message("assistant", "It was directed by Odile Marchetti."),
        Message("user", "Who paid for the film?"),
        Message("assistant", "The university did."),
    ]
    assert rewrite("Where was she born?", focus_of(history)) == "Where was Odile Marchetti born?"


def test_turns_of_any_order_and_length_are_read() -> None:
    turns = [
        Message("assistant", "Yes. " * 5000),
        Message("user", "?"),
        Message("user", "\n\n"),
        Message("assistant", "[1]" * 3000),
    ]
    assert rewrite("And by whom?", focus_of(turns)) is None
    assert (
        rewrite("And by whom?", focus_of([*turns, Message("user", "When was the quay opened?")]))
        == "By whom was the quay opened?"
    )
