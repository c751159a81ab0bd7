"""Messages of Outlook (MSG): their properties as a message in MIME, which is read as mail is."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email import encoders
from email.message import Message
from email.mime.base import MIMEBase
from email.mime.message import MIMEMessage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from email.utils import format_datetime, formataddr

from agentic_rag_backend.domain.document import MAX_ATTACHED_DEPTH, AttachmentOptions
from agentic_rag_backend.errors import ResourceLimit, UnreadableDocument
from agentic_rag_backend.ingestion.parsing.base import Attachment, ParsedDocument, Preview
from agentic_rag_backend.ingestion.parsing.mail.mail_attachments import MailAttachments
from agentic_rag_backend.ingestion.parsing.mail.mail_parser import MailParser
from agentic_rag_backend.ingestion.parsing.mail.message import MAX_HEADER_CHARACTERS, MAX_PARTS
from agentic_rag_backend.ingestion.parsing.office.ole_container import OleContainer
from agentic_rag_backend.ingestion.recognition.base import Recogniser

_SUBJECT, _BODY, _HTML, _RTF = 0x0037, 0x1000, 0x1013, 0x1009
_SENDER, _AUTHOR = (0x0C1A, 0x5D01, 0x0C1F), (0x0042, 0x5D02, 0x0065)
"""Name, address and other address of the sender, and of the person in whose name the message is sent."""
_PERSON = (0x3001, 0x39FE, 0x3003)
_RECIPIENT_KIND, _SHOWN_TO, _SHOWN_CC = 0x0C15, 0x0E04, 0x0E03
_SENT, _DELIVERED, _CODE_PAGE = 0x0039, 0x0E06, 0x3FFD
_NAMES, _DATA, _MEDIA_TYPE = (0x3707, 0x3704, 0x3001), 0x3701, 0x370E
_RECIPIENTS, _ATTACHMENTS, _PROPERTIES = "__recip_version1.0_", "__attach_version1.0_", "__properties_version1.0"
_EMBEDDED = f"__substg1.0_{_DATA:04X}000D"
_HEADER_BYTES = {"": 32, "embedded": 24, "other": 8}
"""Bytes before the properties of fixed size: of a message, of one within it, and of recipients and attachments."""
_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)
_RTF_DICTIONARY = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor MS Sans SerifSymbolArial"
    rb"Times New RomanCourier{\colortbl\red0\green0\blue0" + b"\r\n" + rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)
_RTF_MAGIC, _RTF_WINDOW = 0x75465A4C, 4096


@dataclass(frozen=True, slots=True)
class OutlookParser:
    """Parser of Outlook's messages. Its fields are those of `MailParser`."""

    options: AttachmentOptions = field(default_factory=AttachmentOptions)
    recogniser: Recogniser | None = None

    def with_attachments(self, options: AttachmentOptions) -> OutlookParser:
        """Return a parser that does with attachments what ``options`` say."""
        return replace(self, options=options)

    def with_recogniser(self, recogniser: Recogniser) -> OutlookParser:
        """Return a parser that reads pictures with ``recogniser``."""
        return replace(self, recogniser=recogniser)

    def check(self, head: bytes, *, is_whole: bool) -> Preview:
        """Read the headers. A part of a container cannot be opened."""
        return MailParser().check(to_mime(head), is_whole=True) if is_whole else Preview(title=None, text="")

    def parse(self, content: bytes) -> ParsedDocument:
        """Return headers and text, and the attachments as sections or by their names."""
        return MailParser(self.options, self.recogniser).parse(to_mime(content))

    def restore(self, text: str) -> ParsedDocument:
        """Return ``text``; headers are part of it."""
        return ParsedDocument(text=text)


class OutlookAttachments(MailAttachments):
    """Reads the files within a message of Outlook."""

    def read(self, content: bytes, options: AttachmentOptions) -> list[Attachment]:
        """See `MailAttachments.read`."""
        return super().read(to_mime(content), options)


