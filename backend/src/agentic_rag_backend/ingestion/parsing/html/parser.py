"""HTML: the content of a page, without its navigation, with its headings, lists and tables."""

from __future__ import annotations

import codecs
import contextlib
import re
from collections.abc import Iterator
from typing import Any

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from agentic_rag_backend.ingestion.parsing.base import ParsedDocument, Preview
from agentic_rag_backend.ingestion.parsing.building import TextBuilder
from agentic_rag_backend.ingestion.parsing.html.content import add_html
from agentic_rag_backend.ingestion.parsing.html.depth import check_depth
from agentic_rag_backend.ingestion.parsing.text import decode

_META = ("description", "author", "keywords")
MAX_META_CHARACTERS = 1_000
_CHARSET = re.compile(
    rb"""(?:<meta\b[^>]{0,200}?\bcharset|<\?xml\b[^>]{0,100}?\bencoding)\s*=\s*["']?([A-Za-z0-9_.:-]{2,40})""", re.IGNORECASE
)
_DECLARED_WITHIN = 1024
_BROWSERS_READ = {"iso-8859-1": "cp1252", "latin1": "cp1252", "us-ascii": "cp1252", "ascii": "cp1252"}
"""Names that the WHATWG Encoding Standard reads as another encoding."""
_NOT_ASCII = frozenset({"utf-16", "utf-16le", "utf-16be", "utf-32", "utf-7", "idna", "punycode"})
"""A page that declares one of these in ASCII is not encoded so."""


class HtmlParser:
    """Parser of HTML and XHTML. Remote images, scripts and styles are neither fetched nor run."""

    def check(self, head: bytes, *, whole: bool) -> Preview:
        """Read the title. The text is found when the whole page is parsed."""
        text = decode(head, partial=not whole, declared=_encoding(head))
        check_depth(text)
        with _lack_of_memory():
            return Preview(title=_title(LexborHTMLParser(text)), text="")

    def parse(self, content: bytes) -> ParsedDocument:
        """Return the content of the page as text."""
        builder = TextBuilder()
        text = decode(content, declared=_encoding(content))
        with _lack_of_memory():
            page = add_html(builder, text)
            return builder.build(title=_title(page), metadata=_metadata(page))

    def restore(self, text: str) -> ParsedDocument:
        """Return ``text``; its headings cannot be told from paragraphs."""
        return ParsedDocument(text=text)


@contextlib.contextmanager
def _lack_of_memory() -> Iterator[None]:
    """Turn the library's errors into `MemoryError`. Any text is HTML and the selectors are constant, so nothing else fails."""
    try:
        yield
    except SelectolaxError as error:
        raise MemoryError(str(error)) from None


def _encoding(content: bytes) -> str:
    """Return the encoding that the page declares in its first kilobyte, if Python knows it; otherwise UTF-8."""
    found = _CHARSET.search(content[:_DECLARED_WITHIN])
    name = found[1].decode("ascii") if found else "utf-8"
    try:
        return codecs.lookup(_BROWSERS_READ.get(name.lower(), name)).name if name.lower() not in _NOT_ASCII else "utf-8"
    except LookupError:
        return "utf-8"


def _title(page: LexborHTMLParser) -> str | None:
    found = page.css_first("head > title")
    return " ".join(found.text(deep=True).split()) or None if found is not None else None


def _metadata(page: LexborHTMLParser) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for node in page.css("meta[name][content]"):
        name, value = (node.attributes.get("name") or "").lower(), " ".join((node.attributes.get("content") or "").split())
        if name in _META and value:
            found.setdefault(name, value[:MAX_META_CHARACTERS])
    root = page.css_first("html")
    if root is not None and (language := (root.attributes.get("lang") or "").strip()):
        found["language"] = language[:MAX_META_CHARACTERS]
    return found
