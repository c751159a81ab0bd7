"""HTML: the content of a page, without its navigation, with its headings, lists and tables."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from agentic_rag_backend.documents.parsing.base import ParsedDocument, Preview
from agentic_rag_backend.documents.parsing.building import TextBuilder
from agentic_rag_backend.documents.parsing.html.content import add_html
from agentic_rag_backend.documents.parsing.html.depth import check_elements
from agentic_rag_backend.language.titles import is_placeholder

_META = ("description", "author", "keywords")
MAX_META_CHARACTERS = 1_000


class HtmlParser:
    """Parser of HTML and XHTML. Remote images, scripts and styles are neither fetched nor run."""

    def check(self, head: str, *, is_whole: bool) -> Preview:
        """Read the title. The text is found when the whole page is parsed."""
        check_elements(head)
        with _lack_of_memory():
            return Preview(title=_read_title(LexborHTMLParser(head)), text="")

    def parse(self, text: str) -> ParsedDocument:
        """Return the content of the page as text."""
        builder = TextBuilder(len(text))
        with _lack_of_memory():
            page = add_html(builder, text)
            return builder.build(title=_read_title(page), metadata=_read_metadata(page))

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


def _read_title(page: LexborHTMLParser) -> str | None:
    """Return the title of a page, or its first heading if the title is missing or a placeholder."""
    nodes = (page.css_first("head > title"), page.css_first("h1"))
    titles = [title for node in nodes if node is not None and (title := " ".join(node.text(deep=True).split()))]
    return next((title for title in titles if not is_placeholder(title)), None)


def _read_metadata(page: LexborHTMLParser) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for node in page.css("meta[name][content]"):
        name, value = (node.attributes.get("name") or "").lower(), " ".join((node.attributes.get("content") or "").split())
        if name in _META and value:
            fields.setdefault(name, value[:MAX_META_CHARACTERS])
    root = page.css_first("html")
    if root is not None and (language := (root.attributes.get("lang") or "").strip()):
        fields["language"] = language[:MAX_META_CHARACTERS]
    return fields
