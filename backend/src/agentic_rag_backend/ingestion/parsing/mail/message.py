"""Messages as the standard library reads them, within limits: headers, parts, contents and names."""

from __future__ import annotations

import base64
import binascii
import codecs
import email
import email.policy
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from email import errors
from email.generator import BytesGenerator
from email.message import EmailMessage, MIMEPart
from io import BytesIO
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, cast

from agentic_rag_backend.domain.media_types import EML
from agentic_rag_backend.domain.size_limits import make_storable
from agentic_rag_backend.errors import ResourceLimit, UnreadableDocument

MAX_PARTS = 1_000
MAX_PART_DEPTH = 50
"""Parts and messages within each other. The library reads them by recursion."""
MAX_HEADER_CHARACTERS = 8_000
"""Characters of a header that are read, some 200 recipients. The library needs time quadratic in them: 30,000 take a second."""
MAX_FIELD_CHARACTERS = 2_000
"""Characters that are read of a header with parameters, which every question about a part reads again. File names fit."""
MAX_NAME_CHARACTERS = 200
_HEADERS = ("From", "To", "Cc", "Date", "Subject")
_PEOPLE = ("From", "To", "Cc")
_WITH_PARAMETERS = frozenset({"content-type", "content-disposition", "content-transfer-encoding", "content-id"})
_WIDE: Mapping[tuple[bytes, ...], str] = {
    (
        codecs.BOM_UTF16_LE,
        *(f"{name[0]}\0{name[1]}\0".encode() for name in ("From", "To", "Date", "Subject", "Received")),
    ): "utf-16-le",
    (
        codecs.BOM_UTF16_BE,
        *(f"\0{name[0]}\0{name[1]}".encode() for name in ("From", "To", "Date", "Subject", "Received")),
    ): "utf-16-be",
}
"""Beginnings of messages in UTF-16: a byte order mark, or a header."""

if TYPE_CHECKING:
    _Policy = email.policy.EmailPolicy[EmailMessage]
else:
    _Policy = email.policy.EmailPolicy  # it takes no parameter when the program runs


class _ShortFields(_Policy):
    """Policy that keeps the beginning of a header with parameters."""

    def header_source_parse(self, sourcelines: Sequence[str]) -> tuple[str, str]:
        """Return name and value of a header."""
        name, value = super().header_source_parse(list(sourcelines))
        return name, value[:MAX_FIELD_CHARACTERS] if name.lower() in _WITH_PARAMETERS else value


_READ = _ShortFields()
_BASE64 = frozenset(string.ascii_letters.encode() + string.digits.encode() + b"+/")
_AS_RECEIVED = _READ.clone(refold_source="none")


@dataclass(slots=True)
class PartBudget:
    """Parts of a message, and of the messages attached to it, that may still be read."""

    left: int

    def take_part(self) -> None:
        """Count a part.

        Raises:
            UnreadableDocument: there are more than `MAX_PARTS`.
        """
        self.left -= 1
        if self.left < 0:
            raise UnreadableDocument(f"the message has more than {MAX_PARTS} parts")


def open_message(content: bytes) -> EmailMessage:
    """Return a message.

    Raises:
        ResourceLimit: its parts are nested too deep.
        UnreadableDocument: it has no headers.
    """
    try:
        message = email.message_from_bytes(_to_utf8(content), policy=_READ)
    except RecursionError:
        raise _too_deep() from None
    if _is_deeper(message, MAX_PART_DEPTH):
        raise _too_deep()
    if not read_headers(message):
        raise UnreadableDocument(f"the file is not a message: it has none of the headers {', '.join(_HEADERS)}")
    return message


def _to_utf8(content: bytes) -> bytes:
    """Return a message without byte order mark. Mail programs save messages as UTF-16 too, which the library does not read."""
    if content.startswith(codecs.BOM_UTF8):
        return content[len(codecs.BOM_UTF8) :]
    encoding = next((name for marks, name in _WIDE.items() if content.startswith(marks)), None)
    return content.decode(encoding, "replace").lstrip("\ufeff").encode() if encoding else content


def _too_deep() -> ResourceLimit:
    return ResourceLimit(f"the parts of the message are nested more than {MAX_PART_DEPTH} deep, which is the limit")


def _is_deeper(message: EmailMessage, levels: int) -> bool:
    """Return whether parts are nested in more than ``levels`` levels."""
    layer: list[Any] = [message]
    for _ in range(levels + 1):
        layer = [part for container in layer if container.is_multipart() for part in container.get_payload()]
        if not layer:
            return False
    return True


