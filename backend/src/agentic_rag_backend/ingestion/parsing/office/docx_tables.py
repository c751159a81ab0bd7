"""Rows of WordprocessingML tables. The text of a merged cell stands in its first cell."""

from __future__ import annotations

from lxml import etree

from agentic_rag_backend.errors import ResourceLimit
from agentic_rag_backend.ingestion.parsing.office.docx_text import LEFT_OUT, W, read_value, text_of
from agentic_rag_backend.ingestion.parsing.office.walking import local_name, walk_elements

MAX_COLUMNS = 1_000


def rows_of(table: etree._Element) -> tuple[list[list[str]], list[etree._Element]]:
    """Return the cells of a table row by row, and the tables within them."""
    rows: list[list[str]] = []
    nested: list[etree._Element] = []
    for row in walk_elements(table, without=LEFT_OUT, leaf_names={"tr"}):
        if local_name(row) == "tr" and row.find(f"{W}trPr/{W}del") is None:
            cells: list[str] = [""] * _read_span(row, "trPr/gridBefore", least=0)
            for cell in walk_elements(row, without=LEFT_OUT, leaf_names={"tc"}):
                if local_name(cell) == "tc":
                    cells += _read_cell(cell, nested)
            if len(cells) > MAX_COLUMNS:
                raise ResourceLimit(f"a table has {len(cells)} columns; the limit is {MAX_COLUMNS}")
            rows.append(cells)
    return rows, nested


def _read_cell(cell: etree._Element, nested: list[etree._Element]) -> list[str]:
    parts: list[str] = []
    for block in walk_elements(cell, without=LEFT_OUT, leaf_names={"p", "tbl"}):
        if local_name(block) == "p":
            parts.append(text_of(block).strip())
        elif local_name(block) == "tbl":
            nested.append(block)
    merge = cell.find(f"{W}tcPr/{W}vMerge")
    continued = merge is not None and merge.get(W + "val") in {None, "continue"}
    text = "" if continued else "\n".join(filter(None, parts))
    return [text] + [""] * (_read_span(cell, "tcPr/gridSpan", least=1) - 1)


def _read_span(element: etree._Element, path: str, *, least: int) -> int:
    span = read_value(element, path) or ""
    return min(max(int(span), least), MAX_COLUMNS + 1) if span.isdecimal() and len(span) < 9 else least
