"""Questions by patterns: what is asked of a sentence or a row, and what is left alone."""

from __future__ import annotations

import pytest

from agentic_rag_backend.domain.document import Chunk, content_hash
from agentic_rag_backend.domain.location import Location
from agentic_rag_backend.ingestion.questions.patterns import PatternQuestions, pattern_questions
from agentic_rag_backend.knowledge.model_calls import Unrecorded


def chunk(text: str, *, header: str = "") -> Chunk:
    place = Location(start_char=0, end_char=len(text), start_line=1, end_line=1, header=header)
    return Chunk(
        id="c", document_id="d", version=1, ordinal=0, text=text, size_tokens=1, content_hash=content_hash(text), location=place
    )


def asked(text: str, *, title: str = "", most: int = 3, header: str = "") -> list[str]:
    return pattern_questions(title, chunk(text, header=header), most)


@pytest.mark.parametrize(
    ("text", "questions"),
    [
        ("The Glass Atlas was engraved by Tomas Rehn in Westerhall.", ["Who engraved the Glass Atlas?"]),
        ("The tide mill was opened on Saturday 3 May 2014 by the mayor.", ["When was the tide mill opened?"]),
        ("Mira Voss was born in Brennmoor near the sea.", ["Where was Mira Voss born?"]),
        ("Palash Sen is an Indian singer and composer.", ["Who is Palash Sen?"]),
        ("The Glass Atlas is a book of maps from Westerhall.", ["What is the Glass Atlas?"]),
        ("Pellow Marine is a company of engineers.", ["What is Pellow Marine?"]),
    ],
)
def test_a_sentence_answers_its_question(text: str, questions: list[str]) -> None:
    assert asked(text, most=1) == questions


def test_a_pronoun_stands_for_a_title_that_is_a_name() -> None:
    text = "It was created by Reg Watson in Melbourne."
    assert asked(text, title="Neighbours") == ["Who created Neighbours?"]
    assert asked(text, title="minutes of the meeting") == asked(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "He was a good man who lived by the sea.",
        "However, this was decided by the committee in 2012.",
        "Was the mill sold in 2009 or later than that?",
        "It was not sold until 2012, said the owner of the mill.",
        "## The mill of 2009",
        "Present: Mara Voss, Tomas Eld, Ines Carrow and others of the town.",
        '"The mill was sold in 2009," she said to the crowd.',
        "The mill was repaired until 2012 and after that nobody cared.",
        "A mill near the river was sold in 2009.",
        "雨が降った。",
        "",
    ],
)
def test_a_sentence_in_doubt_is_left_alone(text: str) -> None:
    assert asked(text) == []


def test_rows_ask_for_their_columns() -> None:
    table = "| Name | Role | Room |\n|---|---|---|\n| Petra Sauvage | Archivist | C002 |\n| Tomas Eld | Skipper | B117 |\n"
    assert asked(table) == ["What is the role of Petra Sauvage?", "What is the room of Tomas Eld?"]
    row = "| Tomas Eld | Skipper | B117 |"
    assert asked(row, header="| Name | Role | Room |\n|---|---|---|") == ["What is the role of Tomas Eld?"]
    amounts = "| Loan | Crowns lent |\n|---|---|\n| Boats | 700 |\n"
    assert asked(amounts) == ["How many crowns lent are given for Boats?"]
    assert asked("| Work | Planned |\n|---|---|\n| Design | May |\n") == []


def test_the_best_question_of_each_sentence_comes_first() -> None:
    text = "The Heron was built by Tomas Rehn in 2009. The institute is the oldest house of the port."
    assert asked(text) == ["Who built the Heron?", "What is the institute?", "When was the Heron built?"]
    assert [len(asked(text, most=most)) for most in (1, 2, 3)] == [1, 2, 3]
    assert asked(text, most=2) == asked(text)[:2]


async def test_the_writer_answers_for_each_chunk() -> None:
    writer = PatternQuestions()
    long = "The old mill was sold in 2009. " * 900
    texts = ["The Heron is a turbine.", "Nothing.", long]
    written = await writer.write("Report", [chunk(text) for text in texts], 2, Unrecorded())
    assert [(each.texts, each.source, each.failure) for each in written] == [
        (("What is the Heron?",), "patterns", None),
        ((), "patterns", None),
        (("When was the old mill sold?",), "patterns", None),
    ]
