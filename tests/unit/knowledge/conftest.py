from __future__ import annotations

from collections.abc import Callable

import pytest

from agentic_rag_backend.domain.document import Chunk, content_hash
from agentic_rag_backend.domain.location import Location

MakeChunks = Callable[..., list[Chunk]]


def _chunks(*texts: str, headings: tuple[str, ...] = (), document: str = "d1") -> list[Chunk]:
    start = 0
    found = []
    for ordinal, text in enumerate(texts):
        found.append(
            Chunk(
                id=f"{document}-c{ordinal}",
                document_id=document,
                version=1,
                ordinal=ordinal,
                text=text,
                size_tokens=len(text.split()),
                content_hash=content_hash(text),
                location=Location(start_char=start, end_char=start + len(text), start_line=1, end_line=1, headings=headings),
            )
        )
        start += len(text) + 1
    return found


@pytest.fixture(scope="session")
def chunks() -> MakeChunks:
    """Make the chunks of one document from their texts."""
    return _chunks
