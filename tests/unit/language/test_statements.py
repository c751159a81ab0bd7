"""Distinction of statements and layout."""

from __future__ import annotations

from agentic_rag_backend.language.sentences import is_statement, leans_on_context


def test_statements() -> None:
    for text in [
        "The new quay was opened on Saturday 22 July 2023.",
        "The number for 2021 is 38,460.",
        "**Yusra Benholm**, doctoral student, wrote the drift model.",
        "*The Slack Water Year* was shown at the *Regal*.",
        "She asked: who will pay for all of this?",
        "彼女は海の近くで育ちました。",
    ]:
        assert is_statement(text)


def test_layout_and_fragments() -> None:
    for text in [
        "",
        "PORT ELLERY.",
        "# The new quay was opened in summer.",
        "| Peak current | 3.9 metres per second |",
        "**A research project of the Coastal Systems Laboratory, University of Port Ellery**.",
        "Present: Marguerite Lyle (chair), Delphine Aster (harbour master), Desmond Fairlie, Rowan Teller.",
        "cut off at the edge of a chunk it begins in lower case.",
        "The work of the harbour in the year",
    ]:
        assert not is_statement(text)


def test_sentences_that_point_back() -> None:
    assert leans_on_context("This was late.")
    assert leans_on_context('"He said so."')
    assert not leans_on_context("Thistles grow here.")
