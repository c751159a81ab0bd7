"""Questions about two things."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampling import sampled

from agentic_rag_backend.language.questions.splitting import MAX_CHARACTERS, split_question


@pytest.mark.parametrize(
    ("question", "first", "second"),
    [
        (
            "Which port does the Heron use and which one did the Tern leave in 2019?",
            "Which port does the Heron use?",
            "which port did the Tern leave in 2019?",
        ),
        (
            "What is the difference between a ketch and a yawl in this guide?",
            "What is a ketch in this guide?",
            "What is a yawl in this guide?",
        ),
        ("How does load_all differ from load_lazy?", "What is load_all?", "What is load_lazy?"),
        ("How do /var/run and /run differ?", "What is /var/run?", "What is /run?"),
        ("Compare the Heron with the Tern.", "What is the Heron?", "What is the Tern?"),
        (
            "What are the totals of the invoice A-17 and of the order B-2?",
            "What are the totals of the invoice A-17?",
            "What are the totals of the order B-2?",
        ),
        (
            "What are the weight of the Heron and the length of the Tern?",
            "What are the weight of the Heron?",
            "What are the length of the Tern?",
        ),
        (
            "How does the pump behave in a closed circuit and in an open circuit?",
            "How does the pump behave in a closed circuit?",
            "How does the pump behave in an open circuit?",
        ),
        ("Which is older, Scarrow or Port Elster?", "Which is older, Scarrow?", "Which is older, Port Elster?"),
        ("Are Ann Pell and Bo Lind both pilots?", "Are Ann Pell both pilots?", "Are Bo Lind both pilots?"),
    ],
)
def test_a_question_about_two_things_has_two_parts(question: str, first: str, second: str) -> None:
    parts = split_question(question)
    assert parts is not None
    assert (parts.first_part, parts.second_part) == (first, second)


@pytest.mark.parametrize(
    "question",
    [
        "Who built the lock?",
        "When was the Heron built and where did it sail?",
        "How and when did the ferry sink?",
        "How do the Heron and the Tern depend on one another?",
        "What happened between 1348 and 1350?",
        "What did they buy and sell?",
        "Which ships are old and slow?",
        "Is it red or blue?",
        "and",
        "",
    ],
)
def test_other_questions_stay_whole(question: str) -> None:
    assert split_question(question) is None


def test_a_name_that_a_text_uses_is_one_thing() -> None:
    parts = split_question("Who founded the Institute of Arts and Letters?")
    assert parts is not None
    assert parts.are_one_in("The Institute of Arts and\nLetters was founded by Ann Pell.")
    assert not parts.are_one_in("Letters are arts.")


WORDS = st.sampled_from(
    [
        *(
            "what",
            "which",
            "how",
            "does",
            "is",
            "the",
            "of",
            "in",
            "and",
            "or",
            "between",
            "differ",
            "from",
            "compare",
            "both",
            "one",
            "it",
        ),
        *("Heron", "Tern", "A-17", "/tmp", ",", "?"),
    ]
)


@sampled(gate=200, deep=3000)
@given(words=st.lists(WORDS | st.text(max_size=8), max_size=120))
def test_any_text_is_split_into_shorter_questions(words: list[str]) -> None:
    question = " ".join(words)
    parts = split_question(question)
    if len(" ".join(question.split())) > MAX_CHARACTERS:
        assert parts is None
    if parts is not None:
        longest = len(question) + len("What is ?") + len(question)  # "which one" becomes "which" and the noun that was asked
        assert all(part.endswith("?") and 1 < len(part) <= longest for part in (parts.first_part, parts.second_part))
