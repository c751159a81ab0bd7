"""Media types of documents, with their file name suffixes and aliases. `documents.parsing.registry` has a parser for each."""

from __future__ import annotations

import itertools
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

from agentic_rag_backend.domain.ole_directory import SIGNATURE, list_top_entries
from agentic_rag_backend.errors import UnreadableDocument, UnsupportedMediaType

TEXT = "text/plain"
MARKDOWN = "text/markdown"
HTML = "text/html"
PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
XLS = "application/vnd.ms-excel"
ODT = "application/vnd.oasis.opendocument.text"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
ODP = "application/vnd.oasis.opendocument.presentation"
RTF = "application/rtf"
EPUB = "application/epub+zip"
EML = "message/rfc822"
MSG = "application/vnd.ms-outlook"
CALENDAR = "text/calendar"
CSV = "text/csv"
JSON = "application/json"
JSONL = "application/x-ndjson"
PNG, JPEG, TIFF, WEBP = "image/png", "image/jpeg", "image/tiff", "image/webp"
NOTEBOOK = "application/x-ipynb+json"
RST = "text/x-rst"
PYTHON = "text/x-python"


@dataclass(frozen=True, slots=True)
class Format:
    """Names of one media type. The first suffix is used for files that are written.

    ``language`` is the programming language of source code.
    """

    suffixes: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    language: str | None = None


SOURCE_CODE: Mapping[str, Format] = {
    PYTHON: Format((".py", ".pyi"), ("text/x-script.python", "application/x-python"), "python"),
    "text/javascript": Format((".js", ".mjs", ".cjs", ".jsx"), ("application/javascript", "text/x-javascript"), "javascript"),
    "text/x-typescript": Format((".ts", ".tsx", ".mts", ".cts"), ("application/typescript",), "typescript"),
    "text/x-java": Format((".java",), ("text/x-java-source",), "java"),
    "text/x-c": Format((".c", ".h"), ("text/x-csrc", "text/x-chdr"), "c"),
    "text/x-c++": Format((".cpp", ".cc", ".cxx", ".hpp", ".hh", ".hxx"), ("text/x-c++src", "text/x-c++hdr"), "cpp"),
    "text/x-csharp": Format((".cs",), (), "c_sharp"),
    "text/x-go": Format((".go",), (), "go"),
    "text/x-rust": Format((".rs",), ("text/rust",), "rust"),
    "text/x-ruby": Format((".rb",), ("application/x-ruby",), "ruby"),
    "application/x-php": Format((".php",), ("text/x-php", "application/x-httpd-php"), "php"),
    "text/x-kotlin": Format((".kt", ".kts"), (), "kotlin"),
    "text/x-swift": Format((".swift",), (), "swift"),
    "text/x-scala": Format((".scala", ".sc"), (), "scala"),
    "application/x-sh": Format((".sh", ".bash"), ("text/x-shellscript", "text/x-sh"), "bash"),
}
FORMATS: Mapping[str, Format] = {
    TEXT: Format((".txt", ".text")),
    MARKDOWN: Format((".md", ".markdown"), ("text/x-markdown",)),
    HTML: Format((".html", ".htm", ".xhtml"), ("application/xhtml+xml",)),
    PDF: Format((".pdf",), ("application/x-pdf",)),
    DOCX: Format((".docx", ".docm"), ("application/vnd.ms-word.document.macroenabled.12",)),
    PPTX: Format((".pptx", ".pptm"), ("application/vnd.ms-powerpoint.presentation.macroenabled.12",)),
    XLSX: Format((".xlsx", ".xlsm"), ("application/vnd.ms-excel.sheet.macroenabled.12",)),
    XLS: Format((".xls",), ("application/msexcel", "application/x-msexcel")),
    ODT: Format((".odt",)),
    ODS: Format((".ods",)),
    ODP: Format((".odp",)),
    RTF: Format((".rtf",), ("text/rtf",)),
    EPUB: Format((".epub",)),
    EML: Format((".eml",)),
    MSG: Format((".msg",)),
    CALENDAR: Format((".ics",), ("application/ics",)),
    CSV: Format((".csv", ".tsv"), ("text/tab-separated-values", "application/csv")),
    JSON: Format((".json",), ("text/json",)),
    JSONL: Format((".jsonl", ".ndjson"), ("application/jsonl", "application/x-jsonlines")),
    NOTEBOOK: Format((".ipynb",)),
    RST: Format((".rst", ".rest"), ("text/prs.fallenstein.rst",)),
    PNG: Format((".png",)),
    JPEG: Format((".jpg", ".jpeg"), ("image/jpg", "image/pjpeg")),
    TIFF: Format((".tif", ".tiff")),
    WEBP: Format((".webp",)),
    **SOURCE_CODE,
}
PICTURES = frozenset({PNG, JPEG, TIFF, WEBP})
BY_SUFFIX: Mapping[str, str] = {suffix: name for name, file_format in FORMATS.items() for suffix in file_format.suffixes}
_BY_ALIAS: Mapping[str, str] = {alias: name for name, file_format in FORMATS.items() for alias in file_format.aliases}
_UNSPECIFIC = frozenset({"", "application/octet-stream", "binary/octet-stream", TEXT})
"""Media types that clients send for unknown files. The suffix of the name decides."""

