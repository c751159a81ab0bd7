"""Jupyter notebooks: text, code and the text of outputs, cell by cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentic_rag_backend.documents.parsing.base import ParsedDocument, Preview
from agentic_rag_backend.documents.parsing.building import TextBuilder
from agentic_rag_backend.documents.parsing.html.html_parser import HtmlParser
from agentic_rag_backend.documents.parsing.json_documents import load_json
from agentic_rag_backend.documents.parsing.markdown import headings_of
from agentic_rag_backend.errors import AgenticRagError, UnreadableDocument
from agentic_rag_backend.language.titles import is_placeholder

MAX_OUTPUT_CHARACTERS = 10_000
"""Characters of an output that are read."""
_LINES = ("stream", "pyout", "execute_result", "display_data", "error", "pyerr")


class NotebookParser:
    """Parser of notebooks, formats 3 and 4. Code is fenced, so that the text is Markdown. Pictures of outputs are counted."""

    def check(self, head: str, *, is_whole: bool) -> Preview:
        """Read the first heading, if the beginning is the whole file."""
        if not is_whole:
            return Preview(title=None, text="")
        parsed = self.parse(head)
        return Preview(title=parsed.title, text=parsed.text)

    def parse(self, text: str) -> ParsedDocument:
        """Return the cells in their order."""
        notebook = load_json(text)
        cells = list(_list_cells(notebook))
        if not cells:
            raise UnreadableDocument("the file is not a notebook with cells")
        builder = TextBuilder(len(text))
        language = _read_language(notebook)
        for cell in cells:
            _add_cell(builder, cell, language)
        parsed = builder.build()
        headings = tuple(headings_of(parsed.text))
        title = next((heading.title for heading in headings if not is_placeholder(heading.title)), None)
        return ParsedDocument(text=parsed.text, title=title, headings=headings, warnings=parsed.warnings)

    def restore(self, text: str) -> ParsedDocument:
        """Return ``text`` with its headings."""
        return ParsedDocument(text=text, headings=tuple(headings_of(text)))


def _list_cells(notebook: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the cells of a notebook, which older formats divide into work sheets."""
    if not isinstance(notebook, dict):
        return
    sheets = [notebook, *(_read_list(notebook, "worksheets"))]
    for sheet in sheets:
        if isinstance(sheet, dict):
            yield from (cell for cell in _read_list(sheet, "cells") if isinstance(cell, dict))


def _read_list(value: Mapping[str, Any], name: str) -> list[Any]:
    items = value.get(name)
    return items if isinstance(items, list) else []


def _read_language(notebook: Mapping[str, Any]) -> str:
    language: Any = notebook.get("metadata")
    for name in ("kernelspec", "language"):
        language = language.get(name) if isinstance(language, dict) else None
    return language if isinstance(language, str) and language.isalnum() else ""


def _read_text(value: Any) -> str:
    """Return a text, which a notebook may write as a list of lines."""
    return (
        "".join(filter(lambda line: isinstance(line, str), value))
        if isinstance(value, list)
        else value
        if isinstance(value, str)
        else ""
    )


def _add_cell(builder: TextBuilder, cell: Mapping[str, Any], language: str) -> None:
    source = _read_text(cell.get("source", cell.get("input"))).strip("\n")
    kind = cell.get("cell_type")
    if kind == "heading":
        level = str(cell.get("level"))
        builder.add_paragraph(f"{'#' * (int(level) if level in list('123456') else 1)} {source}")
    elif kind == "code":
        if source.strip():
            builder.add_paragraph(f"{_make_fence(source)}{language}\n{source}\n{_make_fence(source)}")
        for output in _read_list(cell, "outputs"):
            if isinstance(output, dict) and output.get("output_type") in _LINES:
                _add_output(builder, output)
    else:
        builder.add_paragraph(source)


def _make_fence(source: str) -> str:
    return "~~~" if "```" in source else "```"


def _add_output(builder: TextBuilder, output: Mapping[str, Any]) -> None:
    """Add the form of an output that says most: Markdown, HTML, or plain text. An error is its name and message."""
    forms = output.get("data")
    data = forms if isinstance(forms, dict) else output
    html = _read_text(data.get("text/html", data.get("html")))
    text = _read_text(data.get("text/markdown")) or _read_html(html) or _read_text(data.get("text/plain", data.get("text")))
    if output.get("ename"):
        text = f"{_read_text(output.get('ename'))}: {_read_text(output.get('evalue'))}"
    if not text.strip():
        builder.omissions.add("pictures and other outputs without text")
        return
    builder.omissions.add("ends of long outputs", count=int(len(text) > MAX_OUTPUT_CHARACTERS))
    builder.add_paragraph(text[:MAX_OUTPUT_CHARACTERS])


def _read_html(html: str) -> str:
    """Return the text of HTML, such as a table; an empty string if it has none."""
    try:
        return HtmlParser().parse(html).text if html.strip() else ""
    except AgenticRagError:
        return ""
