"""A name or a declaration that says another type than the content."""

from __future__ import annotations

from agentic_rag_backend.domain.media_types import find_type_conflict

PDF = b"%PDF-1.7\n"


def test_a_contradiction_names_both_types() -> None:
    for declared, name, head, named in [
        ("text/plain", "report.txt", PDF, "text/plain"),
        (None, "report.html", PDF, "text/html"),
        ("application/rtf", "report.pdf", PDF, "application/rtf"),
    ]:
        warning = find_type_conflict(declared, name, head)
        assert warning is not None
        assert "application/pdf by its content" in warning
        assert f"not {named}" in warning


def test_what_agrees_or_says_nothing_is_no_contradiction() -> None:
    for declared, name, head in [
        ("application/pdf", "report.pdf", PDF),
        (None, None, PDF),
        ("text/plain", "a.md", b"# Text"),
        (None, "a.bin", PDF),
    ]:
        assert find_type_conflict(declared, name, head) is None