_SIGNATURES: Mapping[bytes, str] = {
    b"%PDF-": PDF, b"{\\rtf": RTF, b"\x89PNG": PNG, b"\xff\xd8\xff": JPEG, b"II*\x00": TIFF, b"MM\x00*": TIFF,
}  # fmt: skip
_UNREADABLE: Mapping[bytes, str] = {
    b"GIF8": "a GIF image",
    b"RIFF": "a RIFF file, such as a sound",
    b"\x1f\x8b": "a gzip archive",
    b"BZh": "a bzip2 archive",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"Rar!": "a RAR archive",
    b"\xfd7zXZ": "an xz archive",
    b"(\xb5/\xfd": "a Zstandard archive",
    b"\x7fELF": "a program",
    b"MZ\x90\x00": "a program",
    b"SQLite format 3": "an SQLite database",
}
_OLE_TYPES: Mapping[str, str] = {"Workbook": XLS, "Book": XLS, "__properties_version1.0": MSG}
"""Formats in OLE2 containers, by an entry at the top of the directory."""
_OLE_UNREADABLE: Mapping[str, str] = {
    "EncryptedPackage": "an encrypted Office file; remove its password",
    "WordDocument": "an old Word document (.doc); save it as .docx",
    "PowerPoint Document": "an old presentation (.ppt); save it as .pptx",
}
_BIFF = re.compile(rb"\x09\x08[\x08\x10]\x00\x00[\x05\x06]")
"""The first record of a workbook, which often begins its container."""
_OLE_SECTOR_BYTES = 512
_ZIP = b"PK\x03\x04"
_MEMBER = re.compile(rb"PK(?:\x03\x04|\x01\x02)")
"""Beginning of a member of a ZIP file, or of its entry in the directory at the end."""
_MAX_ENTRIES = 10_000
_MAIN_PARTS: Mapping[bytes, str] = {
    b"word/document.xml": DOCX, b"ppt/presentation.xml": PPTX, b"xl/workbook.xml": XLSX, b"xl/workbook.bin": XLSX,
    b"META-INF/container.xml": EPUB,
}  # fmt: skip
_FOLDERS: Mapping[bytes, str] = {b"word": DOCX, b"ppt": PPTX, b"xl": XLSX}
_OPEN_DOCUMENT = frozenset({b"content.xml", b"META-INF/manifest.xml"})
_OPEN_DOCUMENT_TYPES = "application/vnd.oasis.opendocument."
_STATED_TYPE = re.compile(rb"application/[a-z0-9.+-]+")
_MAX_TYPE_BYTES = 100
PDF_BEGINNING = 1024
"""A PDF file may have this many bytes before its signature."""
_HTML = re.compile(
    rb"\s*(?:<\?xml[^>]{0,200}>\s*)?(?:<!--.{0,1000}?-->\s*)?<(?:!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL
)


