"""Parser of messages (EML): headers, the text, and what the options say about attachments."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from email.message import EmailMessage, MIMEPart

from agentic_rag_backend.documents.parsing.base import ParsedDocument, Preview, sniff_content
from agentic_rag_backend.documents.parsing.building import TextBuilder
from agentic_rag_backend.documents.parsing.mail.mail_attachments import (
    MAX_ATTACHED_BYTES,
    PICTURE,
    TOO_DEEP,
    TOO_LARGE,
    TOO_MANY,
    describe_refusal,
    list_attachments,
)
from agentic_rag_backend.documents.parsing.mail.message import (
    MAX_PARTS,
    PartBudget,
    charset_of,
    content_of,
    inner_message,
    is_attachment_part,
    list_cut_headers,
    list_parts,
    name_of,
    open_message,
    read_headers,
    read_subject,
)
from agentic_rag_backend.documents.parsing.mail.texts import read_texts
from agentic_rag_backend.documents.recognition.base import Recogniser
from agentic_rag_backend.domain.document import MAX_ATTACHED_DEPTH, AttachmentOptions, Failure
from agentic_rag_backend.domain.media_types import PICTURES, media_type_of
from agentic_rag_backend.errors import AgenticRagError


@dataclass(slots=True)
class _Reading:
    """State of reading one message: the budget that is left, and the warnings and failures so far."""

    options: AttachmentOptions
    left: int
    recogniser: Recogniser | None = None
    """It has limits for all attachments together."""
    attached_bytes: int = MAX_ATTACHED_BYTES
    budget: PartBudget = field(default_factory=lambda: PartBudget(MAX_PARTS))
    warnings: list[str] = field(default_factory=list)
    """Warnings about the parts that were read."""
    failures: list[Failure] = field(default_factory=list)
    apart: int = 0
    """Attachments that become documents of their own."""


@dataclass(frozen=True, slots=True)
class MailParser:
    """Parser of messages (RFC 5322, MIME). ``recogniser`` reads pictures of text in attachments that are sections."""

    options: AttachmentOptions = field(default_factory=AttachmentOptions)
    recogniser: Recogniser | None = None

    def with_attachments(self, options: AttachmentOptions) -> MailParser:
        """Return a parser that does with attachments what ``options`` say."""
        return replace(self, options=options)

    def with_recogniser(self, recogniser: Recogniser) -> MailParser:
        """Return a parser that reads pictures with ``recogniser``."""
        return replace(self, recogniser=recogniser)

    def check(self, head: bytes, *, is_whole: bool) -> Preview:
        """Read the headers."""
        message = open_message(head)
        text = "\n".join(f"{name}: {value}" for name, value in read_headers(message).items())
        return Preview(title=read_subject(message), text=text)

    def parse(self, content: bytes) -> ParsedDocument:
        """Return headers and text, and the attachments as sections or by their names."""
        message = open_message(content)
        builder, reading = TextBuilder(), _Reading(self.options, self.options.most, self.recogniser)
        _write_message(builder, message, reading, depth=self.options.depth)
        fields = {name.lower(): value for name, value in read_headers(message).items()}
        parsed = builder.build(title=read_subject(message), metadata=fields)
        warnings = (*parsed.warnings, *reading.warnings)
        return replace(parsed, warnings=warnings, failures=tuple(reading.failures), attachments=reading.apart)

    def restore(self, text: str) -> ParsedDocument:
        """Return ``text``; headers are part of it."""
        return ParsedDocument(text=text)


def _write_message(builder: TextBuilder, message: EmailMessage, reading: _Reading, *, depth: int) -> None:
    builder.add_lines([(f"{name}: {value}", {}) for name, value in read_headers(message).items()])
    reading.warnings += list_cut_headers(message)
    message_parts = list(list_parts(message, reading.budget))
    body = read_texts(message)
    for parsed in (*body.texts, *body.events):
        builder.add_document(parsed, level=1)
    builder.omissions.add("other forms of the message, with other words", count=body.other_forms)
    reading.warnings += body.warnings
    if reading.options.mode == "sections":
        for part in filter(is_attachment_part, message_parts):
            _write_attachments(builder, part, reading, depth=depth)
    elif reading.options.apart:
        _list_attachments(builder, message_parts, reading)
    else:
        for part in filter(is_attachment_part, message_parts):
            builder.add_paragraph(f"Attachment {name_of(part)}: not read, as the upload asked")


def _list_attachments(builder: TextBuilder, message_parts: list[MIMEPart], reading: _Reading) -> None:
    """Add the names of attachments that become documents, and of the others with the reason.

    Each is a paragraph: names in one sentence would be taken for related.
    """
    for attachment in list_attachments(message_parts, reading.options, reading.budget):
        if attachment.file is not None:
            reading.apart += 1
            builder.add_paragraph(f"Attachment {attachment.name}: a document of its own")
            continue
        reason = attachment.reason if attachment.reason == TOO_MANY else f"not read: {attachment.reason}"
        builder.add_paragraph(f"Attachment {attachment.name}: {reason}")
        reading.warnings.append(f"attachment {attachment.name}: {reason}")


def _write_attachments(builder: TextBuilder, part: MIMEPart, reading: _Reading, *, depth: int) -> None:
    """Add an attachment as a section."""
    name = name_of(part)
    reading.left -= 1
    if reading.left < 0:
        builder.add_paragraph(f"Attachment {name}: {TOO_MANY}")
        reading.warnings.append(f"attachment {name}: {TOO_MANY}")
        return
    builder.add_heading(2, f"Attachment {name}")
    inner = inner_message(part)
    if inner is not None:
        if depth >= MAX_ATTACHED_DEPTH:
            _omit_text(builder, name, TOO_DEEP, reading)
        else:
            _write_message(builder, inner, reading, depth=depth + 1)
        return
    content = content_of(part)
    reading.attached_bytes -= len(content)
    if reading.attached_bytes < 0:
        _omit_text(builder, name, TOO_LARGE, reading)
        return
    _include_text(builder, part, name, content, reading)


def _include_text(builder: TextBuilder, part: MIMEPart, name: str, content: bytes, reading: _Reading) -> None:
    """Add the text that a parser makes of an attachment, or the reason why there is none."""
    from agentic_rag_backend.documents.parsing.registry import parser_of  # which imports this module by its name

    declared = part.get_content_type()
    try:
        media_type = media_type_of(declared, name, sniff_content(content))
        if media_type in PICTURES:
            _omit_text(builder, name, PICTURE, reading)
            return
        parsed = parser_of(media_type, charset_of(part), reading.recogniser).parse(content)
        builder.add_document(parsed, level=2)
        reading.warnings += [f"attachment {name}: {warning}" for warning in parsed.warnings]
        reading.failures += [replace(failure, message=f"attachment {name}: {failure.message}") for failure in parsed.failures]
    except AgenticRagError as error:
        _omit_text(builder, name, describe_refusal(error, declared, name), reading)


def _omit_text(builder: TextBuilder, name: str, reason: str, reading: _Reading) -> None:
    """Add the reason why an attachment has no text, and warn."""
    builder.add_paragraph(f"Not read: {reason}")
    reading.warnings.append(f"attachment {name}: not read: {reason}")
