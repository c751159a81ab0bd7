"""Noun phrases: found by their neighbours, without verbs, names and generic words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.language.noun_phrases import MAX_WORDS, noun_phrases


def phrases(text: str) -> list[str]:
    return [text[phrase.start : phrase.end] for phrase in noun_phrases(text)]


def test_phrases() -> None:
    for text, expected in [
        ("The tidal array was opened in bright sun.", ["tidal array", "sun"]),
        ("It keeps a fishing corridor of 400 metres open.", ["fishing corridor"]),
        (
            "The chair recalled that the council's auditors had proposed a shared purchasing desk.",
            ["chair", "auditors", "purchasing desk"],
        ),
        ("The company announced the content of the class.", ["company"]),
        ("She rowed past the harbour master's house with a flask.", ["flask"]),
        ("Behind-the-scenes insights for the Heron turbine.", ["Heron turbine"]),
        ("They met Odile Marchetti in the Port Ellery Library.", []),
        ("The office wondering what was going on bought a clinic boat.", ["office", "clinic boat"]),
        ("", []),
    ]:
        assert phrases(text) == expected


@given(st.text(max_size=300))
def test_phrases_are_spans_in_order_of_at_most_three_words(text: str) -> None:
    end = 0
    for phrase in noun_phrases(text):
        assert end <= phrase.start < phrase.end <= len(text)
        assert 1 <= len(phrase.forms) <= MAX_WORDS
        end = phrase.end
