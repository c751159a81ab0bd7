"""The parser of each media type, and the title of a document."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, cast

from agentic_rag_backend.documents.parsing.base import (
    Parser,
    PictureParser,
    Preview,
    TextParser,
)
from agentic_rag_backend.documents.parsing.encodings.decoding_parser import DecodingParser
from agentic_rag_backend.documents.recognition.base import Recogniser
from agentic_rag_backend.domain.document import AttachmentOptions
from agentic_rag_backend.domain.media_types import (
    CALENDAR,
    CSV,
    DOCX,
    EML,
    EPUB,
    HTML,
    JPEG,
    JSON,
    JSONL,
    MARKDOWN,
    MSG,
    NOTEBOOK,
    ODP,
    ODS,
    ODT,
    PDF,
    PICTURES,
    PNG,
    PPTX,
    RST,
    RTF,
    SOURCE_CODE,
    TEXT,
    TIFF,
    WEBP,
    XLS,
    XLSX,
    unsupported_type,
)
from agentic_rag_backend.domain.size_limits import MAX_TITLE_CHARACTERS, make_storable
from agentic_rag_backend.errors import UnsupportedMediaType
from agentic_rag_backend.language.titles import EXCERPT_MARK, UNTITLED, is_placeholder

if TYPE_CHECKING:
    from agentic_rag_backend.documents.parsing.mail.mail_attachments import MailAttachments
    from agentic_rag_backend.documents.parsing.mail.mail_parser import MailParser
    from agentic_rag_backend.documents.parsing.pdf.forms.embedded_files import EmbeddedFiles
    from agentic_rag_backend.documents.parsing.pdf.pdf_parser import PdfParser
    from agentic_rag_backend.documents.parsing.pdf.rendering import PdfRenderer

PARSERS: Mapping[str, str] = {
    TEXT: "text:PlainTextParser",
    MARKDOWN: "markdown:MarkdownParser",
    HTML: "html.html_parser:HtmlParser",
    CSV: "delimited_tables:DelimitedParser",
    JSON: "json_documents:JsonParser",
    JSONL: "json_documents:JsonLinesParser",
    CALENDAR: "mail.calendar_events:CalendarParser",
    NOTEBOOK: "notebooks:NotebookParser",
    RST: "restructured.rst_parser:RstParser",
    EML: "mail.mail_parser:MailParser",
    MSG: "mail.outlook:OutlookParser",
    PDF: "pdf.pdf_parser:PdfParser",
    DOCX: "office.word.docx:DocxParser",
    EPUB: "books.epub:EpubParser",
    ODP: "office.odp:OdpParser",
    ODS: "office.sheets.ods:OdsParser",
    ODT: "office.odt:OdtParser",
    PPTX: "office.pptx:PptxParser",
    RTF: "office.rtf:RtfParser",
    XLS: "office.sheets.xls:XlsParser",
    XLSX: "office.sheets.xlsx:XlsxParser",
    **dict.fromkeys((PNG, JPEG, TIFF, WEBP), "pictures:ImageParser"),
    **{media_type: f"code.code_parser:CodeParser:{language_file.language}" for media_type, language_file in SOURCE_CODE.items()},
}
"""The module, class and arguments of each parser. The first document of a type imports it: some libraries are large."""
_TEXTS = frozenset({TEXT, MARKDOWN, HTML, CALENDAR, CSV, JSON, JSONL, NOTEBOOK, RST, *SOURCE_CODE})
"""Formats that are text. Their parsers are `TextParser`s."""
WITH_PICTURES = frozenset({EML, MSG, PDF, *PICTURES})
"""Formats that may contain pictures of text. Their parsers are `PictureParser`s."""
RENDERERS: Mapping[str, str] = {PDF: "pdf.rendering:PdfRenderer"}
"""The module and class of each renderer."""
ATTACHMENT_READERS: Mapping[str, str] = {
    EML: "mail.mail_attachments:MailAttachments",
    MSG: "mail.outlook:OutlookAttachments",
    PDF: "pdf.forms.embedded_files:EmbeddedFiles",
}
"""The module and class of each reader of attachments."""
_NUMBERS: Mapping[str, int] = {media_type: number for number, media_type in enumerate(PARSERS)}

_LINE_AS_TITLE_CHARACTERS = 80
_LINE_ENDS = " \t.,;:…"


def parser_of(
    media_type: str,
    charset: str | None = None,
    recogniser: Recogniser | None = None,
    attachments: AttachmentOptions | None = None,
) -> Parser:
    """Return the parser of ``media_type``, a key of `domain.media_types.FORMATS`.

    Args:
        charset: the one that the upload declares; it applies to formats that are text.
        recogniser: recognises text in pictures of one document. None: the text of pictures is not read.
        attachments: options of formats with attachments. None: their defaults.

    Raises:
        UnsupportedMediaType: there is none.
    """
    if media_type not in PARSERS:
        raise unsupported_type(media_type)
    parser = _load_parser(PARSERS[media_type])
    if attachments is not None and media_type in ATTACHMENT_READERS:
        parser = cast("MailParser | PdfParser", parser).with_attachments(attachments)
    if recogniser is not None and media_type in WITH_PICTURES:
        return cast(PictureParser, parser).with_recogniser(recogniser)
    return DecodingParser(cast(TextParser, parser), media_type, charset) if media_type in _TEXTS else cast(Parser, parser)


def renderer_of(media_type: str) -> PdfRenderer:
    """Return the renderer of ``media_type``.

    Raises:
        UnsupportedMediaType: there is none.
    """
    if media_type not in RENDERERS:
        raise UnsupportedMediaType(f"pages of {media_type} have no picture; documents with one are {', '.join(RENDERERS)}")
    return cast("PdfRenderer", _load_parser(RENDERERS[media_type]))


def attachments_of(media_type: str) -> MailAttachments | EmbeddedFiles:
    """Return the reader of attachments of ``media_type``, a key of `ATTACHMENT_READERS`."""
    return cast("MailAttachments | EmbeddedFiles", _load_parser(ATTACHMENT_READERS[media_type]))


def number_of(media_type: str) -> int:
    """Return the number of a media type with a parser, by which another process of the same release can `load_libraries` it."""
    return _NUMBERS[media_type]


def load_libraries(number: int) -> None:
    """Import the libraries of the media type with this number, so that its first document need not wait for them.

    Raises:
        ImportError: a library is missing or damaged.
    """
    media_type = tuple(PARSERS)[number]
    parser_of(media_type)
    if media_type in RENDERERS:
        renderer_of(media_type)


@functools.cache
def _load_parser(name: str) -> object:
    module, class_name, *arguments = name.split(":")
    return getattr(importlib.import_module(f"{__package__}.{module}"), class_name)(*arguments)


def title_of(preview: Preview, file_name: str | None) -> str:
    """Return the title of a document whose owner gives none: its own, the name of its file, or the beginning of its first line.

    A title that programs give to every file is none. The last of these is an excerpt (`is_excerpt`).
    """
    stem = PurePath((file_name or "").replace("\\", "/")).stem.strip()
    own_title = preview.title if preview.title and not is_placeholder(preview.title) else ""
    if own_title or stem:
        return make_storable(own_title or stem)[:MAX_TITLE_CHARACTERS]
    line = next((line for line in map(str.strip, preview.text.splitlines()) if line), "")
    if not line:
        return UNTITLED
    if len(line) >= _LINE_AS_TITLE_CHARACTERS:
        line = line[: _LINE_AS_TITLE_CHARACTERS - 1].rsplit(" ", 1)[0]
    return line.rstrip(_LINE_ENDS) + EXCERPT_MARK
