"""Messages of Outlook (MSG): their properties as a message in MIME, which is read as mail is."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email import encoders
from email.message import Message
from email.mime.base import MIMEBase
from email.mime.message import MIMEMessage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from email.parser import HeaderParser
from email.utils import format_datetime, formataddr, parseaddr, quote

from agentic_rag_backend.domain.document import MAX_ATTACHED_DEPTH, AttachmentOptions
from agentic_rag_backend.errors import ResourceLimit, UnreadableDocument
from agentic_rag_backend.ingestion.parsing.base import Attachment, ParsedDocument, Preview
from agentic_rag_backend.ingestion.parsing.encodings.detection import detect_encoding
from agentic_rag_backend.ingestion.parsing.encodings.names import UTF8, find_encoding
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
_SENT, _DELIVERED, _RECEIVED_HEADERS, _CLASS = 0x0039, 0x0E06, 0x007D, 0x001A
_CODE_PAGES = (0x3FFD, 0x3FDE)
"""Windows code page of the message, and of its body."""
_NAMED, _NAMED_ENTRIES, _FIRST_NAMED = "__nameid_version1.0", "__substg1.0_00030102", 0x8000
"""Properties whose tag differs between files: the entries have the number of the property, and of its tag."""
_MEETING = {"Start": 0x820D, "End": 0x820E, "Location": 0x8208, "Repeats": 0x8232}
_FACTS: Mapping[str, Mapping[str, int]] = {
    "ipm.appointment": _MEETING,
    "ipm.schedule": _MEETING,
    "ipm.task": {"Start": 0x8104, "Due": 0x8105},
    "ipm.contact": {
        "Company": 0x3A16, "Position": 0x3A17, "Email": 0x8083, "Telephone": 0x3A08, "Mobile": 0x3A1C, "Home telephone": 0x3A09,
        "Address": 0x801B, "Home address": 0x801A,
    },
}  # fmt: skip
"""Properties that hold what an appointment, task or contact is about, by the beginning of its class."""
_TIMES = frozenset({"Start", "End", "Due"})
_MAX_FACT_CHARACTERS = 1_000
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
    return _Converter(container, _list_tags(container)).convert_message(0, "", 0).as_bytes()


def _list_tags(container: OleContainer) -> dict[int, int]:
    """Return the tags of named properties by their numbers."""
    names = container.list_children(0).get(_NAMED)
    entries = container.list_children(names).get(_NAMED_ENTRIES) if names is not None else None
    content = container.read_stream(entries) if entries is not None else b""
    rows = struct.iter_unpack("<IHH", content[: len(content) // 8 * 8])
    return {number: _FIRST_NAMED + tag for number, kind, tag in rows if not kind & 1}  # an odd kind has a text as its name


class _Storage:
    """Properties of a message, recipient or attachment."""

    def __init__(self, container: OleContainer, number: int, kind: str, codec: str = "") -> None:
        self._container, self.children = container, container.list_children(number)
        self._fixed: dict[int, bytes] = {}
        properties = container.read_stream(self.children[_PROPERTIES]) if _PROPERTIES in self.children else b""
        for start in range(_HEADER_BYTES[kind], len(properties) - 15, 16):
            self._fixed[struct.unpack_from("<H", properties, start + 2)[0]] = properties[start + 8 : start + 16]
        self.codec = codec or self._find_codec()
        """Codec of the texts in 8 bits."""

    def _find_codec(self) -> str:
        """Return the codec of the code page of a message, or of its body, or the one that its subject and body seem to have."""
        for tag in _CODE_PAGES:
            encoding = find_encoding(f"cp{self.read_number(tag)}")
            if encoding is not None and encoding.name != UTF8:
                return encoding.codec
        streams = (self.children.get(f"__substg1.0_{tag:04X}001E") for tag in (_SUBJECT, _BODY))
        sample = b"\n".join(self._container.read_stream(number) for number in streams if number is not None)
        encoding = None if sample.isascii() else detect_encoding(sample)
        return encoding.codec if encoding is not None else "cp1252"

    def read_bytes(self, tag: int) -> bytes:
        """Return a binary property."""
        number = self.children.get(f"__substg1.0_{tag:04X}0102")
        return b"" if number is None else self._container.read_stream(number)

    def read_text(self, *tags: int) -> str:
        """Return the first of these properties that has a text."""
        for tag in tags:
            for kind, codec in (("001F", "utf-16-le"), ("001E", self.codec)):
                number = self.children.get(f"__substg1.0_{tag:04X}{kind}")
                content = self._container.read_stream(number) if number is not None else b""
                if text := content.decode(codec, "replace").rstrip("\0"):
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

    def read_author(self) -> str:
        """Return name and address of the author. Exchange keeps the address of a colleague only in the headers it received."""
        author = self.read_person(_AUTHOR) or self.read_person(_SENDER)
        if author.endswith(">") or "@" in author:
            return author
        headers = HeaderParser().parsestr(self.read_text(_RECEIVED_HEADERS)[: 8 * MAX_HEADER_CHARACTERS])
        address = parseaddr(str(headers.get("From", ""))[:MAX_HEADER_CHARACTERS])[1]
        return formataddr((author, address)) if "@" in address and address.isascii() else author


@dataclass(slots=True)
class _Converter:
    container: OleContainer
    tags: Mapping[int, int] = field(default_factory=dict)
    """Tags of named properties by their numbers."""
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
        if facts := self._list_facts(storage):
            message.attach(MIMEText("\n".join(facts), "plain", "utf-8"))
        for name in sorted(storage.children):
            if name.startswith(_ATTACHMENTS):
                message.attach(self._convert_attachment(storage.children[name], depth, storage.codec))
        return message

    def _list_facts(self, storage: _Storage) -> list[str]:
        """Return a line for each property of an appointment, task or contact."""
        item_class = storage.read_text(_CLASS).lower()
        labels = next((facts for beginning, facts in _FACTS.items() if item_class.startswith(beginning)), {})
        lines = []
        for label, number in labels.items():
            tag = self.tags.get(number, 0) if number >= _FIRST_NAMED else number
            value = " ".join(storage.read_text(tag).split())
            if label in _TIMES and (moment := storage.read_time(tag)):
                # The times of a task are days, stored as midnight.
                value = moment.strftime("%Y-%m-%d" if item_class.startswith("ipm.task") else "%Y-%m-%d %H:%M UTC")
            lines += [f"{label}: {value[:_MAX_FACT_CHARACTERS]}"] if value else []
        return lines

    def _list_headers(self, storage: _Storage) -> Iterator[tuple[str, str]]:
        yield "From", storage.read_author()
        people: dict[int, list[str]] = {}
        for name in sorted(storage.children):
            if name.startswith(_RECIPIENTS):
                recipient = _Storage(self.container, storage.children[name], "other", storage.codec)
                person = recipient.read_person(_PERSON)
                person = f'"{quote(person)}"' if "," in person and "@" not in person else person
                people.setdefault(recipient.read_number(_RECIPIENT_KIND), []).append(person)
        for header, recipient_kind, tag in (("To", 1, _SHOWN_TO), ("Cc", 2, _SHOWN_CC)):
            yield header, ", ".join(filter(None, people.get(recipient_kind, []))) or " ".join(storage.read_text(tag).split())
        moment = storage.read_time(_SENT, _DELIVERED)
        yield "Date", format_datetime(moment) if moment else ""
        yield "Subject", " ".join(storage.read_text(_SUBJECT).split())

    def _convert_attachment(self, number: int, depth: int, codec: str) -> Message:
        self.parts += 1
        if self.parts > MAX_PARTS:
            raise ResourceLimit(f"the message has more than {MAX_PARTS} parts, which is the limit")
        storage = _Storage(self.container, number, "other", codec)
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
    body, page = storage.read_text(_BODY), storage.read_bytes(_HTML)
    charset = "" if page else "utf-8"
    page = page or storage.read_text(_HTML).encode()
    if body.strip():
        yield MIMEText(body.replace("\r\n", "\n"), "plain", "utf-8")
    if page.strip():
        part = MIMEBase("text", "html")
        if charset:
            part.set_param("charset", charset)
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
