"""Text in pictures is recognised in child processes, and the program that does it stays within the document's limits."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pdf_files import Page, pdf_of
from scanned_files import require_tesseract, scan_of

from agentic_rag_backend.documents.recognition.ocr import Ocr, OcrSettings
from agentic_rag_backend.domain.document import DocumentVersion, ProcessingOptions
from agentic_rag_backend.domain.media_types import PDF
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import ResourceLimit, UnreadableDocument
from agentic_rag_backend.ingestion.isolation.call_limits import CallLimits
from agentic_rag_backend.ingestion.isolation.worker_pool import Isolation
from agentic_rag_backend.ingestion.prepare.reading import IsolatedReader

TENANT = TenantId("t_" + "1" * 32)
WORDS = ["The caisson for the tidal barrage was", "delivered by Petra Lindqvist in 2021."]
VERSION = DocumentVersion(
    document_id="document-1",
    version=1,
    title="",
    content_hash="",
    media_type=PDF,
    blob_key="",
    options=ProcessingOptions(),
    metadata={},
)


@pytest.fixture
async def isolation() -> AsyncIterator[Isolation]:
    opened = Isolation(CallLimits(cpu_s=60.0, timeout_s=500.0))
    yield opened
    await opened.close()


def ocr_with(script: str, folder: Path, monkeypatch: pytest.MonkeyPatch, *, timeout_s: float = 60.0) -> Ocr:
    """Return the recognition by a program that runs ``script`` for a picture."""
    program = folder / "tesseract"
    program.write_text(
        "#!/bin/sh\ncase $1 in --version) echo tesseract 5.3.0; exit;; --list-langs) printf 'List:\\neng\\n'; exit;; esac\n"
        f"{script}\n",
        encoding="ascii",
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return Ocr(OcrSettings(timeout_s=timeout_s))


async def test_a_scanned_page_is_read_in_a_child_process(isolation: Isolation) -> None:
    require_tesseract()
    content = scan_of(pdf_of(Page(rotate=90).column(72, 700, WORDS, size=14, pitch=18)))
    document, chunks = await IsolatedReader(isolation, Ocr()).read_version(TENANT, VERSION, content)
    assert "Petra Lindqvist" in document.text
    region = next(region for chunk in chunks for region in chunk.location.regions if region.page == 1)
    assert region.box is not None
    assert document.metadata["ocr_pages"] == 1
    assert document.metadata["ocr_confidence"] > 0.8
    with pytest.raises(UnreadableDocument, match=r"only images.*OCR is switched off \(OCR=off\)"):
        await IsolatedReader(isolation).read_version(TENANT, VERSION, content)


async def test_a_program_that_hangs_ends_with_its_document(
    isolation: Isolation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = IsolatedReader(isolation, ocr_with("exec sleep 600", tmp_path, monkeypatch, timeout_s=1.0))
    with pytest.raises(ResourceLimit, match=r"more than 1 seconds \(OCR_TIMEOUT_S\)"):
        await reader.read_version(TENANT, VERSION, pdf_of(Page().picture()))


async def test_the_program_ends_with_the_process_that_reads(
    isolation: Isolation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The program may write no file, but a pipe. It leaves the pipes of its parent, so that their end does not end it.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    script = f"echo $$ $PPID > {pipe}; exec sleep 600 < /dev/null > /dev/null 2>&1"
    reader = IsolatedReader(isolation, ocr_with(script, tmp_path, monkeypatch))
    reading = asyncio.create_task(reader.read_version(TENANT, VERSION, pdf_of(Page().picture())))
    program, parent = map(int, (await asyncio.to_thread(pipe.read_text)).split())
    os.kill(parent, 9)
    with pytest.raises(ResourceLimit, match="ended by SIGKILL"):
        await reading
    for _ in range(200):
        if not Path(f"/proc/{program}").exists():
            break
        await asyncio.sleep(0.05)
    else:
        pytest.fail("the program outlived the process that reads")