def read_headers(message: EmailMessage) -> dict[str, str]:
    """Return the headers that say something. The library fails on some malformed values; these are left out."""
    fields = {}
    raw_headers = {name.lower(): str(value) for name, value in reversed(list(message.raw_items()))}
    for name in _HEADERS:
        text = raw_headers.get(name.lower(), "")[:MAX_HEADER_CHARACTERS]
        # Names without an address are text: as addresses, they would be divided at commas and quoted.
        kind = "Subject" if name in _PEOPLE and "@" not in text else name
        try:
            value = make_storable(" ".join(str(message.policy.header_fetch_parse(kind, text)).split()))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            continue
        if value:
            fields[name] = value
    return fields


def list_cut_headers(message: EmailMessage) -> list[str]:
    """Return a warning for each header that is cut at the limit."""
    lengths = {name.lower(): len(str(value)) for name, value in reversed(list(message.raw_items()))}
    return [
        f"only the first {MAX_HEADER_CHARACTERS} of {lengths[name.lower()]} characters of the header {name} are read"
        for name in _HEADERS
        if lengths.get(name.lower(), 0) > MAX_HEADER_CHARACTERS
    ]


def read_subject(message: EmailMessage) -> str | None:
    """Return the subject of a message."""
    return read_headers(message).get("Subject")


def list_parts(message: EmailMessage, budget: PartBudget) -> Iterator[MIMEPart]:
    """Yield the parts that hold no others, and attached messages, in their order."""
    waiting: list[MIMEPart] = [message]
    while waiting:
        part = waiting.pop()
        budget.take_part()
        if part is not message and part.get_content_type() == EML:
            yield part
        elif part.is_multipart():
            waiting += [cast(MIMEPart, child) for child in reversed(cast(list[Any], part.get_payload()))]
        else:
            yield part


def is_attachment_part(part: MIMEPart) -> bool:
    """Return whether a part is an attachment. Texts without a name are text of the message."""
    return bool(part.get_filename()) or part.is_attachment() or part.get_content_type() == EML


def inner_message(part: MIMEPart) -> EmailMessage | None:
    """Return the message that a part attaches. None if the part is a file."""
    payload = cast(Any, part.get_payload())
    attached = part.get_content_type() == EML and isinstance(payload, list) and payload
    return cast(EmailMessage, payload[0]) if attached else None


def content_of(part: MIMEPart) -> bytes:
    """Return the bytes of a part, as the sender attached them."""
    try:
        content = part.get_payload(decode=True)
    except (ValueError, LookupError, AttributeError, TypeError):
        return b""
    if not isinstance(content, bytes):
        return b""
    return _repair_base64(content) if has_damage(part) else content


def has_damage(part: MIMEPart) -> bool:
    """Return whether the encoding of a part's content is damaged. Its content must have been read before."""
    return any(isinstance(defect, errors.InvalidBase64LengthDefect) for defect in part.defects)


def _repair_base64(content: bytes) -> bytes:
    """Return what can be decoded of Base64 with a wrong length, which the library returns as it is."""
    letters = bytes(byte for byte in content if byte in _BASE64)
    try:
        return base64.b64decode(letters[: len(letters) // 4 * 4])
    except binascii.Error:
        return b""


def file_of(part: MIMEPart) -> bytes:
    """Return an attachment as a file. Equal attachments give equal bytes. Empty: it cannot be read."""
    inner = inner_message(part)
    if inner is None:
        return content_of(part)
    try:
        if str(part.get("Content-Transfer-Encoding", "")).strip().lower() == "base64" and not read_headers(inner):
            return base64.b64decode(str(inner.get_payload()))  # the library reads the encoded text as a message
        buffer = BytesIO()
        BytesGenerator(buffer, mangle_from_=False, policy=_AS_RECEIVED).flatten(inner)
        return buffer.getvalue()
    except (ValueError, LookupError, AttributeError, TypeError, RecursionError):
        return b""


def charset_of(part: MIMEPart) -> str | None:
    """Return the charset that a part declares."""
    try:
        return part.get_content_charset()
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def name_of(part: MIMEPart) -> str:
    """Return the name of an attachment without folders: the sender chose it."""
    try:
        name = part.get_filename() or ""
    except (ValueError, LookupError, TypeError, AttributeError):
        name = ""
    return make_storable(" ".join(PurePath(name.replace("\\", "/")).name.split())[:MAX_NAME_CHARACTERS]) or "without a name"
