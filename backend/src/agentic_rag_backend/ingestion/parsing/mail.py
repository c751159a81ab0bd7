"""Messages (EML): headers, the text, and the readable attachments as sections below their names."""

from __future__ import annotations

import email
import email.policy
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from email.message import EmailMessage, MIMEPart
from pathlib import PurePath
from typing import Any, cast

from agentic_rag_backend.domain.document import Failure
from agentic_rag_backend.domain.media_types import EML, HTML, TEXT, media_type_of
from agentic_rag_backend.errors import AgenticRagError, ResourceLimit, UnreadableDocument
from agentic_rag_backend.ingestion.parsing.base import ParsedDocument, Preview
from agentic_rag_backend.ingestion.parsing.building import TextBuilder
from agentic_rag_backend.ingestion.recognition.base import Recogniser

MAX_PARTS = 1_000
MAX_ATTACHMENTS = 50
"""Attachments of a message and of the messages attached to it. Further ones are named, not read."""
MAX_ATTACHED_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 5
"""Messages attached to messages. Messages below are named, not read."""
MAX_PART_DEPTH = 50
"""Parts and messages within each other. The library reads them by recursion."""
MAX_HEADER_CHARACTERS = 8_000
"""Characters of a header that are read, some 200 recipients. The library needs time quadratic in them: 30,000 take a second."""
_HEADERS = ("From", "To", "Cc", "Date", "Subject")
_BODIES = ("plain", "html")


@dataclass(slots=True)
class _Limits:
    """What may still be read, and warnings about what was read. ``recogniser`` has limits for all attachments together."""

    recogniser: Recogniser | None = None
    attachments: int = MAX_ATTACHMENTS
    attached_bytes: int = MAX_ATTACHED_BYTES
    parts: int = field(default_factory=lambda: MAX_PARTS)
    warnings: list[str] = field(default_factory=list)
    """Warnings about the parts that were read."""
    failures: list[Failure] = field(default_factory=list)


class MailParser:
    """Parser of messages (RFC 5322, MIME). ``recogniser`` reads pictures of text in attachments."""

    def __init__(self, recogniser: Recogniser | None = None) -> None:
        self._recogniser = recogniser

    def recognising(self, recogniser: Recogniser) -> MailParser:
        """Return a parser that reads pictures with ``recogniser``."""
        return MailParser(recogniser)

    def check(self, head: bytes, *, whole: bool) -> Preview:
        """Read the headers."""
        message = _message(head)
        text = "\n".join(f"{name}: {value}" for name, value in _headers(message).items())
        return Preview(title=_subject(message), text=text)

    def parse(self, content: bytes) -> ParsedDocument:
        """Return headers, text and attachments."""
        message = _message(content)
        builder, limits = TextBuilder(), _Limits(recogniser=self._recogniser)
        _write(builder, message, limits, depth=0)
        found = {name.lower(): value for name, value in _headers(message).items()}
        parsed = builder.build(title=_subject(message), metadata=found)
        return replace(parsed, warnings=tuple(limits.warnings), failures=tuple(limits.failures))

    def restore(self, text: str) -> ParsedDocument:
        """Return ``text``; headers are part of it."""
        return ParsedDocument(text=text)


def _message(content: bytes) -> EmailMessage:
    try:
        message = email.message_from_bytes(content, policy=email.policy.default)
    except RecursionError:
        raise _too_deep() from None
    if _deeper(message, MAX_PART_DEPTH):
        raise _too_deep()
    if not _headers(message):
        raise UnreadableDocument(f"the file is not a message: it has none of the headers {', '.join(_HEADERS)}")
    return message


def _too_deep() -> ResourceLimit:
    return ResourceLimit(f"the parts of the message are nested more than {MAX_PART_DEPTH} deep, which is the limit")


def _deeper(message: EmailMessage, levels: int) -> bool:
    """Return whether parts are nested in more than ``levels`` levels."""
    layer: list[Any] = [message]
    for _ in range(levels + 1):
        layer = [part for each in layer if each.is_multipart() for part in each.get_payload()]
        if not layer:
            return False
    return True


def _headers(message: EmailMessage) -> dict[str, str]:
    """Return the headers that say something. The library fails on some malformed values; these are left out."""
    found = {}
    written = {name.lower(): str(value) for name, value in reversed(list(message.raw_items()))}
    for name in _HEADERS:
        first = written.get(name.lower(), "")[:MAX_HEADER_CHARACTERS]
        try:
            value = " ".join(str(message.policy.header_fetch_parse(name, first)).split())
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            continue
        if value:
            found[name] = value
    return found


