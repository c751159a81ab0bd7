"""Follow-up questions without a model."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from sampling import sampled

from agentic_rag_backend.answering.conversation import MAX_NAMES, complete_question, names_in
from agentic_rag_backend.models.llm.base import Message

FILM = ("Who directed The Slack Water Year?", "It was directed by Odile Marchetti, and was shown on Friday. [1]")
BOATS = ("How many boats fished in 2009?", "There were 52 boats. [1]")


def conversation(*turns: str) -> list[Message]:
    return [Message("assistant" if number % 2 else "user", text) for number, text in enumerate(turns)]


def test_a_question_that_leans_gets_what_it_leans_on() -> None:
    for turns, question, expected in [
        (FILM, "Where did she grow up?", "Where did she grow up? (Slack Water Year, Odile Marchetti)"),
        (FILM, "How long is the film?", None),
        (BOATS, "And in 2019?", "And in 2019? (How many boats fished in 2009?)"),
        ((*FILM, *BOATS), "Did she count the boats?", "Did she count the boats? (Slack Water Year, Odile Marchetti)"),
        (FILM, "Where did Rowan Teller grow up?", None),
        (FILM, "When did Rowan Teller come, and did he stay?", None),
        (FILM, "Did she know Rowan Teller?", "Did she know Rowan Teller? (Slack Water Year, Odile Marchetti)"),
        (FILM, "How many crowns does a berth cost?", None),
        ((), "Where did she grow up?", None),
        (BOATS, "Who owned them?", "Who owned them?"),
    ]:
        completed = complete_question(question, conversation(*turns))
        assert completed == expected if expected != question else completed is None


def test_days_and_months_are_no_names() -> None:
    assert list(names_in("She came to Sund on Friday in March.")) == ["Sund"]


@sampled(gate=50, deep=2000)
@given(st.text(max_size=80), st.lists(st.text(max_size=120), max_size=8))
def test_any_conversation_is_read(question: str, turns: list[str]) -> None:
    completed = complete_question(question, conversation(*turns))
    if completed is not None:
        assert completed.startswith(question.strip())
        assert completed.count(",") <= question.count(",") + sum(turn.count(",") for turn in turns) + MAX_NAMES
