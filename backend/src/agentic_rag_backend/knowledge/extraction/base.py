"""The extractor port: a chunk's names and the relationships between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agentic_rag_backend.domain.document import Chunk
from agentic_rag_backend.domain.graph import Extraction


class Extractor(Protocol):
    """Turns chunks into extractions; one per chunk, in order. Offsets are within the chunk's text."""

    @property
    def version(self) -> str:
        """Name the method and its version; results are cached under it."""

    async def extract(self, title: str, chunks: Sequence[Chunk]) -> list[Extraction]:
        """Extract from the chunks of one document, whose title is ``title``."""
