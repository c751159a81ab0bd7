"""Refusals in a model's own words."""

from __future__ import annotations

from agentic_rag_backend.answering.writing import is_sentinel, refuses
from agentic_rag_backend.models.llm.base import NOT_ANSWERED


def test_refusals() -> None:
    for reply, cites in [
        (NOT_ANSWERED, False),
        (f"{NOT_ANSWERED} They are about tides.", True),
        ("I'm sorry, but the provided passages do not contain this.", False),
        ("Passages 1 to 3 are about eels. None of them names the captain.", True),
        ("Not specified.", False),
        ("N/A", False),
        ("Dazu steht nichts im Text.", False),
        ("Les extraits ne mentionnent pas ce prix.", True),
        ("No hay información sobre esto en los documentos.", True),
        ("I couldn’t find that.", False),
    ]:
        assert refuses(reply, cites=cites)


def test_what_is_no_refusal() -> None:
    for reply, cites in [
        ("Nobody was hurt.", True),
        ("It was cancelled because nobody had paid.", True),
        ("A deckhand broke a wrist.", False),
        ('{"answer": "It was not', False),
        ("", False),
    ]:
        assert not refuses(reply, cites=cites)


def test_the_sentence_of_the_prompts() -> None:
    assert is_sentinel(f"**{NOT_ANSWERED}**")
    assert not is_sentinel("The documents are about tides.")
