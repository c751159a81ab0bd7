"""Decoding: bytes to text, by a byte order mark, a declaration, UTF-8, or detection, in this order."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass

from agentic_rag_backend.errors import UnreadableDocument
from agentic_rag_backend.ingestion.parsing.encodings.detection import LEAST_LETTERS, detect_encoding
from agentic_rag_backend.ingestion.parsing.encodings.names import ENCODINGS, UTF8, Encoding, find_encoding

MAX_CONTROL_SHARE = 0.1
"""Largest share of control characters in a text. Prose has none."""
STRAY_CONTROLS = 8
"""Number of control characters that any text may contain."""
MAX_REPLACED_SHARE = 0.1
"""Largest share of characters that could not be decoded."""
REPLACEMENT = "\ufffd"

# The longer marks first: UTF-32's begins with UTF-16's.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, ENCODINGS[UTF8]),
    (codecs.BOM_UTF32_LE, ENCODINGS["utf-32le"]),
    (codecs.BOM_UTF32_BE, ENCODINGS["utf-32be"]),
    (codecs.BOM_UTF16_LE, ENCODINGS["utf-16le"]),
    (codecs.BOM_UTF16_BE, ENCODINGS["utf-16be"]),
)
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x84\x86-\x9f]")
_SAMPLE_CHARACTERS = 65_536
_VISIBLE = re.compile(r"[^\s\u00ad\u200b-\u200d\u2060\ufeff\ufffd]")


@dataclass(frozen=True, slots=True)
class Decoded:
    r"""A text without NUL, lines ended by ``\n``, with the name of its encoding and what its owner should know about it."""

    text: str
    encoding: str = UTF8
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Declaration:
    """A charset that was declared, and who declared it, such as "the upload"."""

    charset: str
    by: str


class _Unfit(Exception):
    """The bytes are no text in this encoding; the message is the reason."""


def decode_text(content: bytes, declared: Sequence[Declaration] = (), *, partial: bool = False) -> Decoded:
    """Return the text of ``content``, or of the beginning of a file if ``partial``.

    A byte order mark is believed before every declaration, and an earlier declaration before a later one. A declaration that does
    not fit the bytes is reported as a warning. Bytes that are invalid in the chosen encoding become U+FFFD, if there are few.

    Raises:
        UnreadableDocument: the bytes are no text in any encoding, or hold nothing to read.
    """
    mark, marked = next(((mark, encoding) for mark, encoding in _BYTE_ORDER_MARKS if content.startswith(mark)), (b"", None))
    if marked is not None:
        return _decode_leniently(content[len(mark) :], marked, (), partial=partial)
    warnings: list[str] = []
    for declaration in declared:
        encoding = find_encoding(declaration.charset)
        if encoding is None:
            warnings.append(f"{declaration.by} declares the charset {declaration.charset[:40]!r}, which is not known")
            continue
        if _is_misdeclared(content, encoding, partial=partial):
            warnings.append(f"the text is {UTF8}, not {declaration.charset}, as {declaration.by} declares")
            continue
        try:
            text = _decode_strictly(content, encoding, partial=partial)
        except _Unfit as problem:
            warnings.append(f"the text is not {declaration.charset}, as {declaration.by} declares: {problem}")
        else:
            return Decoded(_clean_text(text), encoding.name, tuple(warnings))
    try:
        return Decoded(_clean_text(_decode_strictly(content, ENCODINGS[UTF8], partial=partial)), UTF8, tuple(warnings))
    except _Unfit as problem:
        detected_encoding = detect_encoding(content)
        if detected_encoding is None:
            raise UnreadableDocument(f"the file is not text: it is not {UTF8} ({problem}), and no other encoding fits") from None
    if detected_encoding.name != UTF8:
        warnings.append(f"the text is read as {detected_encoding.name}, which was detected")
    return _decode_leniently(content, detected_encoding, warnings, partial=partial)


def _is_misdeclared(content: bytes, encoding: Encoding, *, partial: bool) -> bool:
    """Return whether bytes are UTF-8 although another encoding is declared, in which almost any bytes are valid."""
    if encoding.name.startswith("utf-") or content.isascii():
        return False
    try:
        text = _decode_bytes(content, ENCODINGS[UTF8], "strict", partial=partial)
    except UnicodeDecodeError:
        return False
    letters = len(text) - len(text.encode("ascii", errors="ignore"))
    # Two letters of Chinese can be valid UTF-8 by chance. No word of Western Europe is.
    return letters >= (1 if encoding.name == "windows-1252" else LEAST_LETTERS)


def _decode_leniently(content: bytes, encoding: Encoding, warnings: Sequence[str], *, partial: bool) -> Decoded:
    """Decode, replacing invalid bytes, with a warning."""
    try:
        text, replaced = _decode_bytes(content, encoding, "strict", partial=partial), 0
    except UnicodeDecodeError as error:
        text = _decode_bytes(content, encoding, "replace", partial=partial)
        replaced = text.count(REPLACEMENT)
        first_error = f"the first one is 0x{content[error.start]:02x} at offset {error.start}"
        if replaced > MAX_REPLACED_SHARE * len(text):
            raise UnreadableDocument(
                f"the file is not text: {replaced} of its {len(text)} characters are not valid {encoding.name} "
                f"(limit {MAX_REPLACED_SHARE:.0%}); {first_error}"
            ) from None
        count = f"{replaced} characters are" if replaced > 1 else "one character is"
        warnings = (*warnings, f"{count} not valid {encoding.name} and became U+FFFD; {first_error}")
    if problem := _find_control_problem(text):
        raise UnreadableDocument(f"the file is not text: {problem}")
    return Decoded(_clean_text(text), encoding.name, tuple(warnings))


def _decode_strictly(content: bytes, encoding: Encoding, *, partial: bool) -> str:
    try:
        text = _decode_bytes(content, encoding, "strict", partial=partial)
    except UnicodeDecodeError as error:
        raise _Unfit(f"byte 0x{content[error.start]:02x} at offset {error.start}") from None
    if problem := _find_control_problem(text):
        raise _Unfit(problem)
    return text


def _decode_bytes(content: bytes, encoding: Encoding, errors: str, *, partial: bool) -> str:
    return codecs.getincrementaldecoder(encoding.codec)(errors).decode(content, final=not partial)


def _find_control_problem(text: str) -> str | None:
    """Return the problem of a text with many control characters in its beginning."""
    sample = text[:_SAMPLE_CHARACTERS]
    controls = len(_CONTROL.findall(sample))
    if controls <= max(STRAY_CONTROLS, MAX_CONTROL_SHARE * len(sample)):
        return None
    return f"{controls} of its first {len(sample)} characters are control characters (limit {MAX_CONTROL_SHARE:.0%})"


def _clean_text(text: str) -> str:
    text = text.replace("\x00", "").replace("\r\n", "\n").replace("\r", "\n")
    if not _VISIBLE.search(text):
        raise UnreadableDocument("the document contains no text")
    return text
