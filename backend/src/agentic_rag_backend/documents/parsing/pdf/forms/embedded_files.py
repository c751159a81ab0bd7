"""Files that are embedded in a PDF file, as files of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pypdfium2

from agentic_rag_backend.documents.parsing.base import Attachment
from agentic_rag_backend.documents.parsing.building import TextBuilder
from agentic_rag_backend.documents.parsing.mail.mail_attachments import (
    MAX_ATTACHED_BYTES,
    TOO_LARGE,
    TOO_MANY,
    Listed,
    explain_refusal,
)
from agentic_rag_backend.documents.parsing.mail.message import MAX_NAME_CHARACTERS
from agentic_rag_backend.documents.parsing.pdf.opening import open_pdf
from agentic_rag_backend.documents.parsing.pdf.text_lines import clean_text
from agentic_rag_backend.domain.document import AttachmentOptions

MAX_NAMED = 1_000
"""Embedded files that are named."""


class EmbeddedFiles:
    """Reads the files within a PDF file. Pure and blocking, as a `Parser`."""

    def read(self, content: bytes, options: AttachmentOptions) -> list[Attachment]:
        """Return the embedded files that become documents of their own, in their order.

        Raises:
            UnreadableDocument: the file is not a PDF file.
        """
        with open_pdf(content) as document:
            return [entry.file for entry in list_embedded_files(document, options) if entry.file is not None]


def list_embedded_files(document: pypdfium2.PdfDocument, options: AttachmentOptions) -> Iterator[Listed]:
    """Yield the embedded files, and the reason why a file is not read. Files within embedded files are not read."""
    size = 0
    name_counts: Counter[str] = Counter()
    for index in range(min(document.count_attachments(), MAX_NAMED)):
        embedded = document.get_attachment(index)
        name = clean_text(embedded.get_name()).replace("/", " ").replace("\\", " ").strip()[:MAX_NAME_CHARACTERS] or "attachment"
        name_counts[name] += 1
        if not options.apart or index >= options.most:
            yield Listed(name, None, TOO_MANY if options.apart else "not read, as the upload asked")
            continue
        try:
            content = bytes(embedded.get_data())
        except pypdfium2.PdfiumError:
            yield Listed(name, None, "not read: it is damaged")
            continue
        size += len(content)
        if size > MAX_ATTACHED_BYTES:
            yield Listed(name, None, f"not read: {TOO_LARGE}")
            continue
        inner = AttachmentOptions(options.mode, 0, options.depth + 1)
        file = Attachment(
            place=f"{name_counts[name]}/{name}", name=name, declared="application/octet-stream", content=content, options=inner
        )
        reason = explain_refusal(file, None)
        yield Listed(name, None, f"not read: {reason}") if reason else Listed(name, file)


def name_embedded_files(
    builder: TextBuilder, document: pypdfium2.PdfDocument, options: AttachmentOptions
) -> tuple[int, list[str]]:
    """Add the names of embedded files to a text. Return the number of documents that they become, and the warnings."""
    count, warnings = 0, []
    for entry in list_embedded_files(document, options):
        outcome = entry.reason or "a document of its own"
        builder.add_paragraph(f"Attachment {entry.name}: {outcome}")
        count += entry.file is not None
        if entry.file is None:
            warnings.append(f"attachment {entry.name}: {outcome}")
    return count, warnings
