"""The names that may be shown: those that visible documents use."""

from __future__ import annotations

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import contains_name


def name_order(name: str, label: str) -> tuple[bool, str]:
    """Return the sort key of an entity's names. Of the names that visible versions use, the first one is shown.

    The entity's label in the graph store comes first, then the names in alphabetical order. The result depends on visible
    versions only, so the purge of a hidden version does not change it.
    """
    return name != label, name


def contains_label(passage: VisibleChunk, label: str) -> bool:
    """Return whether the passage, its document's title or a heading above it contains the label, in their current form."""
    texts = (passage.chunk.text, passage.document_title, *passage.chunk.location.headings)
    return any(contains_name(text, label) for text in texts)
