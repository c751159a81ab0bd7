"""Rows of tables as evidence."""

from __future__ import annotations

import pytest

from agentic_rag_backend.domain.text.entries.base import cells_in_sentence, sentence_of
from agentic_rag_backend.domain.text.entries.reading import read_entries
from agentic_rag_backend.generation.answerability.evidence import EvidenceSentence, PassageText, read_evidence
from agentic_rag_backend.generation.answerability.question import read_question

REPORT = PassageText(
    "Annual report",
    "| | 2013 | 2014 |\n|---|---|---|\n| Days closed to boats under the Accord | 12 | 17 |\n"
    "| Claims for lost gear paid | 31 | 38 |\n| Largest claim | Claims by Petra Sauvage | Hollin Island Trust |\n",
    1.0,
)


def _rows(question: str) -> list[EvidenceSentence]:
    return [each for each in read_evidence(read_question(question), [REPORT]).sentences if each.entry is not None]


def _items(question: str) -> list[str]:
    reading = read_question(question)
    return [each.text[start:end].rstrip(".") for each in _rows(question) for start, end in each.items(reading) or ()]


@pytest.mark.parametrize(
    ("question", "items"),
    [
        ("When was the Accord cancelled?", []),
        ("In which year were boats shut out on 17 days under the Accord?", ["2013", "2014"]),
        ("How many days were closed to boats under the Accord in 2014?", ["17"]),
        ("Who made the largest claim?", ["Petra Sauvage", "Hollin Island Trust"]),
    ],
)
def test_the_name_of_a_column_is_no_answer_unless_the_question_has_a_value_below_it(question: str, items: list[str]) -> None:
    assert _items(question) == items


def test_a_row_of_numbers_does_not_answer_who() -> None:
    assert not any(each.text.startswith("Claims") for each in _rows("Who paid for lost gear?"))
    assert [each.text for each in _rows("How many claims for lost gear were paid in 2014?")] == [
        "Claims for lost gear paid – 2014: 38."
    ]


def test_a_question_for_a_phone_number_is_answered_with_it_alone() -> None:
    staff = PassageText(
        "Staff", "| Name | Role | Room | Telephone |\n|---|---|---|---|\n| Olin Marsh | Caretaker | A114 | 0655 4402 |", 1.0
    )
    question = read_question("What is the phone number of the caretaker?")
    (row,) = (each for each in read_evidence(question, [staff]).sentences if each.entry is not None)
    assert (row.text, bool(row.items(question))) == ("Olin Marsh – Telephone: 0655 4402.", True)


def test_cells_in_a_sentence() -> None:
    for entry in read_entries(f"{REPORT.text}\nRooms:\n\n- Petra: C002\n- Olin: A114\n").entries:
        for values in (entry.values, entry.values[1:]):
            text = sentence_of(entry, values)
            cells = [text[start:end] for start, end in cells_in_sentence(entry, values)]
            assert cells == [entry.subject, *(value.text for value in values)]
