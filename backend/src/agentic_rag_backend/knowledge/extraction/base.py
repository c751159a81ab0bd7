"""The extractor port: a chunk's names and the relationships between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agentic_rag_backend.domain.document import Chunk
from agentic_rag_backend.domain.graph import Extraction
from agentic_rag_backend.domain.tenant import TenantId


@dataclass(frozen=True, slots=True)
class Origin:
    """The document of the chunks, for methods that compare them with the tenant's graph.

    ``date`` is the document's own date (ISO 8601: a day, a month or a year); empty if it has none.
    """

    tenant: TenantId
    document_id: str
    date: str = ""


class Extractor(Protocol):
    """Extracts knowledge from chunks. Returns one extraction per chunk, in order. Offsets are within the chunk's text."""

    @property
    def version(self) -> str:
        """Name of the method and its version, under which results are cached."""

    async def extract(self, title: str, chunks: Sequence[Chunk]) -> list[Extraction]:
        """Extract from the chunks of one document, whose title is ``title``."""
