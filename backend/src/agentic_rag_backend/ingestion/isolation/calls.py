"""Calls that run in a child process: pure functions of a document's bytes or chunks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentic_rag_backend.domain.document import Chunk, ChunkingOptions
from agentic_rag_backend.domain.graph import Extraction
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.ingestion.chunking.passages import chunks_of
from agentic_rag_backend.ingestion.parsing.base import ParsedDocument
from agentic_rag_backend.ingestion.parsing.registry import parse, parse_stored, title_of
from agentic_rag_backend.knowledge.extraction.rules import RuleExtractor
from agentic_rag_backend.models.embedding.base import Tokenizer


@dataclass(frozen=True, slots=True)
class Workshop:
    """Resources that the calls need in addition to their arguments. Created once, before the first fork."""

    tokenizer: Tokenizer
    extractor: RuleExtractor = field(default_factory=RuleExtractor)


def title(_: Workshop, content: bytes, media_type: str, file_name: str | None, partial: bool) -> str:
    """Return the title of a readable document."""
    return title_of(parse(content, media_type, partial=partial), file_name)


def read(
    workshop: Workshop, content: bytes | str, media_type: str, owner: tuple[str, str, int], options: ChunkingOptions
) -> tuple[ParsedDocument, list[Chunk]]:
    """Return a document's text and its chunks. ``owner`` is its tenant, id and version.

    ``content`` is the original, or the text that was made from it before (a str).
    """
    tenant, document_id, version = owner
    parsed = parse_stored(content, media_type) if isinstance(content, str) else parse(content, media_type)
    chunks = chunks_of(TenantId(tenant), document_id, version, parsed, options, tokenizer=workshop.tokenizer)
    return ParsedDocument(text=parsed.text, title=parsed.title, metadata=dict(parsed.metadata)), chunks


def extract(workshop: Workshop, title: str, chunks: Sequence[Chunk]) -> list[Extraction]:
    """Return the extractions by rules from chunks of one document."""
    return workshop.extractor.extract_document(title, chunks)


CALLS: Mapping[str, Callable[..., Any]] = {"title": title, "read": read, "extract": extract}
