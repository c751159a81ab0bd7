"""Quotations as answers write them."""

from __future__ import annotations

from agentic_rag_backend.answering.quotations import written_text


def test_a_quotation_has_no_number_in_brackets_which_looks_like_a_citation() -> None:
    for text, written in [
        ("The lock opened in 1904 [3].", "The lock opened in 1904."),
        ("The lock opened in [[1]2] spring.", "The lock opened in (2) spring."),
        ("The lock opened in [**2**] spring.", "The lock opened in (2) spring."),
        ("The lock opened in [`2`] spring", "The lock opened in (2) spring."),
    ]:
        assert written_text(text) == written
