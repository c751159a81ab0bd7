"""EPUB: the chapters of a book in the order of its spine."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from itertools import islice
from typing import Any
from urllib.parse import unquote

from lxml import etree

from agentic_rag_backend.errors import ResourceLimit, UnreadableDocument
from agentic_rag_backend.ingestion.accept.metadata_checks import keep_valid_fields
from agentic_rag_backend.ingestion.parsing.base import ParsedDocument, Preview
from agentic_rag_backend.ingestion.parsing.books.chapters import add_chapter
from agentic_rag_backend.ingestion.parsing.building import TextBuilder
from agentic_rag_backend.ingestion.parsing.containers import ZipContainer

MAX_CHAPTERS = 5_000

_CONTAINER, _ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
_FONTS = (b"http://www.idpf.org/2008/embedding", b"http://ns.adobe.com/pdf/enc#RC")
"""Algorithms that obfuscate fonts, not text."""
MAX_VALUES = 50
_SEVERAL = frozenset({"creator", "subject"})
_FIELDS = {"author": "creator", "created": "date", "language": "language", "publisher": "publisher", "subject": "subject"}


class EpubParser:
    """Parser of EPUB books. The page of a region is the number of its chapter in the spine."""

    def check(self, head: bytes, *, is_whole: bool) -> Preview:
        """Open the book and read its title. A part of a ZIP file cannot be opened."""
        return Preview(title=_read_field(_read_package(ZipContainer(head))[1], "title") if is_whole else None, text="")

    def parse(self, content: bytes) -> ParsedDocument:
        """Return the chapters one after the other."""
        container = ZipContainer(content)
        path, package = _read_package(container)
        builder = TextBuilder()
        members_read: set[str] = set()
        for number, name in enumerate(_list_chapters(path, package), start=1):
            if number > MAX_CHAPTERS:
                raise ResourceLimit(f"the book has more than {MAX_CHAPTERS} chapters, which is the limit")
            if name in container and name not in members_read:
                members_read.add(name)
                content = container.read_member(name)
                builder.size_bytes = container.unzipped_bytes
                add_chapter(builder, content, page=number)
        fields: dict[str, Any] = {name: _read_field(package, element) for name, element in _FIELDS.items()}
        return builder.build(
            title=_read_field(package, "title"),
            metadata=keep_valid_fields({name: value for name, value in fields.items() if value}),
        )

    def restore(self, text: str) -> ParsedDocument:
        """Return ``text``; which lines are headings is not known."""
        return ParsedDocument(text=text)


def _read_package(container: ZipContainer) -> tuple[str, etree._Element]:
    """Return the package document of a book and its path."""
    if _ENCRYPTION in container:
        methods = container.read_tree(_ENCRYPTION).findall(".//{*}EncryptedData/{*}EncryptionMethod")
        if any((method.get("Algorithm") or "").encode() not in _FONTS for method in methods):
            raise UnreadableDocument("the book is encrypted (protected by DRM)")
    root = container.read_tree(_CONTAINER).find(".//{*}rootfile")
    path = "" if root is None else root.get("full-path") or ""
    return path, container.read_tree(path)


def _list_chapters(path: str, package: etree._Element) -> Iterator[str]:
    """Yield the members of the chapters in reading order."""
    items = {item.get("id"): unquote(item.get("href") or "") for item in package.iterfind(".//{*}manifest/{*}item")}
    for reference in package.iterfind(".//{*}spine/{*}itemref"):
        target = items.get(reference.get("idref"))
        if target and reference.get("linear") != "no":
            yield posixpath.normpath(posixpath.join(posixpath.dirname(path), target.partition("#")[0]))


def _read_field(package: etree._Element, name: str) -> str | None:
    """Return a field. Authors and subjects may be several; a book has one title, date and language."""
    elements = package.iterfind(f".//{{http://purl.org/dc/elements/1.1/}}{name}")
    values = list(
        dict.fromkeys(filter(None, (" ".join((element.text or "").split()) for element in islice(elements, MAX_VALUES))))
    )
    return "; ".join(values if name in _SEVERAL else values[:1])[:500] or None
