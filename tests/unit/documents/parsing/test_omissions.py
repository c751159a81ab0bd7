"""Warnings about parts of a file that are not in its text."""

from agentic_rag_backend.documents.parsing.building import TextBuilder
from agentic_rag_backend.documents.parsing.omissions import Omissions


def test_kinds_are_counted_with_their_first_places() -> None:
    omissions = Omissions()
    omissions.add("hidden rows", "Sales!5:7", count=3)
    omissions.add("comments")
    omissions.add("hidden rows", "Costs!2")
    omissions.add("charts", "slide 1", count=0)
    assert omissions.list_warnings() == (
        "not in the text: hidden rows (4: Sales!5:7, Costs!2)",
        "not in the text: comments (1)",
    )


def test_a_warning_names_few_places() -> None:
    omissions = Omissions()
    for page in range(1, 3_000):
        omissions.add("annotations", f"page {page}")
    assert omissions.list_warnings() == ("not in the text: annotations (2999: page 1, page 2, page 3, …)",)


def test_a_built_document_has_the_warnings() -> None:
    builder = TextBuilder()
    builder.add_paragraph("The lock closes at noon.")
    assert builder.build().warnings == ()
    builder.omissions.add("charts", "slide 2")
    assert builder.build().warnings == ("not in the text: charts (1: slide 2)",)
