"""Values that texts give, and whether they agree."""

from __future__ import annotations

from agentic_rag_backend.language.questions import asked_for
from agentic_rag_backend.language.values import Value, values_of


def _agree(question: str, one: str, other: str) -> bool:
    first: list[Value] = list(values_of(one, asked_for(question), question))
    second: list[Value] = list(values_of(other, asked_for(question), question))
    assert first
    assert second
    found = any(value.agrees_with(another) for value in first for another in second)
    assert found == any(another.agrees_with(value) for value in first for another in second)
    return found


def test_they_agree() -> None:
    for question, one, other in [
        ("When was it?", "on 3 March 2009", "in 2009"),
        ("When was it?", "on 3 March 2009", "on March 3rd, 2009"),
        ("When was it?", "on 3 March 2009", "2009-03-03"),
        ("When was it?", "on 3 March", "in March 2009"),
        ("When was it?", "from 1641 to 1643", "in 1642"),
        ("When was it?", "from 1914–18", "in 1916"),
        ("When was it?", "in the 1990s", "in 1994"),
        ("When was it?", "in the 19th century", "in 1843"),
        ("How many people live there?", "about 4 million people", "4.1 million people"),
        ("How many seats has it?", "12 seats and two engines", "twelve seats"),
        ("How many seats has it?", "about 30 seats", "29 seats"),
        ("How many guests came?", "over 40 guests", "48 guests"),
        ("How many eels came?", "4,000 eels", "4,012 eels"),
        ("How high is it?", "41 metres high", "135 feet high"),
        ("How high is it?", "41 metres high", "41 years old"),
        ("What colour is it?", "It is grey.", "a grey boat"),
    ]:
        assert _agree(question, one, other)


def test_they_differ() -> None:
    for question, one, other in [
        ("When was it?", "on 22 July 2023", "on 29 July 2023"),
        ("When was it?", "on 22 July", "on 29 July 2023"),
        ("When was it?", "in the 1990s", "in 2004"),
        ("How many people live there?", "5 million people", "4.1 million people"),
        ("How many people live there?", "4.5 million people", "4.6 million people"),
        ("How many seats has it?", "12 seats and two engines", "fourteen seats and two engines"),
        ("How many seats has it?", "at most twelve seats", "14 seats"),
        ("How many seats has it?", "twenty-four seats", "twenty-five seats"),
        ("How many eels came?", "4,000 eels", "4,200 eels"),
        ("How high is it?", "41 metres high", "48 metres high"),
        ("What percentage burned?", "52% burned", "41 per cent burned"),
        ("How much did it cost?", "It cost $400", "It cost 500 dollars"),
        ("What colour is it?", "It is grey.", "a green boat"),
    ]:
        assert not _agree(question, one, other)


def test_values_of_the_question_and_of_other_kinds_are_left_out() -> None:
    question = "How many boats were there in 2009?"
    assert [value.text for value in values_of("In 2009, on 4 May, 31 boats came.", asked_for(question), question)] == ["31"]
    assert values_of("Anna Reed came in 2009.", asked_for("Who came?"), "Who came?") == []
