"""Questions that ask what something is, and the sentences that say it."""

from __future__ import annotations

import pytest

from agentic_rag_backend.language.questions.defined_names import defines, find_defined_name


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("What is EbookLib?", "EbookLib"),
        ("what's a lock keeper", "lock keeper"),
        ("Who is Ann Marsh?", "Ann Marsh"),
        ("What is the Bank of England?", "Bank of England"),
        ("What is meant by an NMU?", "NMU"),
        ("What does NMU stand for?", "NMU"),
        ("Define 'write-ahead logging'.", "write-ahead logging"),
        ("Was ist ein Schleusenwärter?", "Schleusenwärter"),
        ("Qu'est-ce qu'une écluse ?", "écluse"),
        ("¿Qué es una esclusa?", "esclusa"),
        ("What is the capital of France?", None),
        ("What is EbookLib used for?", None),
        ("What is the document about?", None),
        ("What does the standard say?", None),
        ("When was the lock built?", None),
    ],
)
def test_the_name_that_a_question_asks_to_define(question: str, name: str | None) -> None:
    assert find_defined_name(question) == name


@pytest.mark.parametrize(
    ("sentence", "name", "expected"),
    [
        ("EbookLib is a Python library for managing EPUB files.", "EbookLib", True),
        ("*python-docx* is a Python library.", "python-docx", True),
        ("Microsoft Corporation is an American company.", "Microsoft", True),
        ("A lock keeper (or lockman) is a person who opens locks.", "lock keeper", True),
        ("In Akkadian mythology, Alû is a vengeful spirit.", "Alû", True),
        ("Publix, commonly known as the store, is an American chain.", "Publix", True),
        ("Ein Schleusenwärter ist eine Person am Kanal.", "Schleusenwärter", True),
        ("NMU stands for non-maintainer upload.", "NMU", True),
        ("EbookLib is used in Booktype.", "EbookLib", False),
        ("Microsoft Word is a word processor.", "Microsoft", False),
        ("The name of EbookLib is a joke.", "EbookLib", False),
        ("A library is a place. EbookLib is a library.", "EbookLib", False),
    ],
)
def test_sentences_that_say_what_a_name_is(sentence: str, name: str, expected: bool) -> None:
    assert defines(sentence, name) is expected
