"""Attachments of a message as files of their own, under the limits of the outermost message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.message import EmailMessage, MIMEPart
from pathlib import PurePath

from agentic_rag_backend.documents.parsing.base import Attachment, checked_part, sniff_content
from agentic_rag_backend.documents.parsing.mail.message import (
    MAX_NAME_CHARACTERS,
    MAX_PARTS,
    PartBudget,
    charset_of,
    file_of,
    inner_message,
    is_attachment_part,
    list_parts,
    name_of,
    open_message,
    read_headers,
    read_subject,
)
from agentic_rag_backend.domain.document import MAX_ATTACHED_DEPTH, MAX_ATTACHMENTS, AttachmentOptions
from agentic_rag_backend.domain.media_types import EML, PICTURES, media_type_of
from agentic_rag_backend.errors import AgenticRagError, UnreadableDocument, UnsupportedMediaType

MAX_ATTACHED_BYTES = 64 * 1024 * 1024
PICTURE = "it is a picture"
TOO_MANY = f"not read, because at most {MAX_ATTACHMENTS} are read"
TOO_DEEP = f"more than {MAX_ATTACHED_DEPTH} messages are attached to each other"
TOO_LARGE = f"the attachments have more than {MAX_ATTACHED_BYTES // 1024 // 1024} MiB"
_UNREADABLE: Mapping[frozenset[str], str] = {
    frozenset({"pkcs7-signature", "pgp-signature", ".p7s", ".sig"}): "it is a signature",
    frozenset({"pkcs7-mime", ".p7m"}): "it is an encrypted message, or one within its signature (S/MIME)",
    frozenset({"pgp-encrypted", "pgp-keys", ".asc", ".pgp", ".gpg"}): "it is an encrypted message or a key (PGP)",
    frozenset({"ms-tnef", "winmail.dat"}): "it has attachments in Outlook's own format (TNEF)",
}
"""Media types and suffixes of parts that no parser reads, with what they are."""


@dataclass(frozen=True, slots=True)
class Listed:
    """An attachment of a message: a file of its own, or the reason why it is not read."""

    name: str
    file: Attachment | None
    reason: str = ""


class MailAttachments:
    """Reads the files within a message. Pure and blocking, as a `Parser`."""

    def read(self, content: bytes, options: AttachmentOptions) -> list[Attachment]:
        """Return the attachments that become documents of their own, in their order.

        Their number is the one that `Parser.parse` counts for the same content and options.

        Raises:
            UnreadableDocument: the file is not a message.
        """
        message = open_message(content)
        budget = PartBudget(MAX_PARTS)
        message_parts = list(list_parts(message, budget))
        return [attachment.file for attachment in list_attachments(message_parts, options, budget) if attachment.file is not None]


def list_attachments(message_parts: list[MIMEPart], options: AttachmentOptions, budget: PartBudget) -> Iterator[Listed]:
    """Yield the attachments among the parts of a message, in their order."""
    remaining, size = options.most, 0
    name_counts: Counter[str] = Counter()
    for part in message_parts:
        if not is_attachment_part(part):
            continue
        name = _name_part(part)
        name_counts[name] += 1
        if remaining <= 0:
            yield Listed(name, None, TOO_MANY)
            continue
        remaining -= 1
        content = file_of(part)
        size += len(content)
        inner = _read_message(part, name, content)
        if size > MAX_ATTACHED_BYTES or (inner is not None and options.depth >= MAX_ATTACHED_DEPTH):
            yield Listed(name, None, TOO_LARGE if size > MAX_ATTACHED_BYTES else TOO_DEEP)
            continue
        within = 0 if inner is None else _count_attachments(inner, remaining, options.depth + 1, budget)
        remaining -= within
        charset = None if inner is not None else charset_of(part)
        declared = part.get_content_type()
        file = Attachment(
            place=f"{name_counts[name]}/{name}",
            name=name,
            declared=f"{declared}; charset={charset}" if charset else declared,
            content=content,
            options=AttachmentOptions(options.mode, within, options.depth + 1),
        )
        reason = explain_refusal(file, charset)
        yield Listed(name, None, reason) if reason else Listed(name, file)


def _name_part(part: MIMEPart) -> str:
    """Return the name of an attachment. A message without one has its subject."""
    if part.get_content_type() != EML:
        return name_of(part)
    inner = inner_message(part)
    about = (read_subject(inner) or "") if inner is not None else ""
    name = name_of(part) if part.get_filename() else " ".join(about.replace("/", " ").replace("\\", " ").split())
    name = name[:MAX_NAME_CHARACTERS] or "message"
    return name if name.lower().endswith(".eml") else f"{name}.eml"


def _read_message(part: MIMEPart, name: str, content: bytes | None = None) -> EmailMessage | None:
    """Return the message that an attachment is. None: it is another file, or not readable. None for content: read it."""
    inner = inner_message(part)
    if inner is not None and read_headers(inner):
        return inner
    if part.get_content_type() != EML and not name.lower().endswith(".eml"):
        return None
    try:
        return open_message(file_of(part) if content is None else content)
    except UnreadableDocument:
        return None


def _count_attachments(message: EmailMessage, limit: int, depth: int, budget: PartBudget) -> int:
    """Count the attachments of a message at a depth, and of the messages attached to it, up to ``limit``."""
    count = 0
    for part in list(list_parts(message, budget)):
        if count >= limit:
            break
        if not is_attachment_part(part):
            continue
        count += 1
        inner = _read_message(part, _name_part(part)) if depth < MAX_ATTACHED_DEPTH else None
        if inner is not None:
            count += _count_attachments(inner, limit - count, depth + 1, budget)
    return count


def explain_refusal(file: Attachment, charset: str | None) -> str:
    """Return the reason why an upload of the file would be refused. Empty: it would be accepted."""
    from agentic_rag_backend.documents.parsing.registry import parser_of  # which imports this module by its name

    try:
        media_type = media_type_of(file.declared, file.name, sniff_content(file.content))
        if media_type in PICTURES:  # most are logos and signatures
            return PICTURE
        head, is_whole = checked_part(file.content)
        parser_of(media_type, charset).check(head, is_whole=is_whole)
    except AgenticRagError as error:
        return describe_refusal(error, file.declared, file.name)
    return ""


def describe_refusal(error: AgenticRagError, declared: str, name: str) -> str:
    """Return a short reason why a part is not read. The list of media types that are read is left out."""
    if reason := name_unreadable(declared, name):
        return reason
    return error.message.partition(";")[0] if isinstance(error, UnsupportedMediaType) else error.message


def name_unreadable(declared: str, name: str) -> str:
    """Return what a part without readable text is, by its declared media type and its name. Empty: nothing is known."""
    suffix = name.lower() if name.lower() == "winmail.dat" else PurePath(name).suffix.lower()
    declared_type = declared.partition(";")[0].removeprefix("application/").removeprefix("x-").removeprefix("vnd.")
    return next((reason for kinds, reason in _UNREADABLE.items() if declared_type in kinds or suffix in kinds), "")
