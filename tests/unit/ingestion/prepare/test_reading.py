"""Which documents the serving process checks itself, and which small documents are read and extracted in one call."""

from __future__ import annotations

from typing import Any, cast

from document_versions import version_of

from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.domain.document import ProcessingOptions
from agentic_rag_backend.domain.media_types import MARKDOWN, TEXT
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.ingestion.prepare.chunk_reading import ChunkReader
from agentic_rag_backend.ingestion.prepare.reading import SMALL_BYTES, FileSource, IsolatedReader

TENANT = TenantId("t_" + "1" * 32)


class _Isolation:
    """Records the names of calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def call_worker(self, name: str, *arguments: Any, **options: Any) -> Any:
        self.calls.append(name)
        return ("", ()) if name == "check" else (ParsedDocument(text="x"), [], [])[: 2 + (name == "read_with_rules")]


async def test_only_small_plain_text_in_utf8_is_checked_in_this_process() -> None:
    for head, media_type, charset, isolated in [
        ("Füße".encode(), TEXT, None, False),
        ("Füße".encode("latin-1"), TEXT, None, True),
        ("Füße".encode("utf-16"), TEXT, None, True),
        ("Füße".encode(), TEXT, "utf-8", True),
        (b"x" * (SMALL_BYTES + 1), TEXT, None, True),
        (b"# Title", MARKDOWN, None, True),
    ]:
        isolation = _Isolation()
        await IsolatedReader(cast("Any", isolation)).check_file(
            TENANT, head, FileSource(media_type, charset, None), is_whole=True
        )
        assert isolation.calls == ["check"] * isolated


async def test_small_documents_that_wait_for_nobody_are_read_and_extracted_in_one_call() -> None:
    for size, extraction, waiting, call in [
        (SMALL_BYTES, "rules", False, "read_with_rules"),
        (SMALL_BYTES + 1, "rules", False, "read"),
        (SMALL_BYTES, "llm", False, "read"),
        (SMALL_BYTES, "rules", True, "read"),
    ]:
        isolation = _Isolation()
        reader = IsolatedReader(cast("Any", isolation))
        options = ProcessingOptions(extraction=extraction)
        read = ChunkReader(reader, cast("Any", None), rules=reader).read
        await read(TENANT, version_of(options=options), b"x" * size, record=None, waiting=waiting)
        assert isolation.calls == [call]
