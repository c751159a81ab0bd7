"""Prepares a parsed page for reading: hidden and deleted text goes, superscripts and form values become text."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lxml import etree
from selectolax.lexbor import LexborHTMLParser, LexborNode

from agentic_rag_backend.ingestion.parsing.html.hidden import has_background, hides_text, is_white, read_style
from agentic_rag_backend.ingestion.parsing.inline_scripts import BASE_CHARACTERS, write_subscript, write_superscript
from agentic_rag_backend.ingestion.parsing.office.drawings.mathml import write_mathml
from agentic_rag_backend.ingestion.parsing.omissions import Omissions

_UNSEEN = "script, style, noscript, template, iframe, object, svg, button, .katex-html[aria-hidden], del, s, strike"
"""Elements that no reader sees as text. Deleted text is struck through, and inserted text stands next to it."""
_SHEETS = "style, link[rel~=stylesheet]"
_TYPED = frozenset({"", "text", "number", "date", "datetime-local", "month", "week", "time", "email", "tel", "url", "search"})
_BOXES = frozenset({"checkbox", "radio"})
_NOTE_LINKS = "a[href^='#'], [role=doc-noteref]"


def normalise_page(page: LexborHTMLParser, omissions: Omissions) -> None:
    """Change a page so that its text is what a reader sees on one line. ``omissions`` counts hidden elements with text."""
    hidden = list_outermost(page, list(_list_hidden_nodes(page)))
    omissions.add("hidden text", count=sum(bool(node.text(deep=True).strip()) for node in hidden))
    for node in hidden:
        node.decompose()
    for node in list_outermost(page, page.css(_UNSEEN)):
        node.decompose()
    for node in page.css("input:not([role=button]), select, textarea"):
        node.replace_with(f" {_read_field(node)} ")
    for node in list_outermost(page, page.css("math")):
        node.replace_with(_write_formula(node))
    for node in page.css("sup, sub"):
        _write_script(node)
    if page.body is not None:
        page.body.merge_text_nodes()


def list_outermost(page: LexborHTMLParser, nodes: list[LexborNode]) -> list[LexborNode]:
    """Return the nodes that are in none of the others, without the page itself. Removing a node frees those within it."""
    pages = {node.mem_id for node in (page.body, page.root) if node is not None}
    ids, results = {node.mem_id for node in nodes} - pages, dict[int, bool]()
    inner = [node for node in nodes if node.mem_id in ids]
    return [node for node in inner if not is_any_above(node.parent, lambda above: above.mem_id in ids, results)]


def is_any_above(node: LexborNode | None, test: Callable[[LexborNode], bool], results: dict[int, bool]) -> bool:
    """Return whether a test holds for a node or one above it. ``results`` keeps results, so that each node is tested once."""
    path: list[int] = []
    result = False
    while node is not None and not result:
        if node.mem_id in results:
            result = results[node.mem_id]
            break
        path.append(node.mem_id)
        result = test(node)
        node = node.parent
    results.update(dict.fromkeys(path, result))
    return result


def _list_hidden_nodes(page: LexborHTMLParser) -> Iterator[LexborNode]:
    has_sheets, results = page.css_first(_SHEETS) is not None, dict[int, bool]()
    yield from page.css("[hidden]")
    for node in page.css("[style], font[color]"):
        style = read_style(node.attributes.get("style") or "")
        if color := node.attributes.get("color"):
            style.setdefault("color", color.lower().strip())
        if hides_text(style):
            if not _resets_size(node, style):
                yield node
        elif is_white(style) and not is_any_above(node, lambda above: _may_have_background(above, has_sheets), results):
            yield node


def _resets_size(node: LexborNode, style: dict[str, str]) -> bool:
    """Return whether only the size of letters is zero, as a trick that removes spaces, and elements within have a size."""
    return (
        not hides_text({**style, "font-size": ""})
        and node.css_first("[style*=font-size]:not([style*='font-size:0'])") is not None
    )


def _may_have_background(node: LexborNode, has_sheets: bool) -> bool:
    """Return whether an element may have another colour than the paper. A style sheet may give one to classes and ids."""
    attributes = node.attributes
    if has_background(read_style(attributes.get("style") or "")) or attributes.get("bgcolor") or attributes.get("background"):
        return True
    return has_sheets and bool(attributes.get("class") or attributes.get("id"))


def _read_field(node: LexborNode) -> str:
    """Return the value of a field of a form, as it is shown."""
    if node.tag == "textarea":
        return node.text(deep=True)
    if node.tag == "select":
        return ", ".join(option.text(deep=True).strip() for option in node.css("option[selected]"))
    kind = (node.attributes.get("type") or "").lower()
    if kind in _BOXES:
        return "[x]" if "checked" in node.attributes else "[ ]"
    return node.attributes.get("value") or "" if kind in _TYPED else ""


def _write_script(node: LexborNode) -> None:
    """Replace a superscript or subscript by its text on one line."""
    if node.css_first("sup, sub") is not None and node.css_first("p, div, table, ul") is not None:
        return
    before = node.prev or (node.parent.prev if node.parent is not None else None)
    base = (before.text(deep=True) if before is not None else "")[-BASE_CHARACTERS:]
    text = node.text(deep=True).strip()
    if node.tag == "sub":
        node.replace_with(write_subscript(base, text))
    elif text.isdecimal() and (node.css_first(_NOTE_LINKS) is not None or _is_in_link(node)):
        node.replace_with(f"[{text}]")
    else:
        node.replace_with(write_superscript(base, text))


def _write_formula(node: LexborNode) -> str:
    """Return the text of a formula on one line. Some pages have its source as text instead of elements."""
    root = etree.fromstring(node.html or "", etree.HTMLParser(no_network=True))
    formula = root.find(".//math") if root is not None else None
    return (write_mathml(formula) if formula is not None else "") or node.text(deep=True)


def _is_in_link(node: LexborNode) -> bool:
    return node.parent is not None and node.parent.tag == "a"
