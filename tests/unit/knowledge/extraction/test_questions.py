from __future__ import annotations

import pytest

from agentic_rag_backend.knowledge.extraction.questions import MAX_NAMES, MAX_PHRASES, query_names, query_phrases


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who founded the Northwind Institute?", {"Northwind Institute"}),
        ("Where did Hello Love's performer live?", {"Hello Love"}),
        ("Who are the performers of Brother?", {"Brother"}),
        ("Which county is Halden, West Virginia in?", {"Halden", "West Virginia", "Halden, West Virginia"}),
        ('Who wrote "the long winter" in 1999?', {"1999"}),
        ('Who wrote "The Long Winter"?', {"The Long Winter"}),
        ("Who wrote Alexander and the Terrible, Horrible Day?", {"Alexander and the Terrible, Horrible Day"}),
        ("When did the Admiral Twin open?", {"Admiral Twin"}),
        ("Transfiguration of Vincent is by whom?", {"Transfiguration of Vincent"}),
        ("Who is in The Girl Who Kicked the Hornets' Nest?", {"Girl Who Kicked the Hornets' Nest"}),
        ("Maria Keller was born where?", {"Maria Keller"}),
        ("who founded the northwind institute?", set()),
        ("", set()),
    ],
)
def test_names_of_a_question(question: str, expected: set[str]) -> None:
    names = {mention.name for mention in query_names(question)}
    assert names >= expected
    assert bool(names) == bool(expected)


def test_phrases_of_a_lower_case_question_hold_its_names() -> None:
    phrases = query_phrases("who founded the northwind polar institute in oslo, and is person-centered therapy old?")
    assert {"northwind polar institute", "oslo", "person centered therapy"} <= set(phrases)
    assert not {"who", "the", "in"} & set(phrases)
    assert "oslo and" not in " | ".join(phrases)


def test_a_very_long_question_gives_a_bounded_answer() -> None:
    assert len(query_names("Maria Keller met Anton Brandt, then left. " * 1000)) == MAX_NAMES
    assert len(query_phrases("northwind polar institute " * 1000)) <= MAX_PHRASES