def _subject(message: EmailMessage) -> str | None:
    return _headers(message).get("Subject")


def _write(builder: TextBuilder, message: EmailMessage, limits: _Limits, *, depth: int) -> None:
    builder.lines([(f"{name}: {value}", {}) for name, value in _headers(message).items()])
    parts = list(_parts(message, limits))
    body = next((part for kind in _BODIES for part in parts if _is_body(part, kind)), None)
    if body is not None:
        _include(builder, body, None, _content(body), limits)
    for part in parts:
        # Further texts without a name are the same text in another form, or signatures of lists.
        if part is not body and (part.get_filename() or part.is_attachment() or part.get_content_type() == EML):
            _attach(builder, part, limits, depth=depth)


def _parts(message: EmailMessage, limits: _Limits) -> Iterator[MIMEPart]:
    """Yield the parts that hold no others, and attached messages, in their order."""
    waiting: list[MIMEPart] = [message]
    while waiting:
        part = waiting.pop()
        limits.parts -= 1
        if limits.parts < 0:
            raise UnreadableDocument(f"the message has more than {MAX_PARTS} parts")
        if part is not message and part.get_content_type() == EML:
            yield part
        elif part.is_multipart():
            waiting += [cast(MIMEPart, each) for each in reversed(cast(list[Any], part.get_payload()))]
        else:
            yield part


def _is_body(part: MIMEPart, kind: str) -> bool:
    return part.get_content_type() == f"text/{kind}" and not part.is_attachment() and not part.get_filename()


def _attach(builder: TextBuilder, part: MIMEPart, limits: _Limits, *, depth: int) -> None:
    name = _name(part)
    limits.attachments -= 1
    if limits.attachments < 0:
        reason = f"not read, because at most {MAX_ATTACHMENTS} are read"
        builder.paragraph(f"Attachment {name}: {reason}")
        limits.warnings.append(f"attachment {name}: {reason}")
        return
    builder.heading(2, f"Attachment {name}")
    payload = part.get_payload()
    if part.get_content_type() == EML and isinstance(payload, list) and payload:
        if depth >= MAX_DEPTH:
            _omit(builder, name, f"more than {MAX_DEPTH} messages are attached to each other", limits)
        else:
            _write(builder, cast(EmailMessage, payload[0]), limits, depth=depth + 1)
        return
    content = _content(part)
    limits.attached_bytes -= len(content)
    if limits.attached_bytes < 0:
        _omit(builder, name, f"the attachments have more than {MAX_ATTACHED_BYTES // 1024 // 1024} MiB", limits)
        return
    _include(builder, part, name, content, limits)


def _include(builder: TextBuilder, part: MIMEPart, name: str | None, content: bytes, limits: _Limits) -> None:
    """Add the text that a parser makes of ``content``, or the reason why there is none. ``name`` is None for the body."""
    from agentic_rag_backend.ingestion.parsing.registry import parser_of  # which imports this module by its name

    try:
        media_type = media_type_of(part.get_content_type(), name, content[: 1024 * 1024])
        if name is None:
            media_type = HTML if media_type == HTML else TEXT
        parsed = parser_of(media_type, _charset(part), limits.recogniser).parse(content)
        builder.document(parsed, level=1 if name is None else 2)
        limits.warnings += [each if name is None else f"attachment {name}: {each}" for each in parsed.warnings]
        limits.failures += [replace(each, message=f"attachment {name}: {each.message}") for each in parsed.failures]
    except AgenticRagError as error:
        if name is not None:
            _omit(builder, name, error.message, limits)


def _omit(builder: TextBuilder, name: str, reason: str, limits: _Limits) -> None:
    """Add the reason why an attachment has no text, and warn."""
    builder.paragraph(f"Not read: {reason}")
    limits.warnings.append(f"attachment {name}: not read: {reason}")


def _content(part: MIMEPart) -> bytes:
    """Return the bytes of a part, as the sender attached them."""
    try:
        content = part.get_payload(decode=True)
    except (ValueError, LookupError, AttributeError, TypeError):
        return b""
    return content if isinstance(content, bytes) else b""


def _charset(part: MIMEPart) -> str | None:
    """Return the charset that a part declares."""
    try:
        return part.get_content_charset()
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def _name(part: MIMEPart) -> str:
    """Return the name of an attachment without folders: the sender chose it."""
    try:
        given = part.get_filename() or ""
    except (ValueError, LookupError, TypeError, AttributeError):
        given = ""
    return " ".join(PurePath(given.replace("\\", "/")).name.split())[:200] or "without a name"
