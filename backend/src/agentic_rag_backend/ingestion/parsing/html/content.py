"""Converts the elements of HTML to text with headings, lists and tables."""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

from agentic_rag_backend.errors import UnreadableDocument
from agentic_rag_backend.ingestion.parsing.building import TextBuilder
from agentic_rag_backend.ingestion.parsing.html.depth import MAX_DEPTH, check_elements
from agentic_rag_backend.ingestion.parsing.html.list_items import BULLET, ListNumbers
from agentic_rag_backend.ingestion.parsing.html.normalising import is_any_above, list_outermost, normalise_page
from agentic_rag_backend.ingestion.parsing.html.tables import read_table

CHROME_SHARE = 0.5
"""Navigation, headers and footers are kept if they are more than this share of the text: the page may be all links."""

_CHROME = "nav, aside, [role=navigation], [role=banner], [role=contentinfo]"
_CHROME_OF_PAGE = "header, footer"
_SECTIONS = frozenset({"main", "article", "section", "aside", "nav"})
"""Elements whose headers and footers are theirs, and not those of the page."""
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "center", "dd", "details", "dialog", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "footer", "form", "header", "hr", "html", "legend", "li", "main", "nav", "ol", "p", "pre",
    "section", "summary", "table", "ul",
})  # fmt: skip
_SPACE = re.compile(r"\s+")


def add_html(builder: TextBuilder, text: str, *, base_level: int = 0) -> LexborHTMLParser:
    """Add the visible content of ``text`` to ``builder`` and return the parsed page. Nothing is fetched or run.

    Levels of headings are raised by ``base_level``.

    Raises:
        UnreadableDocument: the elements are nested too deep.
    """
    check_elements(text)
    page = LexborHTMLParser(text)
    normalise_page(page, builder.omissions)
    _drop_surroundings(page)
    if page.body is not None:
        writer = _Writer(builder, base_level)
        writer.write_children(page.body, 0)
        writer.end_block()
    return page


def _drop_surroundings(page: LexborHTMLParser) -> None:
    """Remove the surroundings of the content, unless they are most of the text."""
    if page.body is None:
        return
    results: dict[int, bool] = {}
    ends = [node for node in page.css(_CHROME_OF_PAGE) if not is_any_above(node.parent, _is_section, results)]
    chrome = list_outermost(page, [*page.css(_CHROME), *ends])
    if sum(map(_count_letters, chrome)) <= CHROME_SHARE * _count_letters(page.body):
        for node in chrome:
            node.decompose()


def _is_section(node: LexborNode) -> bool:
    return node.tag in _SECTIONS or node.attributes.get("role") == "main"


def _count_letters(node: LexborNode) -> int:
    """Return the length of a text without spaces. Menus have more of them than prose."""
    return len("".join(node.text(deep=True).split()))


class _Writer:
    """Writes nodes as blocks of text. Inline text is collected until its block ends."""

    def __init__(self, builder: TextBuilder, base_level: int, *, nested: list[LexborNode] | None = None) -> None:
        """Create a writer. ``nested`` collects tables instead of writing them."""
        self._builder, self._base_level, self._nested = builder, base_level, nested
        self._inline: list[str] = []
        self._items: list[str] | None = None
        self._numbers, self._label = ListNumbers(), BULLET

    def end_block(self) -> None:
        """Add the collected inline text as a paragraph, or as a line of the list."""
        text = "\n".join(_SPACE.sub(" ", line).strip() for line in "".join(self._inline).split("\n"))
        self._inline.clear()
        if not text.strip():
            return
        if self._items is None:
            self._builder.add_paragraph(text)
        elif text.strip() == self._label.strip():  # the item's text is in a block of its own
            self._inline.append(self._label)
        else:
            self._items.append(text.strip())

    def write_children(self, node: LexborNode, depth: int) -> None:
        """Write the children of ``node``."""
        if depth > MAX_DEPTH:
            raise UnreadableDocument(f"the elements of the HTML are nested more than {MAX_DEPTH} deep")
        for child in node.iter(include_text=True):
            self._write_one(child, depth)

    def _write_one(self, node: LexborNode, depth: int) -> None:
        tag = node.tag or ""
        if tag == "-text":
            self._inline.append(_SPACE.sub(" ", node.text(deep=False)))
        elif tag == "br":
            self._inline.append("\n")
        elif tag == "img":
            self._inline.append(node.attributes.get("alt") or "")
        elif tag in _BLOCKS or tag in _HEADINGS:
            self.end_block()
            self._write_block(node, tag, depth)
            self.end_block()
        else:
            self.write_children(node, depth + 1)

    def _write_block(self, node: LexborNode, tag: str, depth: int) -> None:
        if tag in _HEADINGS:
            self._builder.add_heading(self._base_level + _HEADINGS[tag], _plain_text(node))
        elif tag == "pre":
            self._builder.add_paragraph(node.text(deep=True))
        elif tag == "table":
            self._write_table(node, depth)
        elif tag in {"ul", "ol"} and self._items is None:
            self._write_list(node, depth)
        elif tag == "li" and self._items is not None:
            self._label = self._write_label(node)
            self._inline[:] = [self._label]
            self.write_children(node, depth + 1)
        else:
            self.write_children(node, depth + 1)

    def _write_table(self, node: LexborNode, depth: int) -> None:
        """Write a table, and below it the tables within its cells. The cells of a table for layout are blocks."""
        if self._nested is not None:
            self._nested.append(node)
            return
        table = read_table(node)
        if table.caption is not None:
            self.write_children(table.caption, depth + 1)
            self.end_block()
        if table.is_layout():
            for cell in (cell for row in table.iterate_rows() for cell in row):
                self.write_children(cell, depth + 1)
                self.end_block()
            return
        nested: list[LexborNode] = []
        grid = table.make_grid(lambda cell: _read_cell(cell, nested, depth))
        grid.write_table(self._builder, header_rows=table.count_header_rows())
        for inner in nested:
            self._write_table(inner, depth + 1)

    def _write_label(self, item: LexborNode) -> str:
        parent = item.parent
        if parent is None or parent.tag != "ol":
            return BULLET
        return self._numbers.write_label(parent.mem_id, parent.attributes, item.attributes)

    def _write_list(self, node: LexborNode, depth: int) -> None:
        self._items = []
        self.write_children(node, depth + 1)
        self.end_block()
        self._inline.clear()
        items, self._items = self._items, None
        self._builder.add_lines([(item, {}) for item in items])


def _read_cell(cell: LexborNode, nested: list[LexborNode], depth: int) -> str:
    """Return the text of a cell. Tables in it are added to ``nested``."""
    child = cell.first_child
    if child is None or (child.tag == "-text" and child.next is None):  # most cells
        return " ".join(cell.text(deep=True).split())
    builder = TextBuilder()
    writer = _Writer(builder, 0, nested=nested)
    writer.write_children(cell, depth + 1)
    writer.end_block()
    return builder.text


def _plain_text(node: LexborNode) -> str:
    return " ".join(node.text(deep=True, separator=" ").split())
