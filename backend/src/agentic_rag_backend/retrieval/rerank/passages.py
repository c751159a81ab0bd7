"""The text of a candidate as a reranker reads it."""

from __future__ import annotations

from agentic_rag_backend.domain.query import Hit


def passage_of(hit: Hit) -> str:
    """Return the document's title, the headings above the chunk, and its text. A heading that repeats the title is left out."""
    title = hit.visible.document_title.strip()
    chunk = hit.visible.chunk
    above = [title, *(heading for heading in chunk.location.headings if heading != title)]
    return "\n".join((*(line for line in above if line and not chunk.text.startswith(line)), chunk.text))
