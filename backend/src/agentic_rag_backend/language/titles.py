"""Titles of documents that nobody gave."""

from __future__ import annotations

EXCERPT_MARK = "…"
"""Ends a title that was taken from a line of the text, because neither the owner nor the file gives one."""

UNTITLED = "Untitled document"
"""Title of a document whose text has no line that the check at upload can read."""


def is_excerpt(title: str) -> bool:
    """Return whether a title is the beginning of a text, or missing. It names nothing, and has no subject and no date."""
    return title.rstrip().endswith(EXCERPT_MARK) or title == UNTITLED
