"""Running headers, running footers and page numbers, which are recognised across pages and left out of the text."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from agentic_rag_backend.ingestion.parsing.pdf.page_layout import Column, PageLayout
from agentic_rag_backend.ingestion.parsing.pdf.tables.ruled_tables import Table
from agentic_rag_backend.ingestion.parsing.pdf.text_lines import TextLine

ZONE_ROWS = 3
"""Rows at the top and at the bottom of a page that can be furniture."""
_LEAST_PAGES = 3
_MOVES = 6.0
"""Points by which furniture may move between pages."""
_NUMBER = re.compile(r"\d+")
_PAGE_NUMBER = re.compile(
    r"^[\s\-–—|\[(.]*(?:(?:page|p\.?|seite|página|pagina|стр\.?)\s*)?(?P<page>\d{1,5}|[ivxlcdm]{1,8}|[A-Z]-\d{1,4})"
    r"(?:\s*(?:of|/|von|de|di|из)\s*\d{1,5})?[\s\-–—|\]).]*$",
    re.IGNORECASE,
)


def without_furniture(pages: Sequence[PageLayout]) -> None:
    """Remove furniture from ``pages``. A document of nothing else keeps its text."""
    marked = set(_find_repetitions(pages)) | set(_page_numbers(pages))
    marked |= set(_with_page_number(pages, marked))
    if not any(isinstance(column, Table) for page in pages for column in page.columns) and all(
        id(line) in marked for page in pages for line in page.lines
    ):
        return
    for page in pages:
        columns: list[Column] = []
        for column in page.columns:
            content = column if isinstance(column, Table) else [line for line in column if id(line) not in marked]
            columns += [content] if content else []
        page.columns = columns


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


def _find_repetitions(pages: Sequence[PageLayout]) -> Iterator[int]:
    """Yield the ids of lines that stand at the same place on several pages with the same words, numbers ignored."""
    least = min(_LEAST_PAGES, len(pages))
    if least < 2:
        return
    lines_by_text: dict[tuple[str, str], list[tuple[float, int, int, TextLine]]] = defaultdict(list)
    for page in pages:
        for zone, row, line in _list_edge_lines(page):
            if row == 0 or least >= _LEAST_PAGES:
                lines_by_text[zone, _NUMBER.sub("#", line.whole.casefold())].append((line.box[1], page.number, row, line))
    for (_, words), occurrences in lines_by_text.items():
        # Numbers alone are page numbers, or a table that continues.
        if any(character.isalpha() for character in words):
            yield from _same_place(occurrences, least)


def _same_place(occurrences: list[tuple[float, int, int, TextLine]], least: int) -> Iterator[int]:
    occurrences.sort(key=lambda occurrence: occurrence[:2])
    group: list[tuple[float, int, int, TextLine]] = []
    for occurrence in [*occurrences, None]:
        if occurrence is not None and (not group or occurrence[0] - group[-1][0] <= _MOVES):
            group.append(occurrence)
            continue
        if len({page for _, page, _, _ in group}) >= least:
            yield from (id(line) for *_, line in group)
        group = [occurrence] if occurrence is not None else []


def _page_numbers(pages: Sequence[PageLayout]) -> Iterable[int]:
    """Return the ids of lines that only number their page: as its label says, or counting with the pages."""
    offsets: dict[tuple[str, int], list[int]] = defaultdict(list)
    marked: list[int] = []
    for page in pages if len(pages) > 1 else ():
        for zone, _, line in _list_edge_lines(page):
            number = _PAGE_NUMBER.match(line.text)
            if number is None or line.hyphen:
                continue
            value = number["page"].casefold()
            if value in {str(page.number), (page.label or "").casefold()}:
                marked.append(id(line))
            elif value.isdigit():
                offsets[zone, int(value) - page.number].append(id(line))
    for ids in offsets.values():
        if len(ids) >= _LEAST_PAGES:
            marked += ids
    return marked


def _with_page_number(pages: Sequence[PageLayout], marked: Collection[int]) -> Iterator[int]:
    """Yield the ids of outermost lines that stand where furniture does on other pages and begin or end with the page's number.

    The running header of a short chapter is not repeated often enough to be recognised by itself.
    """
    edge_lines = [(page, zone, line) for page in pages for zone, row, line in _list_edge_lines(page) if row == 0]
    places = {(zone, round(line.box[1])) for _, zone, line in edge_lines if id(line) in marked}
    for page, zone, line in edge_lines:
        words = line.text.casefold().split()
        numbered = {words[0], words[-1]} & {str(page.number), (page.label or "").casefold()}
        if numbered and (zone, round(line.box[1])) in places:
            yield id(line)
