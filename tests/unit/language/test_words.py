"""Normalised forms of words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.language.words import (
    comparable,
    content_forms,
    inverse_frequency,
    names_and_numbers,
    words,
)


def test_same_form() -> None:
    for one, other in [
        ("films", "film"),
        ("directed", "direct"),
        ("movies", "movie"),
        ("studies", "study"),
        ("running", "run"),
        ("moved", "move"),
        ("naming", "names"),
        ("asked", "ask"),
        ("created", "create"),
        ("churches", "church"),
        ("Voss's", "voss"),
        ("Voss’s", "Voss"),
        ("1,000", "1000"),
        ("U.S.", "US"),
        ("A.B.C", "abc"),
    ]:
        assert comparable(one.rstrip(".")) == comparable(other)


@pytest.mark.parametrize(("one", "other"), [("bus", "bu"), ("1994", "1995"), ("3.5", "35"), ("thing", "th")])
def test_other_form(one: str, other: str) -> None:
    assert comparable(one) != comparable(other)


@given(st.text())
def test_words_lie_where_they_say(text: str) -> None:
    for word in words(text):
        assert comparable(text[word.start : word.end]) == word.form


def test_names_are_not_taken_from_a_sentences_first_word() -> None:
    text = "Tides rose near Sund. Later the Halden Institute counted 40 of them in 1994."
    assert names_and_numbers(text) == {"sund", comparable("Halden"), comparable("Institute"), "40", "1994"}
    assert comparable("Tides") in names_and_numbers(text, first_word=True)
    assert names_and_numbers("1994 was cold.") == {"1994"}


def test_stop_words_carry_nothing() -> None:
    assert content_forms("Who is it, and what was that?") == frozenset()


def test_rare_words_weigh_more() -> None:
    rarity = inverse_frequency([["a", "b"], ["a"], ["a"]])
    assert rarity["b"] > rarity["a"] > 0
