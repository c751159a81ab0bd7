"""Chunks of a result's passage: those that a search matched, and those around them."""

from __future__ import annotations

from pydantic import Field

from agentic_rag_backend.api.schemas.base import View
from agentic_rag_backend.domain.query import Hit


class ContextChunkView(View):
    """A chunk of a result's passage that is read around the matched ones."""

    id: str
    ordinal: int = Field(description="position in the document, from 0")
    start_char: int
    end_char: int


class MatchedChunkView(ContextChunkView):
    """A chunk of a result's passage that the search matched."""

    score: float


def matched_chunks(hit: Hit) -> list[MatchedChunkView]:
    """Return the chunks of a hit's passage that matched, best first."""
    chunks = {chunk.id: chunk for chunk in (hit.parent.chunks if hit.parent is not None else (hit.visible.chunk,))}
    return [
        MatchedChunkView(
            id=match.id,
            ordinal=chunks[match.id].ordinal,
            start_char=chunks[match.id].location.start_char,
            end_char=chunks[match.id].location.end_char,
            score=match.score,
        )
        for match in hit.matched
    ]


def context_chunks(hit: Hit) -> list[ContextChunkView]:
    """Return the other chunks of a hit's passage, in reading order. None if the strategy records no matches."""
    matched = {match.id for match in hit.matched}
    chunks = hit.parent.chunks if hit.parent is not None and matched else ()
    return [
        ContextChunkView(
            id=chunk.id, ordinal=chunk.ordinal, start_char=chunk.location.start_char, end_char=chunk.location.end_char
        )
        for chunk in chunks
        if chunk.id not in matched
    ]
