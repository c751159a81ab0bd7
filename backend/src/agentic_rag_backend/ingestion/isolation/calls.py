"""Calls that run in a child process: pure functions of a document's bytes, chunks or names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from agentic_rag_backend.documents.chunking.base import Piece
from agentic_rag_backend.documents.chunking.passages import chunks_of
from agentic_rag_backend.documents.chunking.sentence_units import MAX_UNITS, units_of
from agentic_rag_backend.documents.parsing.base import Attachment, PageFrame, ParsedDocument
from agentic_rag_backend.documents.parsing.registry import PARSERS, attachments_of, parser_of, renderer_of, title_of
from agentic_rag_backend.documents.recognition.base import NoRecogniser, RecognitionOptions
from agentic_rag_backend.domain.document import AttachmentOptions, Chunk, ProcessingOptions
from agentic_rag_backend.domain.graph import Extraction
from agentic_rag_backend.domain.location import Box
from agentic_rag_backend.domain.media_types import FORMATS
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.extraction.rules import RuleExtractor
from agentic_rag_backend.knowledge.identity.decisions import choose_entities, find_outdated_documents, list_contested_cases
from agentic_rag_backend.knowledge.resolution.assembly import build_knowledge
from agentic_rag_backend.knowledge.resolution.groups import names_of_document
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer
from agentic_rag_backend.plugins import load_plugin


@dataclass(frozen=True, slots=True)
class WorkerResources:
    """Resources that the calls need in addition to their arguments. Created once, before the first fork."""

    tokenizer: WordPieceTokenizer
    extractor: RuleExtractor = field(default_factory=RuleExtractor)


def check_file(_: WorkerResources, *arguments: Any) -> tuple[str, tuple[str, ...]]:
    """Do what `check_in_place` does."""
    return check_in_place(*arguments)


def check_in_place(
    head: bytes, media_type: str, charset: str | None, file_name: str | None, is_whole: bool
) -> tuple[str, tuple[str, ...]]:
    """Check the beginning of a file, or all of it if ``is_whole``. Return the title of the document, and warnings."""
    preview = parser_of(media_type, charset).check(head, is_whole=is_whole)
    return title_of(preview, file_name), preview.warnings


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """How a document is read: the options of its version, and the recognition of text in pictures or the reason for none."""

    processing: ProcessingOptions
    ocr: RecognitionOptions | str = "no OCR"


def read_file(
    resources: WorkerResources, content: bytes | str, media_type: str, owner: tuple[str, str, int], options: ReadingOptions
) -> tuple[ParsedDocument, list[Chunk]]:
    """Return a document's text and its chunks. ``owner`` is its tenant, id and version.

    ``content`` is the original, or the text that was made from it before (a str).
    """
    tenant, document_id, version = owner
    parsed = _parse_file(content, media_type, options)
    chunks = chunks_of(TenantId(tenant), document_id, version, parsed, options.processing.chunking, tokenizer=resources.tokenizer)
    return replace(parsed, metadata=dict(parsed.metadata), headings=(), regions=()), chunks


def read_with_rules(
    resources: WorkerResources,
    content: bytes | str,
    media_type: str,
    owner: tuple[str, str, int],
    title: str,
    options: ReadingOptions,
) -> tuple[ParsedDocument, list[Chunk], list[Extraction] | None]:
    """Return what `read_file` and `extract_chunks` return, in one call.

    None instead of extractions: the rules failed, and have to read each chunk alone.
    """
    parsed, chunks = read_file(resources, content, media_type, owner, options)
    try:
        return parsed, chunks, extract_chunks(resources, title, chunks)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - the calling process repeats the extraction and reports the error
        return parsed, chunks, None


def read_units(
    resources: WorkerResources, content: bytes | str, media_type: str, options: ReadingOptions
) -> tuple[ParsedDocument, list[Piece]]:
    """Return a document and its sentences and rows, for strategies that decide outside of this process how to join them.

    There are at most ``MAX_UNITS + 1`` of them.
    """
    parsed = _parse_file(content, media_type, options)
    pieces = list(islice(units_of(parsed, options.processing.chunking, resources.tokenizer), MAX_UNITS + 1))
    return replace(parsed, metadata=dict(parsed.metadata), headings=()), pieces


def _parse_file(content: bytes | str, media_type: str, options: ReadingOptions) -> ParsedDocument:
    recogniser = NoRecogniser(options.ocr) if isinstance(options.ocr, str) else load_plugin("ocr")(options.ocr)
    parser = parser_of(media_type, options.processing.charset, recogniser, options.processing.attachments)
    parsed = parser.restore(content) if isinstance(content, str) else parser.parse(content)
    return replace(parsed, language=FORMATS[media_type].language)


def read_attachments(_: WorkerResources, content: bytes, media_type: str, options: AttachmentOptions) -> list[Attachment]:
    """Return the files within a file that become documents of their own."""
    return attachments_of(media_type).read(content, options)


def extract_chunks(resources: WorkerResources, title: str, chunks: Sequence[Chunk]) -> list[Extraction]:
    """Return the extractions by rules from chunks of one document."""
    return resources.extractor.extract_document(title, chunks)


def read_page_frame(_: WorkerResources, content: bytes, media_type: str, number: int) -> PageFrame:
    """Return the visible part of a page and its rotation."""
    return renderer_of(media_type).read_frame(content, number)


def draw_page(_: WorkerResources, content: bytes, media_type: str, number: int, scale: float, boxes: Sequence[Box]) -> bytes:
    """Return a PNG of a page with ``boxes`` highlighted."""
    return renderer_of(media_type).draw_picture(content, number, scale, boxes)


COMPUTATIONS: Mapping[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (names_of_document, build_knowledge, list_contested_cases, choose_entities, find_outdated_documents)
}
"""Functions that `IsolatedOffload` may run: those whose cost a document decides."""


def run_computation(_: WorkerResources, name: str, arguments: Sequence[Any]) -> Any:
    """Return the result of a function of `COMPUTATIONS`."""
    return COMPUTATIONS[name](*arguments)


CHECK = "check"
CALLS: Mapping[str, Callable[..., Any]] = {
    CHECK: check_file,
    "read": read_file,
    "read_with_rules": read_with_rules,
    "units": read_units,
    "attachments": read_attachments,
    "extract": extract_chunks,
    "frame": read_page_frame,
    "picture": draw_page,
    "compute": run_computation,
}
_OF_FILES = frozenset({CHECK, "read", "read_with_rules", "units", "attachments", "frame", "picture"})
"""Calls whose first arguments are the content of a file and its media type."""


def media_type_of(name: str, arguments: Sequence[Any]) -> str | None:
    """Return the media type that a call reads. None if it reads no file, or no parser reads the media type."""
    media_type = arguments[1] if name in _OF_FILES else None
    return media_type if media_type in PARSERS else None
