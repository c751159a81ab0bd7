"""From pieces to chunks: ids, lines and hashes; and the text under which a chunk is found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from agentic_rag_backend.documents.chunking.base import Piece
from agentic_rag_backend.documents.chunking.functions import with_functions
from agentic_rag_backend.documents.chunking.locations import Locator
from agentic_rag_backend.documents.chunking.registry import chunker_of
from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.domain.document import Chunk, ChunkingOptions, chunk_id, content_hash
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.language.entries.reading import header_text
from agentic_rag_backend.language.titles import EXCERPT_MARK, is_excerpt
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer


def chunks_of(
    tenant: TenantId,
    document_id: str,
    version: int,
    parsed: ParsedDocument,
    options: ChunkingOptions,
    *,
    tokenizer: WordPieceTokenizer,
) -> list[Chunk]:
    """Return the chunks of one version; the same input gives the same chunks in every process."""
    pieces = with_functions(chunker_of(options.strategy, tokenizer)(parsed, options), parsed)
    return chunks_from(tenant, document_id, version, parsed, pieces)


def chunks_from(tenant: TenantId, document_id: str, version: int, parsed: ParsedDocument, pieces: Iterable[Piece]) -> list[Chunk]:
    """Return the chunks that have the passages ``pieces``."""
    chunks: list[Chunk] = []
    counts: Counter[str] = Counter()
    locator = Locator(parsed)
    for piece in pieces:
        text = parsed.text[piece.start : piece.end]
        digest = content_hash(text)
        chunks.append(
            Chunk(
                id=chunk_id(tenant, document_id, digest, counts[digest]),
                document_id=document_id,
                version=version,
                ordinal=len(chunks),
                text=text,
                size_tokens=piece.size_tokens,
                content_hash=digest,
                location=locator.locate_piece(piece),
            )
        )
        counts[digest] += 1
    return chunks


MAX_CONTEXT_CHARACTERS = 500
"""Characters of the headings above a passage in the text under which it is found, and of the header of its table. Passages of the
default size have about 900. The encoder reads the context with every passage."""


def passage_text(title: str, chunk: Chunk) -> str:
    """Return the text under which ``chunk`` is embedded and indexed: title, headings and header above it, then its own text.

    If it has statements, they take the place of its text.

    A heading that the chunk's text begins with, or that repeats the title, is not said twice.
    """
    beginning = chunk.text[: sum(map(len, chunk.location.headings)) + 100].casefold()
    path: list[str] = [title.strip()] if title.strip() and not _repeats_title(beginning, title.strip()) else []
    path += _select_headings(
        [
            heading
            for heading in chunk.location.headings
            if heading != title.strip() and not _begins_with_heading(beginning, heading)
        ]
    )
    header = header_text(chunk.location.header)
    return "\n".join((*path, *([header] if header else []), *(chunk.location.statements or (chunk.text,))))


def _select_headings(headings: Sequence[str]) -> list[str]:
    """Return the last headings that fit in `MAX_CONTEXT_CHARACTERS`, in their order. The last one always does."""
    chosen: list[str] = []
    room = MAX_CONTEXT_CHARACTERS
    for heading in reversed(headings):
        room -= len(heading)
        if room < 0 and chosen:
            break
        chosen.insert(0, heading)
    return chosen


def _repeats_title(beginning: str, title: str) -> bool:
    """Return whether the beginning of a passage repeats the title, or is the text from which the title was taken."""
    excerpt = is_excerpt(title) and beginning.lstrip("# \t\n").startswith(title.removesuffix(EXCERPT_MARK).casefold())
    return excerpt or _begins_with_heading(beginning, title)


def _begins_with_heading(text: str, heading: str) -> bool:
    lines: Sequence[str] = [line.lstrip("# \t").rstrip("# \t") for line in text.splitlines()]
    return heading.casefold() in lines