MAX_CHARSET_CHARACTERS = 80
_CHARSET = re.compile(rf';[ \t]*charset[ \t]*=[ \t]*"?([^\s";]{{0,{MAX_CHARSET_CHARACTERS}}})', re.IGNORECASE)
_AS_WRITTEN = frozenset({TEXT, MARKDOWN, CSV, JSONL, *SOURCE_CODE})


def is_plain_text(file_name: str) -> bool:
    """Return whether the text of a file with this name is its content. Otherwise a parser makes the text from the content."""
    return BY_SUFFIX.get(PurePath(file_name).suffix.lower(), TEXT) in _AS_WRITTEN


def media_type_of(declared: str | None, file_name: str | None, head: bytes = b"") -> str:
    """Return the media type to parse by: by the content's ``head``, then the declared type, then the file name.

    A declared type that says no more than "text" or "bytes" is ignored if the name has a known suffix. Text is the type of what
    nothing describes.

    Raises:
        UnsupportedMediaType: no parser reads it; the message says what it is, or lists the supported types.
        UnreadableDocument: the content is not of the type that the name or the declaration says.
    """
    if content_type := _by_content(head):
        return content_type
    declared_type, suffix = _normalise_declaration(declared, file_name)
    named_type = _find_type(declared_type, suffix)
    if named_type is None and declared_type not in _UNSPECIFIC:
        raise unsupported_type(declared_type)
    if named_type is None and not (declared_type == TEXT or (not declared_type and not suffix)):
        raise unsupported_type(suffix or declared_type)
    if head and named_type is not None and named_type in _BINARY:
        raise UnreadableDocument(f"the file is not {_BINARY[named_type]}, as its name or its declared type says")
    if named_type in {None, TEXT} and _HTML.match(head[:2_000]):
        return HTML
    return named_type or TEXT


_BINARY: Mapping[str, str] = {
    PDF: "a PDF file",
    DOCX: "a Word document (.docx)",
    PPTX: "a presentation (.pptx)",
    XLSX: "a workbook (.xlsx)",
    XLS: "a workbook (.xls)",
    ODT: "an OpenDocument text",
    ODS: "an OpenDocument spreadsheet",
    ODP: "an OpenDocument presentation",
    EPUB: "an EPUB book",
    MSG: "a message of Outlook",
    RTF: "an RTF file",
    PNG: "a PNG image",
    JPEG: "a JPEG image",
    TIFF: "a TIFF image",
    WEBP: "a WebP image",
}


def find_type_conflict(declared: str | None, file_name: str | None, head: bytes) -> str | None:
    """Return a warning if the content shows another type than the declared type or the name. The content decides."""
    content_type, named_type = _by_content(head), _find_type(*_normalise_declaration(declared, file_name))
    if content_type is None or named_type in {None, content_type}:
        return None
    return (
        f"the file is {content_type} by its content, not {named_type} as its name or its declared type says; "
        f"it is read as {content_type}"
    )


def charset_of(declared: str | None) -> str | None:
    """Return the parameter ``charset`` of a declared media type, or None."""
    match = _CHARSET.search(declared or "")
    return match[1] or None if match else None


def _normalise_declaration(declared: str | None, file_name: str | None) -> tuple[str, str]:
    """Return the declared media type without parameters, and the suffix of the name."""
    declared_type = (declared or "").partition(";")[0].strip().lower()
    return _BY_ALIAS.get(declared_type, declared_type), PurePath((file_name or "").replace("\\", "/")).suffix.lower()


def _find_type(declared_type: str, suffix: str) -> str | None:
    return declared_type if declared_type in FORMATS and declared_type not in _UNSPECIFIC else BY_SUFFIX.get(suffix)


