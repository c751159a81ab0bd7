"""Quotations as answers write them."""

from __future__ import annotations

import pytest

from agentic_rag_backend.generation.quotations import written_text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("The lock opened in 1904 [3].", "The lock opened in 1904."),
        ("The lock opened in [[1]2] spring.", "The lock opened in (2) spring."),
        ("The lock opened in [**2**] spring.", "The lock opened in (2) spring."),
        ("The lock opened in [`2`] spring", "The lock opened in (2) spring."),
    ],
)
def test_a_quotation_has_no_number_in_brackets_which_looks_like_a_citation(text: str, written: str) -> None:
    assert written_text(text) == written
