"""Running heads and page numbers, which are recognised across pages and left out of the text.

A running head has the same words at the same place on several pages, and such heads stand there on most pages. A line that
differs in a number stays: it may be the number of an invoice. Only the number of the page may differ.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from agentic_rag_backend.documents.parsing.omissions import Omissions
from agentic_rag_backend.documents.parsing.pdf.page_layout import PageLayout
from agentic_rag_backend.documents.parsing.pdf.tables.ruled_tables import Table
from agentic_rag_backend.documents.parsing.pdf.text_lines import TextLine

ZONE_ROWS = 3
"""Rows at the top and at the bottom of a page that can be furniture."""
MAX_HEADS = 200
"""Different running heads whose first line is kept."""
_LEAST_PAGES = 3
_MOVES = 6.0
"""Points by which furniture may move between pages."""
_PAGE = r"(?:page|p\.?|seite|página|pagina|стр\.?)"
_TOTAL = r"(?:\s*(?:of|/|von|de|di|из)\s*\d{1,5})?"
_PAGE_NUMBER = re.compile(
    rf"^[\s\-–—|\[(.]*(?:{_PAGE}\s*)?(?P<page>\d{{1,5}}|[ivxlcdm]{{1,8}}|[A-Z]-\d{{1,4}}){_TOTAL}[\s\-–—|\]).]*$", re.IGNORECASE
)
_NAMED_PAGE = re.compile(rf"(?<!\w){_PAGE}\s*(?P<page>\d{{1,5}}){_TOTAL}$", re.IGNORECASE)

_Occurrence = tuple[float, int, TextLine]
"""The bottom of a line, the number of its page, and the line."""


def without_furniture(pages: Sequence[PageLayout], omissions: Omissions) -> list[TextLine]:
    """Remove furniture from ``pages`` and count it. A page of nothing else keeps its text.

    Returns:
        the first line of each running head whose words are not elsewhere in the text. One at the top of the first page stays.
    """
    heads = {id(line): words for words, line in _find_heads(pages)}
    numbers = {id(line) for line in _page_numbers(pages)} - heads.keys()
    first_lines: dict[str, TextLine] = {}
    for page in pages:
        lines = page.lines
        body = [line for line in lines if id(line) not in heads and id(line) not in numbers]
        if not body and not any(isinstance(column, Table) for column in page.columns):
            continue
        for line in lines:
            if id(line) in heads and heads[id(line)] not in first_lines and len(first_lines) < MAX_HEADS:
                first_lines[heads[id(line)]] = line
                if page is pages[0] and all(line.box[1] >= body_line.box[1] for body_line in body):
                    body.append(line)
        body_ids = set(map(id, body))
        omissions.add("running heads", f"page {page.number}", count=sum(id(line) in heads for line in lines))
        omissions.add("page numbers", f"page {page.number}", count=sum(id(line) in numbers for line in lines))
        kept_columns = (
            column if isinstance(column, Table) else [line for line in column if id(line) in body_ids] for column in page.columns
        )
        page.columns = [column for column in kept_columns if column]
    text = "\n".join(line.whole.casefold() for page in pages for line in page.lines)
    return [line for words, line in first_lines.items() if words not in text]


def _list_edge_lines(page: PageLayout) -> Iterator[tuple[str, int, TextLine]]:
    """Yield the lines at the edges of a page: "top" or "bottom", their row from the edge, and the line."""
    lines = page.lines
    lines = [line for line in lines if line.turn == lines[0].turn]
    for zone, ordered in (
        ("top", sorted(lines, key=lambda line: -line.box[3])),
        ("bottom", sorted(lines, key=lambda line: line.box[1])),
    ):
        row, edge = 0, None
        for line in ordered:
            if edge is not None and abs(line.box[1] - edge) > 0.6 * line.size:
                row += 1
            if row == ZONE_ROWS:
                break
            edge = line.box[1]
            yield zone, row, line


def _find_heads(pages: Sequence[PageLayout]) -> Iterator[tuple[str, TextLine]]:
    """Yield the words and the line of each running head."""
    least = min(_LEAST_PAGES, len(pages))
    if least < 2:
        return
    occurrences: dict[tuple[str, str, str], list[_Occurrence]] = defaultdict(list)
    for page in pages:
        for zone, row, line in _list_edge_lines(page):
            if row == 0 or least >= _LEAST_PAGES:
                words, number = _split_page_number(line, page)
                # Numbers alone are page numbers, or a table that continues.
                if any(map(str.isalpha, words)):
                    occurrences[zone, words, number].append((line.box[1], page.number, line))
    repetitions: dict[str, list[tuple[str, list[_Occurrence]]]] = defaultdict(list)
    for (zone, words, _), lines in occurrences.items():
        repetitions[zone] += [(words, group) for group in _group_places(lines) if _count_pages(group) >= least]
    for groups in repetitions.values():
        words_by_line = {id(line): words for words, group in groups for *_, line in group}
        for slot in _group_places(chain.from_iterable(group for _, group in groups)):
            if 2 * _count_pages(slot) >= len(pages):
                yield from ((words_by_line[id(line)], line) for *_, line in slot)


def _split_page_number(line: TextLine, page: PageLayout) -> tuple[str, str]:
    """Return the words of a line without the number of its page, and by how much this number differs from the page's place.

    The number stands apart at an end of the line, or follows a word for "page".
    """
    cells = [text for *_, text in line.cells]
    for number_cell, other_cells in ((cells[0], cells[1:]), (cells[-1], cells[:-1])) if cells else ():
        match = _PAGE_NUMBER.match(number_cell)
        if match is not None and (offset := _offset_of(match["page"], page)):
            return " ".join(other_cells).casefold(), offset
    match = _NAMED_PAGE.search(line.text)
    if match is not None and (offset := _offset_of(match["page"], page)):
        return line.text[: match.start()].strip().casefold(), offset
    return line.whole.casefold(), ""


def _offset_of(value: str, page: PageLayout) -> str:
    """Return the distance of a page's number from its place in the file; "label" if it is its name; empty if it is no number."""
    if value.casefold() == (page.label or "").casefold():
        return "label"
    return str(int(value) - page.number) if value.isdecimal() else ""


def _group_places(occurrences: Iterable[_Occurrence]) -> Iterator[list[_Occurrence]]:
    """Yield the occurrences in groups of one height."""
    group: list[_Occurrence] = []
    for occurrence in sorted(occurrences, key=lambda occurrence: occurrence[:2]):
        if group and occurrence[0] - group[-1][0] > _MOVES:
            yield group
            group = []
        group.append(occurrence)
    if group:
        yield group


def _count_pages(group: Iterable[_Occurrence]) -> int:
    return len({page for _, page, _ in group})


def _page_numbers(pages: Sequence[PageLayout]) -> Iterator[TextLine]:
    """Yield the lines that only number their page: as its label says, or counting with the pages."""
    numbers: dict[tuple[str, str], list[_Occurrence]] = defaultdict(list)
    for page in pages:
        for zone, _, line in _list_edge_lines(page):
            match = _PAGE_NUMBER.match(line.text)
            if match is not None and not line.hyphen and (offset := _offset_of(match["page"], page)):
                numbers[zone, offset].append((line.box[1], page.number, line))
    for (_, offset), occurrences in numbers.items():
        for group in _group_places(occurrences):
            if _count_pages(group) >= (2 if offset in {"label", "0"} else _LEAST_PAGES):
                yield from (line for *_, line in group)
