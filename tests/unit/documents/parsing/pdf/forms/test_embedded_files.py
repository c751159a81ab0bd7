from __future__ import annotations

import pytest
from pdf_files import Page, pdf_of, stream_of

from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.documents.parsing.mail.mail_attachments import TOO_MANY
from agentic_rag_backend.documents.parsing.pdf.forms import embedded_files
from agentic_rag_backend.documents.parsing.pdf.pdf_parser import PdfParser
from agentic_rag_backend.documents.parsing.registry import attachments_of
from agentic_rag_backend.domain.document import AttachmentOptions

APART = AttachmentOptions("documents")
FILES = {"tariff.txt": "The toll is 4 crowns.", "../tariff.txt": "The toll was 3 crowns.", "seal.bin": "\x01\x02\x03\x04"}


def file_with(files: dict[str, str]) -> bytes:
    names = " ".join(f"({name}) {5 + 2 * number} 0 R" for number, name in enumerate(files))
    objects: list[str] = []
    for name, content in files.items():
        stream = f"<< /F {len(objects) + 6} 0 R >>"
        objects += [f"<< /Type /Filespec /F ({name}) /UF ({name}) /EF {stream} >>", stream_of(content, "/Type /EmbeddedFile")]
    return pdf_of(
        Page().shows(72, 700, "The tolls are in a file."),
        catalog=f"/Names << /EmbeddedFiles << /Names [{names}] >> >>",
        more_objects=objects,
    )


def parsed(options: AttachmentOptions) -> ParsedDocument:
    return PdfParser().with_attachments(options).parse(file_with(FILES))


def test_embedded_files_become_documents_or_are_named() -> None:
    document = parsed(APART)
    read = attachments_of("application/pdf").read(file_with(FILES), APART)
    assert document.attachments == len(read) == 2
    assert [(file.place, file.content.decode()) for file in read] == [
        ("1/tariff.txt", "The toll is 4 crowns."),
        ("1/.. tariff.txt", "The toll was 3 crowns."),
    ]
    assert "Attachment tariff.txt: a document of its own" in document.text
    assert len(document.warnings) == 1
    assert document.warnings[0].startswith("attachment seal.bin: not read: ")
    named = parsed(AttachmentOptions())
    assert (named.attachments, len(named.warnings)) == (0, 3)


def test_limits_of_embedded_files(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parsed(AttachmentOptions("documents", most=1)).warnings[0] == f"attachment ../tariff.txt: {TOO_MANY}".replace(
        "/", " ", 1
    )
    monkeypatch.setattr(embedded_files, "MAX_ATTACHED_BYTES", 30)
    assert parsed(APART).attachments == 1