def _by_content(head: bytes) -> str | None:
    """Return the media type that the content itself shows; None if it shows none."""
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return WEBP
    for signature, kind in _UNREADABLE.items():
        if head.startswith(signature):
            raise UnsupportedMediaType(f"the file is {kind}, which cannot be read")
    if head.startswith(SIGNATURE):
        return _find_ole_type(head)
    for signature, media_type in _SIGNATURES.items():
        if head.startswith(signature):
            return media_type
    if head.startswith(_ZIP):
        zip_type = _find_zip_type(head)
        if zip_type is None:
            raise UnsupportedMediaType(
                "the file is a ZIP archive without a document that can be read; upload its files one by one"
            )
        return zip_type
    return PDF if b"%PDF-" in head[:PDF_BEGINNING] and b"\x00" not in head[:16] else None


def _find_ole_type(head: bytes) -> str:
    """Return the media type of an OLE2 container by its directory, or by its first stream if the directory is not in ``head``."""
    entries = list_top_entries(head)
    for entry, kind in _OLE_UNREADABLE.items():
        if entries is not None and entry in entries:
            raise UnsupportedMediaType(f"the file is {kind}; it cannot be read as it is")
    for entry, media_type in _OLE_TYPES.items():
        if entry in (entries or ()):
            return media_type
    if entries is None and any(
        _BIFF.match(head, start) for start in range(_OLE_SECTOR_BYTES, 9 * _OLE_SECTOR_BYTES, _OLE_SECTOR_BYTES)
    ):
        return XLS
    raise UnsupportedMediaType("the file is an old Office file, or an encrypted one, which cannot be read")


def _find_zip_type(head: bytes) -> str | None:
    """Return the type of a document in a ZIP file by the type that it states, then by the names of its members, in any order."""
    names: set[bytes] = set()
    for member in itertools.islice(_MEMBER.finditer(head), _MAX_ENTRIES):
        start, is_local = member.start(), member[0].endswith(b"\x04")
        name_start, length_start = (start + 30, start + 26) if is_local else (start + 46, start + 28)
        name = head[name_start : name_start + int.from_bytes(head[length_start : length_start + 2], "little")]
        names.add(name)
        stated_type = _read_stated_type(head, start) if name == b"mimetype" and is_local else ""
        if stated_type in FORMATS or stated_type.startswith(_OPEN_DOCUMENT_TYPES):
            return stated_type if stated_type in FORMATS else None
    if main_type := next((main_type for part, main_type in _MAIN_PARTS.items() if part in names), None):
        return main_type
    if names >= _OPEN_DOCUMENT:
        return ODT
    return next((_FOLDERS[folder] for name in sorted(names) if (folder := name.partition(b"/")[0]) in _FOLDERS), None)


def _read_stated_type(head: bytes, start: int) -> str:
    """Return the content of the member ``mimetype``, whose header is at ``start``. A template has the type of its documents."""
    content_start = start + 30 + sum(int.from_bytes(head[start + at : start + at + 2], "little") for at in (26, 28))
    content = head[content_start : content_start + 2 * _MAX_TYPE_BYTES]
    if head[start + 8 : start + 10] == b"\x08\x00":
        try:
            content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(content, _MAX_TYPE_BYTES)
        except zlib.error:
            return ""
    stated_type = _STATED_TYPE.match(content)
    return stated_type[0].decode().removesuffix("-template") if stated_type else ""


def unsupported_type(declared_type: str) -> UnsupportedMediaType:
    """Return the error for a media type or suffix that no parser reads."""
    known_types = ", ".join(
        f"{name} ({', '.join(file_format.suffixes)})" for name, file_format in FORMATS.items() if file_format.language is None
    )
    return UnsupportedMediaType(
        f"documents of type {declared_type!r} cannot be read; supported are {known_types}, "
        f"and source code in {len(SOURCE_CODE)} languages"
    )
