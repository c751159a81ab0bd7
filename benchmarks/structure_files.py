"""Writes a table of `structure_tables` into a file of each format, between two paragraphs.

``WRITERS`` has a function for each kind of file. It returns None for a table that the format cannot have, such as hidden rows in
a presentation.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from report import ROOT
from structure_tables import Cell, Table

sys.path.insert(0, str(ROOT / "tests" / "fixtures"))

from office_files import open_document
from pdf_files import Page, pdf_of

BEFORE, AFTER = "The office keeps these figures.", "Nothing else was counted."
_LETTER, _PITCH, _SIZE = 4.8, 10.0, 8.0
"""Width of a letter of Courier of this size, and distance of lines, in points."""
_MARGIN = 4.0


def html(table: Table) -> bytes | None:
    """Return a web page."""
    if table.beside:
        return None
    return f"<!doctype html><html><body><p>{BEFORE}</p>{_html_table(table)}<p>{AFTER}</p></body></html>".encode()


def _html_table(table: Table) -> str:
    rows = []
    for row in range(table.height):
        cells = []
        for column, cell in _cells_of(table, row):
            mark = "th" if row < table.header_rows else "td"
            hidden = ' style="display:none"' if column in table.hidden_columns else ""
            spans = f' rowspan="{cell.row_span}"' * (cell.row_span > 1) + f' colspan="{cell.column_span}"' * (
                cell.column_span > 1
            )
            inner = _html_table(cell.table) if cell.table else escape(cell.text)
            cells.append(f"<{mark}{spans}{hidden}>{inner}</{mark}>")
        hidden = ' style="display:none"' if row in table.hidden_rows else ""
        rows.append(f"<tr{hidden}>{''.join(cells)}</tr>")
    return f"<table>{''.join(rows)}</table>"


def docx(table: Table) -> bytes | None:
    """Return a Word document."""
    from docx import Document

    if table.beside or table.kind in {"hidden rows and columns", "next page"}:
        return None
    document = Document()
    document.add_paragraph(BEFORE)
    _fill_docx(document.add_table(table.height, table.width), table)
    document.add_paragraph(AFTER)
    return _saved(document.save)


def _fill_docx(shape: Any, table: Table) -> None:
    for (row, column), cell in table.cells.items():
        target = _merge_cells(shape, row, column, cell)
        if cell.table:
            _fill_docx(target.add_table(cell.table.height, cell.table.width), cell.table)
        else:
            target.text = cell.text


def _merge_cells(shape: Any, row: int, column: int, cell: Cell) -> Any:
    target = shape.cell(row, column)
    if cell.row_span > 1 or cell.column_span > 1:
        end = shape.cell(row + cell.row_span - 1, column + cell.column_span - 1)
        target = target.merge(end) or target
    return target


def pptx(table: Table) -> bytes | None:
    """Return a presentation of one slide."""
    from pptx import Presentation
    from pptx.util import Inches

    if table.beside or table.kind in {"hidden rows and columns", "next page", "nested", "layout"}:
        return None
    presentation = Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[5])
    slide.shapes.title.text = BEFORE
    shape = slide.shapes.add_table(table.height, table.width, Inches(1), Inches(2), Inches(8), Inches(4)).table
    for (row, column), cell in table.cells.items():
        _merge_cells(shape, row, column, cell)
        shape.cell(row, column).text = cell.text
    slide.shapes.add_textbox(Inches(1), Inches(6.5), Inches(6), Inches(0.5)).text_frame.text = AFTER
    return _saved(presentation.save)


def xlsx(table: Table) -> bytes | None:
    """Return a workbook."""
    from openpyxl import Workbook
    from openpyxl.utils import get_column_letter

    if table.kind in {"next page", "nested", "layout"}:
        return None
    workbook = Workbook()
    sheet: Any = workbook.active
    sheet.append([BEFORE])
    parts = [(table, 1), *([(table.beside, table.width + 2)] if table.beside else [])]
    for part, left in parts:
        for (row, column), cell in part.cells.items():
            value: float | str | None = cell.value if cell.value is not None else _number(cell.text)
            target = sheet.cell(row + 3, column + left, value)
            target.number_format = cell.number_format or target.number_format
            if cell.row_span > 1 or cell.column_span > 1:
                end = {"end_row": row + 2 + cell.row_span, "end_column": column + left - 1 + cell.column_span}
                sheet.merge_cells(start_row=row + 3, start_column=column + left, **end)
        for row in part.hidden_rows:
            sheet.row_dimensions[row + 3].hidden = True
        for column in part.hidden_columns:
            sheet.column_dimensions[get_column_letter(column + left)].hidden = True
    sheet.cell(max(part.height for part, _ in parts) + 4, 1, AFTER)
    return _saved(workbook.save)


def _number(text: str) -> int | str | None:
    return int(text) if text.isdigit() else text or None


def odt(table: Table) -> bytes | None:
    """Return an OpenDocument text."""
    if table.beside or table.kind in {"hidden rows and columns", "next page"}:
        return None
    body = f"<text:p>{BEFORE}</text:p>{_open_table(table)}<text:p>{AFTER}</text:p>"
    return open_document("application/vnd.oasis.opendocument.text", f"<office:text>{body}</office:text>")


def _open_table(table: Table) -> str:
    covered, rows = table.covered(), ""
    columns = "".join(f"<table:table-column{_collapse(column in table.hidden_columns)}/>" for column in range(table.width))
    for row in range(table.height):
        rows += f"<table:table-row{_collapse(row in table.hidden_rows)}>"
        for column in range(table.width):
            origin = covered.get((row, column), (row, column))
            rows += _open_cell(table.cells.get(origin, Cell())) if origin == (row, column) else "<table:covered-table-cell/>"
        rows += "</table:table-row>"
    return f'<table:table table:name="T">{columns}{rows}</table:table>'


def _collapse(hidden: bool) -> str:
    return ' table:visibility="collapse"' if hidden else ""


def _open_cell(cell: Cell) -> str:
    value = _number(cell.text) if cell.value is None else cell.value
    typed = ' office:value-type="string"' if isinstance(value, str) else f' office:value-type="float" office:value="{value}"'
    spans = f' table:number-rows-spanned="{cell.row_span}" table:number-columns-spanned="{cell.column_span}"'
    inner = _open_table(cell.table) if cell.table else f"<text:p>{escape(cell.text)}</text:p>"
    return f"<table:table-cell{typed if cell.text else ''}{spans}>{inner}</table:table-cell>"


def ods(table: Table) -> bytes | None:
    """Return an OpenDocument spreadsheet."""
    if table.beside or table.kind in {"next page", "nested", "layout"}:
        return None
    body = f"<office:spreadsheet>{_open_table(table)}</office:spreadsheet>"
    return open_document("application/vnd.oasis.opendocument.spreadsheet", body)


def rtf(table: Table) -> bytes | None:
    """Return an RTF file."""
    if table.beside or table.kind in {"hidden rows and columns", "next page", "nested"}:
        return None
    covered, rows = table.covered(), ""
    for row in range(table.height):
        marks, texts, column = "", "", 0
        while column < table.width:
            origin = covered.get((row, column), (row, column))
            cell = table.cells.get(origin, Cell())
            merge = "" if cell.row_span == 1 else "\\clvmgf" if origin[0] == row else "\\clvmrg"
            column += cell.column_span
            marks += f"{merge}\\cellx{column * 1500}"
            texts += f"{cell.text if origin[0] == row else ''}\\cell "
        head = "\\trhdr" if row < table.header_rows else ""
        rows += f"\\trowd{head}{marks}\\pard\\intbl {texts}\\row\n"
    return f"{{\\rtf1\\ansi \\pard {BEFORE}\\par\n{rows}\\pard {AFTER}\\par}}".encode("cp1252")


def markdown(table: Table) -> bytes | None:
    """Return Markdown, whose tables have no spans."""
    spans = any(cell.row_span > 1 or cell.column_span > 1 or cell.table for cell in table.cells.values())
    if spans or table.header_rows != 1 or table.beside or table.kind in {"hidden rows and columns", "next page"}:
        return None
    rows = [[cell.text.replace("|", "\\|") for _, cell in _cells_of(table, row)] for row in range(table.height)]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([BEFORE, "", lines[0], "|---" * table.width + "|", *lines[1:], "", AFTER, ""]).encode()


def ruled_pdf(table: Table) -> bytes | None:
    """Return a PDF file whose table has lines between all cells."""
    return _pdf(table, ruled=True)


def plain_pdf(table: Table) -> bytes | None:
    """Return a PDF file whose table has no lines."""
    return None if table.kind == "layout" else _pdf(table, ruled=False)


def _pdf(table: Table, *, ruled: bool) -> bytes | None:
    if table.kind in {"hidden rows and columns", "nested"}:
        return None
    first = Page().shows(50, 740, BEFORE, size=10)
    pages, top = [first], 720.0
    end = table.break_before or table.height
    lowest = _draw_table(first, table, range(end), 50, top, ruled=ruled)
    if table.beside:
        left = 80 + sum(_widths(table))
        lowest = min(lowest, _draw_table(first, table.beside, range(table.beside.height), left, top, ruled=ruled))
    if end < table.height:
        pages.append(Page())
        lowest = _draw_table(pages[-1], table, range(end, table.height), 50, 740, ruled=ruled)
    pages[-1].shows(50, lowest - 30, AFTER, size=10)
    return pdf_of(*pages)


def _widths(table: Table) -> list[float]:
    """Return the widths of the columns in points: those of their longest text, at most 130."""
    widths = [40.0] * table.width
    for (_, column), cell in table.cells.items():
        if cell.column_span == 1:
            widths[column] = max(widths[column], min(len(cell.text) * _LETTER + 2 * _MARGIN, 140.0))
    return widths


def _draw_table(page: Page, table: Table, rows: range, left: float, top: float, *, ruled: bool) -> float:
    """Draw rows of a table and return the height of its lower edge."""
    widths, covered = _widths(table), table.covered()
    xs = [left + sum(widths[:column]) for column in range(table.width + 1)]
    lines = {at: _wrap(cell.text, sum(widths[at[1] : at[1] + cell.column_span])) for at, cell in table.cells.items()}
    ys = [top]
    for row in rows:
        count = max([len(text) for at, text in lines.items() if at[0] == row and table.cells[at].row_span == 1], default=1)
        ys.append(ys[-1] - max(count, 1) * _PITCH - 2 * _MARGIN)
    for number, row in enumerate(rows):
        for column in range(table.width):
            origin = covered.get((row, column))
            if origin == (row, column):
                page.column(xs[column] + _MARGIN, ys[number] - _MARGIN - _SIZE, lines[origin], size=_SIZE, pitch=_PITCH)
            if ruled and (number == 0 or origin is None or covered.get((row - 1, column)) != origin):
                page.draws(f"{xs[column]} {ys[number]} m {xs[column + 1]} {ys[number]} l S")
            if ruled and (column == 0 or origin is None or covered.get((row, column - 1)) != origin):
                page.draws(f"{xs[column]} {ys[number]} m {xs[column]} {ys[number + 1]} l S")
        if ruled:
            page.draws(f"{xs[-1]} {ys[number]} m {xs[-1]} {ys[number + 1]} l S")
    if ruled:
        page.draws(f"{xs[0]} {ys[-1]} m {xs[-1]} {ys[-1]} l S")
    return ys[-1]


def _wrap(text: str, width: float) -> list[str]:
    import textwrap

    return textwrap.wrap(text, max(int((width - 2 * _MARGIN) / _LETTER), 8))


def _cells_of(table: Table, row: int) -> list[tuple[int, Cell]]:
    return sorted((column, cell) for (at, column), cell in table.cells.items() if at == row)


def _saved(save: Callable[[Any], Any]) -> bytes:
    target = io.BytesIO()
    save(target)
    return target.getvalue()


WRITERS: Mapping[str, tuple[str, Callable[[Table], bytes | None]]] = {
    "HTML": (".html", html),
    "DOCX": (".docx", docx),
    "PPTX": (".pptx", pptx),
    "XLSX": (".xlsx", xlsx),
    "ODT": (".odt", odt),
    "ODS": (".ods", ods),
    "RTF": (".rtf", rtf),
    "PDF, lines": (".pdf", ruled_pdf),
    "PDF, no lines": (".pdf", plain_pdf),
    "Markdown": (".md", markdown),
}