def to_mime(content: bytes) -> bytes:
    """Return a message of Outlook in MIME; equal bytes for equal messages.

    Raises:
        UnreadableDocument: it is damaged, or no message.
        ResourceLimit: it has too many parts, or a limit of `OleContainer` is exceeded.
    """
    container = OleContainer(content)
    if _PROPERTIES not in container.list_children(0):
        raise UnreadableDocument("the file is not a message of Outlook: it has no properties")
    return _Converter(container).convert_message(0, "", 0).as_bytes()


class _Storage:
    """Properties of a message, recipient or attachment."""

    def __init__(self, container: OleContainer, number: int, kind: str) -> None:
        self._container, self.children = container, container.list_children(number)
        self._fixed: dict[int, bytes] = {}
        properties = container.read_stream(self.children[_PROPERTIES]) if _PROPERTIES in self.children else b""
        for start in range(_HEADER_BYTES[kind], len(properties) - 15, 16):
            self._fixed[struct.unpack_from("<H", properties, start + 2)[0]] = properties[start + 8 : start + 16]

    def read_bytes(self, tag: int) -> bytes:
        """Return a binary property."""
        number = self.children.get(f"__substg1.0_{tag:04X}0102")
        return b"" if number is None else self._container.read_stream(number)

    def read_text(self, *tags: int) -> str:
        """Return the first of these properties that has a text."""
        for tag in tags:
            for kind, encoding in (("001F", "utf-16-le"), ("001E", f"cp{self.read_number(_CODE_PAGE) or 1252}")):
                number = self.children.get(f"__substg1.0_{tag:04X}{kind}")
                if number is not None and (text := _decode(self._container.read_stream(number), encoding)):
                    return text
        return ""

    def read_number(self, tag: int) -> int:
        """Return a number, 0 if it is missing."""
        return int(struct.unpack("<I", self._fixed[tag][:4])[0]) if tag in self._fixed else 0

    def read_time(self, *tags: int) -> datetime | None:
        """Return the first of these times."""
        for tag in tags:
            if tag in self._fixed:
                try:
                    return _EPOCH + timedelta(microseconds=struct.unpack("<Q", self._fixed[tag])[0] // 10)
                except OverflowError:
                    continue
        return None

    def read_person(self, tags: Sequence[int]) -> str:
        """Return name and address of a person as a header has them."""
        name = " ".join(self.read_text(tags[0]).partition("<")[0].split()).strip("'\"")
        address = next(filter(None, map(self.read_text, tags[1:])), "")
        address = address.strip() if "@" in address and len(address.split()) == 1 and address.isascii() else ""
        return (formataddr((name if name != address else "", address)) if address else name)[:MAX_HEADER_CHARACTERS]


def _decode(content: bytes, encoding: str) -> str:
    try:
        return content.decode(encoding, "replace").rstrip("\0")
    except LookupError:
        return content.decode("cp1252", "replace").rstrip("\0")


@dataclass(slots=True)
class _Converter:
    container: OleContainer
    parts: int = 0

    def convert_message(self, number: int, kind: str, depth: int) -> Message:
        """Return a message with its texts and attachments."""
        self.parts += 1
        message, storage = MIMEMultipart("mixed", boundary=f"=_message_{self.parts}"), _Storage(self.container, number, kind)
        for name, value in self._list_headers(storage):
            if value.strip():
                message[name] = value
        forms = MIMEMultipart("alternative", boundary=f"=_text_{self.parts}")
        for part in _list_texts(storage):
            forms.attach(part)
        if forms.get_payload():
            message.attach(forms)
        for name in sorted(storage.children):
            if name.startswith(_ATTACHMENTS):
                message.attach(self._convert_attachment(storage.children[name], depth))
        return message

    def _list_headers(self, storage: _Storage) -> Iterator[tuple[str, str]]:
        yield "From", storage.read_person(_AUTHOR) or storage.read_person(_SENDER)
        people: dict[int, list[str]] = {}
        for name in sorted(storage.children):
            if name.startswith(_RECIPIENTS):
                recipient = _Storage(self.container, storage.children[name], "other")
                people.setdefault(recipient.read_number(_RECIPIENT_KIND), []).append(recipient.read_person(_PERSON))
        for header, recipient_kind, tag in (("To", 1, _SHOWN_TO), ("Cc", 2, _SHOWN_CC)):
            yield header, ", ".join(filter(None, people.get(recipient_kind, []))) or " ".join(storage.read_text(tag).split())
        moment = storage.read_time(_SENT, _DELIVERED)
        yield "Date", format_datetime(moment) if moment else ""
        yield "Subject", " ".join(storage.read_text(_SUBJECT).split())

    def _convert_attachment(self, number: int, depth: int) -> Message:
        self.parts += 1
        if self.parts > MAX_PARTS:
            raise ResourceLimit(f"the message has more than {MAX_PARTS} parts, which is the limit")
        storage = _Storage(self.container, number, "other")
        if _EMBEDDED in storage.children:
            if depth > MAX_ATTACHED_DEPTH:
                raise ResourceLimit(f"more than {MAX_ATTACHED_DEPTH} messages are attached to each other, which is the limit")
            return MIMEMessage(self.convert_message(storage.children[_EMBEDDED], "embedded", depth + 1))
        kind, _, subkind = storage.read_text(_MEDIA_TYPE).strip().lower().partition("/")
        is_known = kind.isalnum() and subkind.isascii() and subkind.replace("-", "").replace(".", "").replace("+", "").isalnum()
        part = MIMEBase(
            *((kind, subkind) if is_known and kind not in {"multipart", "message"} else ("application", "octet-stream"))
        )
        part.set_payload(storage.read_bytes(_DATA))
        encoders.encode_base64(part)
        name = " ".join(storage.read_text(*_NAMES).split())
        part.add_header("Content-Disposition", "attachment", filename=("utf-8", "", name))
        return part


def _list_texts(storage: _Storage) -> Iterator[Message]:
    """Yield the forms of the text of a message: plain text, HTML, and formatted text if there is no other."""
    body, page = storage.read_text(_BODY), storage.read_bytes(_HTML) or storage.read_text(_HTML).encode()
    if body.strip():
        yield MIMEText(body.replace("\r\n", "\n"), "plain", "utf-8")
    if page.strip():
        part = MIMEBase("text", "html")
        part.set_payload(page)
        encoders.encode_base64(part)
        yield part
    if not body.strip() and not page.strip() and (formatted := decompress_rtf(storage.read_bytes(_RTF))):
        from agentic_rag_backend.ingestion.parsing.office.rtf import RtfParser  # a parser of another format

        yield MIMEText(RtfParser().parse(formatted).text, "plain", "utf-8")


def decompress_rtf(content: bytes) -> bytes:
    """Return formatted text that Outlook compressed (MS-OXRTFCP). Empty: there is none, or it is damaged."""
    if len(content) < 16 or struct.unpack_from("<I", content, 8)[0] != _RTF_MAGIC:
        return content[16:] if content[8:12] == b"MELA" else b""
    window = bytearray(_RTF_DICTIONARY.ljust(_RTF_WINDOW, b"\0"))
    write, position = len(_RTF_DICTIONARY), 16
    text = bytearray()
    while position < len(content):
        flags = content[position]
        position += 1
        for bit in range(8):
            is_reference = flags >> bit & 1
            piece = content[position : position + 1 + is_reference]
            position += 1 + is_reference
            if len(piece) <= is_reference:
                return bytes(text)
            if is_reference:
                start, length = (piece[0] << 4) | (piece[1] >> 4), (piece[1] & 0xF) + 2
                if start == write % _RTF_WINDOW:
                    return bytes(text)
                for index in range(start, start + length):
                    letter = window[index % _RTF_WINDOW]
                    window[write % _RTF_WINDOW] = letter
                    text.append(letter)
                    write += 1
            else:
                window[write % _RTF_WINDOW] = piece[0]
                text += piece
                write += 1
    return bytes(text)
