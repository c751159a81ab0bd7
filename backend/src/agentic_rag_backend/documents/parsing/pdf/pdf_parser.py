"""Parser of PDF files."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from agentic_rag_backend.documents.parsing.base import ParsedDocument, Preview
from agentic_rag_backend.documents.parsing.building import TextBuilder
from agentic_rag_backend.documents.parsing.pdf.details import metadata_of, title_of
from agentic_rag_backend.documents.parsing.pdf.forms.embedded_files import name_embedded_files
from agentic_rag_backend.documents.parsing.pdf.furniture import without_furniture
from agentic_rag_backend.documents.parsing.pdf.headings import outline_of
from agentic_rag_backend.documents.parsing.pdf.opening import open_pdf
from agentic_rag_backend.documents.parsing.pdf.page_reading import PageReading, read_placeholder_form
from agentic_rag_backend.documents.parsing.pdf.scanned.scans import Scans
from agentic_rag_backend.documents.parsing.pdf.text_assembly import assemble_text
from agentic_rag_backend.documents.recognition.base import NoRecogniser, Recogniser
from agentic_rag_backend.domain.document import AttachmentOptions
from agentic_rag_backend.domain.media_types import PDF_BEGINNING
from agentic_rag_backend.errors import UnreadableDocument


@dataclass(frozen=True, slots=True)
class PdfParser:
    """Parser of PDF. The title is that of the metadata. ``recogniser`` reads pages that are pictures.

    ``attachments`` says what becomes of embedded files: documents of their own, or names in the text.
    """

    recogniser: Recogniser = field(default_factory=NoRecogniser)
    attachments: AttachmentOptions = field(default_factory=AttachmentOptions)

    def with_attachments(self, options: AttachmentOptions) -> PdfParser:
        """Return a parser that does with embedded files what ``options`` say."""
        return replace(self, attachments=options)

    def with_recogniser(self, recogniser: Recogniser) -> PdfParser:
        """Return a parser that reads pictures with ``recogniser``."""
        return replace(self, recogniser=recogniser)

    def check(self, head: bytes, *, is_whole: bool) -> Preview:
        """Check the signature; open the file if all of it is there."""
        if b"%PDF-" not in head[:PDF_BEGINNING]:
            raise UnreadableDocument("the file is not a PDF file: it does not begin with %PDF-")
        if not is_whole:
            return Preview(title=None, text="")
        with open_pdf(head) as document:
            return Preview(title=title_of(document), text="")

    def parse(self, content: bytes) -> ParsedDocument:
        """Return the text of the pages, a region for each line."""
        scans, builder = Scans(self.recogniser), TextBuilder()
        with open_pdf(content) as document:
            paragraphs = read_placeholder_form(document)
            if paragraphs is None:
                reading = PageReading(document, scans, builder.omissions)
                pages = reading.read_layouts()
                heads = without_furniture(pages, builder.omissions)
                assemble_text(builder, pages, outline_of(document), [*heads, *reading.comments])
            for paragraph in paragraphs or ():
                builder.add_paragraph(paragraph)
            count, warnings = (
                name_embedded_files(builder, document, self.attachments) if document.count_attachments() > 0 else (0, [])
            )
            parsed = builder.build(title=title_of(document), metadata=metadata_of(document) | scans.metadata)
        warnings = [*parsed.warnings, *scans.warnings, *warnings]
        return replace(parsed, warnings=tuple(warnings), failures=scans.failures, attachments=count)

    def restore(self, text: str) -> ParsedDocument:
        """Return ``text``; its structure was in the file."""
        return ParsedDocument(text=text)
