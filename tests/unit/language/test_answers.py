"""Items that may answer a question."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.language.answers import answer_spans
from agentic_rag_backend.language.questions.kinds import AnswerKind


def test_items_of_each_kind() -> None:
    for text, asked, items in [
        ("It opened on 3 March 2009.", AnswerKind.TIME, ["3 March 2009"]),
        ("It opened in March 2009, on Saturday.", AnswerKind.TIME, ["March 2009", "Saturday"]),
        ("It was built in the 19th century, in the 1890s.", AnswerKind.TIME, ["19th century", "1890s"]),
        ("It may open in May.", AnswerKind.TIME, ["in May"]),
        ("It opened late.", AnswerKind.TIME, []),
        ("A corridor 400 metres wide, with 3 gates.", AnswerKind.MEASURE, ["400"]),
        ("The beam is 3[12] metres wide, and 4[long] metres.", AnswerKind.MEASURE, ["3", "4"]),
        ("It lent 1.8 million crowns.", AnswerKind.MONEY, ["1.8", "million"]),
        ("It lent three boats in 2009.", AnswerKind.MONEY, []),
        ("Two thirds, or 67 %, agreed.", AnswerKind.PERCENT, ["Two", "67"]),
        ("There were 67 of them.", AnswerKind.PERCENT, []),
        ("The boat is red and grey.", AnswerKind.COLOUR, ["red", "grey"]),
        ("Call 030 / 123 45-67 or +49 (30) 1234567.", AnswerKind.PHONE, ["030 / 123 45-67", "+49 (30) 1234567"]),
        ("Petra Sauvage, ext. 4417", AnswerKind.PHONE, ["ext. 4417"]),
        ("She telephoned at 06:20, on 2009-03-12, about 12,000 boats of 1999-2004.", AnswerKind.PHONE, []),
        ("Write to desk.one@sound.example, not to the desk.", AnswerKind.EMAIL, ["desk.one@sound.example"]),
        ("See www.sound.example/tides or write to a@sound.example.", AnswerKind.WEBSITE, ["www.sound.example"]),
        ("Then it was signed by Mira Voss in Port Ellery today.", AnswerKind.NAME, ["Mira Voss", "Port Ellery"]),
    ]:
        spans = answer_spans(text, asked, "?")
        assert spans is not None
        assert [text[start:end] for start, end in spans] == items


def test_what_the_question_says_is_no_answer() -> None:
    assert answer_spans("It opened in 2009.", AnswerKind.TIME, "What opened in 2009, and when?") == []
    assert answer_spans("The boat is red.", AnswerKind.COLOUR, "Is the red boat new?") == []


def test_kinds_without_a_form() -> None:
    assert answer_spans("Because it rained.", AnswerKind.THEME, "Why?") is None
    assert not answer_spans("Because it rained.", AnswerKind.OTHER, "Who?")


@given(st.text(), st.sampled_from(AnswerKind), st.text())
def test_items_stand_in_the_text(text: str, asked: AnswerKind, question: str) -> None:
    for start, end in answer_spans(text, asked, question) or []:
        assert 0 <= start < end <= len(text)


def test_an_age_answers_how_old() -> None:
    for text, ages in [
        ("Ms Aster, 38, went to sea at seventeen.", ["38"]),
        ("He died at the age of eighty-one.", ["age of eighty-one"]),
        ("She went to sea at seventeen.", []),
    ]:
        question = "How old was the harbour master?"
        assert [text[start:end] for start, end in answer_spans(text, AnswerKind.MEASURE, question) or ()] == ages
        assert answer_spans(text, AnswerKind.MEASURE, "How wide is the harbour?") == []
