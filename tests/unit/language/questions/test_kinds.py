"""The kind of answer that a question asks for."""

from __future__ import annotations

from agentic_rag_backend.language.answers import answer_spans
from agentic_rag_backend.language.questions.kinds import AnswerKind, asked_for, asks_twice, find_measure, is_related_form


def test_the_kind_of_answer() -> None:
    for question, asked in [
        ("Who founded the Halden Institute?", AnswerKind.NAME),
        ("In which village did the director grow up?", AnswerKind.PLACE),
        ("On what date was the quay opened?", AnswerKind.TIME),
        ("In which year was the yard founded?", AnswerKind.TIME),
        ("When did the yard close?", AnswerKind.TIME),
        ("The rail strike began when?", AnswerKind.TIME),
        ("Do you know when the quay was opened?", AnswerKind.TIME),
        ("What do guests recount when discussing the trade?", AnswerKind.OTHER),
        ("When rebuilding the quay, which stone did they use?", AnswerKind.OTHER),
        ("Is there a difference when speaking of the past?", AnswerKind.OTHER),
        ("How many elvers were counted when the river rose?", AnswerKind.NUMBER),
        ("What is the capacity of the pump?", AnswerKind.MEASURE),
        ("How far is Sund from Halden?", AnswerKind.MEASURE),
        ("What did the master earn?", AnswerKind.MONEY),
        ("How much did the boat cost?", AnswerKind.MONEY),
        ("What salary does she get?", AnswerKind.MONEY),
        ("What percentage of the votes was cast?", AnswerKind.PERCENT),
        ("What colour is the clinic boat?", AnswerKind.COLOUR),
        ("What is Petra Sauvage's phone number?", AnswerKind.PHONE),
        ("What is the telephone number of the caretaker?", AnswerKind.PHONE),
        ("Under which mobile number is she reached?", AnswerKind.PHONE),
        ("What is the email address of the laboratory?", AnswerKind.EMAIL),
        ("What is the website of the bank?", AnswerKind.WEBSITE),
        ("When did the telephone company open?", AnswerKind.TIME),
        ("Who invented the telephone?", AnswerKind.NAME),
        ("Where was Ada born?", AnswerKind.PLACE),
        ("What is the population of Sund?", AnswerKind.NUMBER),
        ("Why do projects finish late?", AnswerKind.THEME),
        ("How far do the services rest on volunteers?", AnswerKind.THEME),
        ("What part does local knowledge play?", AnswerKind.THEME),
        ("What part of the state is Rochester in?", AnswerKind.OTHER),
        ("", AnswerKind.OTHER),
    ]:
        assert asked_for(question) is asked


def test_an_answer_is_not_what_the_question_says_itself() -> None:
    question = "How many people came to Sund in 2021?"
    assert answer_spans("In 2021 they were 640.", AnswerKind.NUMBER, question)
    assert not answer_spans("In 2021 they came to Sund.", AnswerKind.NUMBER, question)
    assert answer_spans("It was opened by Mira Voss.", AnswerKind.NAME, "Who opened Sund?")
    assert not answer_spans("It was opened in Sund.", AnswerKind.NAME, "Who opened Sund?")
    assert answer_spans("It opened on 3 March.", AnswerKind.TIME, "When did it open?")
    assert not answer_spans("It opened late.", AnswerKind.TIME, "When did it open?")


def test_what_is_counted() -> None:
    assert find_measure("How many passengers did it carry?") == {"passenger"}
    assert find_measure("What salary does she get?") == {"salari"}
    assert find_measure("How many times did it call?") == frozenset()
    assert find_measure("Who is she?") == frozenset()


def test_related_words_share_a_stem_and_numbers_are_equal() -> None:
    assert is_related_form("doctorat", ["doctoral"])
    assert is_related_form("director", ["direct"])
    assert is_related_form("grow", ["grew"])
    assert not is_related_form("harbour", ["harvest"])
    assert not is_related_form("38460", ["384601"])
    assert not is_related_form("port038", ["port001", "port03"])
    assert is_related_form("covid19", ["covid", "covid19"])


def test_a_question_after_and_is_a_second_one() -> None:
    assert asks_twice("What was promised to the island, and how do its people fare?")
    assert not asks_twice("How do Ann and Bo fare?")
