"""Chapters of books: XHTML as headings, paragraphs, lists and tables."""

from __future__ import annotations

from lxml import etree

from agentic_rag_backend.errors import UnreadableDocument
from agentic_rag_backend.ingestion.parsing.building import TextBuilder
from agentic_rag_backend.ingestion.parsing.containers import xml_problem
from agentic_rag_backend.ingestion.parsing.html.depth import check_attributes
from agentic_rag_backend.ingestion.parsing.html.hidden import hides_text, read_style
from agentic_rag_backend.ingestion.parsing.html.list_items import BULLET, ListNumbers
from agentic_rag_backend.ingestion.parsing.inline_scripts import SUBSCRIPT, SUPERSCRIPT, replace_by_text, replace_script
from agentic_rag_backend.ingestion.parsing.office.drawings.mathml import write_mathml
from agentic_rag_backend.ingestion.parsing.omissions import Omissions

_FATAL = frozenset({etree.ErrorTypes.ERR_RESOURCE_LIMIT, etree.ErrorTypes.ERR_NO_MEMORY})
_BREAK = "\0"
"""A line break. Line breaks of the file are spaces."""
_BLANK = "\1"
"""A space of preformatted text."""
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = _HEADINGS.keys() | {
    "address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "footer", "form", "header", "hr", "html", "li", "main", "nav", "ol", "p", "pre", "section",
    "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
}  # fmt: skip
_LEFT_OUT = frozenset({
    "head", "script", "style", "template", "noscript", "svg", "iframe", "object", "audio", "video", "canvas", "rt", "rp",
    "del", "s", "strike",
})  # fmt: skip


def add_chapter(builder: TextBuilder, content: bytes, *, page: int) -> None:
    """Add the text of a chapter. Elements that its author hid are left out.

    Raises:
        UnreadableDocument: it cannot be read as HTML, or defines entities.
    """
    if b"<!ENTITY" in content:
        raise UnreadableDocument(f"chapter {page} of the book defines entities, which is not allowed")
    check_attributes(content.decode(_choose_encoding(content) or "utf-16", "replace"))
    # The parser of HTML knows the entities of HTML only. Most chapters have a document type, which it does not load.
    parser = etree.HTMLParser(no_network=True, remove_comments=True, remove_pis=True, encoding=_choose_encoding(content))
    try:
        root = etree.fromstring(content, parser) if content.strip() else None
    except (etree.LxmlError, ValueError) as error:
        raise UnreadableDocument(f"the book is damaged: chapter {page} cannot be read ({str(error)[:200]})") from None
    for problem in parser.error_log:
        if problem.type in _FATAL:  # other errors are repaired, but here the parser left out the rest of the text
            raise xml_problem(problem.type, problem.message, f"chapter {page} of the book")
    if root is not None:
        _normalise_chapter(root, builder.omissions, page)
        _Chapter(builder, page).add_blocks(root)


def _normalise_chapter(root: etree._Element, omissions: Omissions, page: int) -> None:
    """Remove hidden and deleted elements, and write formulas, superscripts and subscripts on the line."""
    waiting = list(reversed(root))
    while waiting:
        element = waiting.pop()
        if element.tag == "math":
            replace_by_text(element, write_mathml(element) or "".join(element.itertext()))
        elif not isinstance(element.tag, str) or not _is_left_out(element):
            waiting.extend(reversed(element))
        else:
            is_hidden = element.tag not in _LEFT_OUT and bool("".join(element.itertext()).strip())
            omissions.add("hidden text", f"chapter {page}", count=int(is_hidden))
            replace_by_text(element, "")
            element.tag = "span"
    for element in list(root.iter("sup", "sub")):
        replace_script(element, SUPERSCRIPT if element.tag == "sup" else SUBSCRIPT, blocks=_BLOCKS)


def _is_left_out(element: etree._Element) -> bool:
    if element.tag in _LEFT_OUT or element.get("hidden") is not None:
        return True
    style = element.get("style")
    return style is not None and hides_text(read_style(style))


def _choose_encoding(content: bytes) -> str | None:
    return None if content[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8"


class _Chapter:
    def __init__(self, builder: TextBuilder, page: int) -> None:
        self._builder, self._page = builder, page
        self._parts: list[str] = []
        self._block = ""
        self._listings = 0
        """Elements of preformatted text that are open."""
        self._numbers, self._label = ListNumbers(), ""

    def add_blocks(self, root: etree._Element) -> None:
        """Add every block below ``root`` in its order, without recursion."""
        stack: list[tuple[etree._Element, bool]] = [(root, False)]
        while stack:
            element, is_end = stack.pop()
            name = element.tag if isinstance(element.tag, str) else ""
            if is_end:
                if name in _BLOCKS:
                    self._end_block()
                self._listings -= name == "pre"
                self._label = "" if name == "li" else self._label
                self._add_text(element.tail or "")
            elif not name or name in _LEFT_OUT:
                self._add_text(element.tail or "")
            elif name == "table":
                self._end_block()
                self._builder.add_table(*self._read_table(element))
                self._add_text(element.tail or "")
            else:
                if name in _BLOCKS:
                    self._end_block()
                    self._block = name
                    self._label = self._write_label(element) if name == "li" else self._label
                self._listings += name == "pre"
                self._add_text(_read_own_text(element, name))
                stack.append((element, True))
                stack.extend((child, False) for child in reversed(element))
        self._end_block()

    def _add_text(self, text: str) -> None:
        """Add text of the block. Lines and indentations of preformatted text are kept."""
        self._parts.append(text.replace("\n", _BREAK).expandtabs(4).replace(" ", _BLANK) if self._listings else text)

    def _end_block(self) -> None:
        text = _collapse_space("".join(self._parts))
        self._parts.clear()
        name, self._block = self._block, ""
        if name in _HEADINGS:
            self._builder.add_heading(_HEADINGS[name], text, page=self._page)
        elif text:
            self._builder.add_paragraph(self._label + text, page=self._page)
            self._label = ""

    def _write_label(self, item: etree._Element) -> str:
        parent = item.getparent()
        if parent is None or parent.tag != "ol":
            return BULLET
        return self._numbers.write_label(parent, dict(parent.attrib), dict(item.attrib))

    def _read_table(self, table: etree._Element) -> tuple[list[list[str]], list[dict[str, int]]]:
        rows = [
            [" ".join("".join(cell.itertext()).split()) for cell in row if cell.tag in {"td", "th"}] for row in table.iter("tr")
        ]
        rows = [row for row in rows if row]
        return rows, [{"page": self._page}] * len(rows)


def _read_own_text(element: etree._Element, name: str) -> str:
    """Return the text before the first child; of a picture, the text that replaces it."""
    if name == "br":
        return _BREAK
    return (element.get("alt") or "") if name == "img" else element.text or ""


def _collapse_space(text: str) -> str:
    lines = (" ".join(line.split()) for line in text.split(_BREAK))
    return "\n".join(line.replace(_BLANK, " ").rstrip() for line in lines if line)
