"""A name or a declaration that says another type than the content."""

from __future__ import annotations

import pytest

from agentic_rag_backend.domain.media_types import find_type_conflict

PDF = b"%PDF-1.7\n"


@pytest.mark.parametrize(
    ("declared", "name", "head", "named"),
    [
        ("text/plain", "report.txt", PDF, "text/plain"),
        (None, "report.html", PDF, "text/html"),
        ("application/rtf", "report.pdf", PDF, "application/rtf"),
    ],
)
def test_a_contradiction_names_both_types(declared: str | None, name: str, head: bytes, named: str) -> None:
    warning = find_type_conflict(declared, name, head)
    assert warning is not None
    assert "application/pdf by its content" in warning
    assert f"not {named}" in warning


@pytest.mark.parametrize(
    ("declared", "name", "head"),
    [("application/pdf", "report.pdf", PDF), (None, None, PDF), ("text/plain", "a.md", b"# Text"), (None, "a.bin", PDF)],
)
def test_what_agrees_or_says_nothing_is_no_contradiction(declared: str | None, name: str | None, head: bytes) -> None:
    assert find_type_conflict(declared, name, head) is None
