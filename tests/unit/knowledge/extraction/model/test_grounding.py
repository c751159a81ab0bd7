"""Grounding: names of a language model are found in a passage, or not at all."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.domain.graph import normalise_name
from agentic_rag_backend.knowledge.extraction.model.grounding import GroundedText, is_name, outermost

TEXT = "Hewlett-Packard's office, in the U.S.A., hired Dr. José Martí in 1999. He left. HP sold it to Acme Inc. in Zürich."


def test_a_name_is_found_word_for_word() -> None:
    for name, written in [
        ("hewlett packard", "Hewlett-Packard"),
        ("the USA", "U.S.A"),
        ("José  Martí", "José Martí"),
        ("Acme, Inc.", "Acme Inc"),
        ("ZÜRICH", "Zürich"),
        ("Packard", "Packard"),
        ("Acme Corp", None),
        ("Mart", None),
        ("", None),
        ("a" * 161, None),
    ]:
        places = GroundedText(TEXT).places(name)
        assert [TEXT[start:end] for start, end in places] == ([] if written is None else [written])


def test_scripts_without_spaces_are_compared_letter_by_letter() -> None:
    text = "東京大学は日本の大学である。"
    assert GroundedText(text).places("東京大学") == [(0, 4)]
    assert GroundedText(text).places("京都大学") == []


def test_the_fact_is_the_sentence_with_both_names() -> None:
    text = "Ada Byron met Charles Babbage. Ada Byron wrote about Charles Babbage. She lived in London."
    grounded = GroundedText(text)
    ada, babbage, london = (grounded.places(name) for name in ("Ada Byron", "Charles Babbage", "London"))
    wrote, met, lived = (
        grounded.statement(ada, other, relation)
        for other, relation in ((babbage, "wrote_about"), (babbage, "x"), (london, "lived_in"))
    )
    assert wrote is not None
    assert text[wrote.start : wrote.end] == "Ada Byron wrote about Charles Babbage."
    assert met is not None
    assert text[met.start : met.end] == "Ada Byron met Charles Babbage."
    assert lived is not None
    assert text[lived.start : lived.end].startswith("Ada Byron wrote")
    assert (wrote.sureness, lived.sureness) == (1.0, 0.7)
    of_title = grounded.statement((), london, "lived_in")
    assert of_title is not None
    assert text[of_title.start : of_title.end] == "She lived in London."
    assert grounded.statement((), (), "lived_in") is None
    far = GroundedText(f"Ada Byron slept. {'Nothing happened. ' * 5}London woke.")
    assert far.statement(far.places("Ada Byron"), far.places("London"), "lived_in") is None


def test_a_name_inside_a_longer_one_is_not_counted() -> None:
    text = "The University of Copenhagen is in Copenhagen; Niels Bohr Institute."
    grounded = GroundedText(text)
    found = outermost(
        {name: grounded.places(name) for name in ("University of Copenhagen", "Copenhagen", "Bohr", "Niels Bohr Institute")}
    )
    assert [text[start:end] for start, end in found["Copenhagen"]] == ["Copenhagen"]
    assert found["Copenhagen"][0][0] > text.index(" in ")
    assert len(found["Bohr"]) == 1, "a name that occurs only inside of another one keeps a place"


def test_function_words_name_nothing() -> None:
    assert [is_name(text) for text in ("it", "The first", "", "—", "The Who band", "IT")] == [False] * 4 + [True] * 2
    assert GroundedText("It has IT, and HAS.").places("IT") == [(7, 9)]
    assert GroundedText("It has IT, and HAS.").places("HAS") == [(15, 18)]


@given(st.lists(st.sampled_from(["ab", "Bé", "I.B.", "c'd", "Ann's", "-", ", ", ". "]), max_size=20), st.integers(1, 3))
def test_words_of_a_text_are_found_in_it(parts: list[str], count: int) -> None:
    text = " ".join(parts)
    words = [part for part in parts if part.strip(" -,.")]
    for first in range(len(words) - count + 1):
        name = " ".join(words[first : first + count])
        places = GroundedText(text).places(name)
        assert places
        assert {normalise_name(text[start:end]) for start, end in places} == {normalise_name(name)}


def test_long_runs_of_marks_are_read_in_linear_time() -> None:
    begun = time.process_time()
    GroundedText(f"a{'.’' * 200_000}b {'x' * 200_000}").places("a")
    assert time.process_time() - begun < 5
