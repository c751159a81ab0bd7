"""PPTX: slide by slide, with the box of every shape."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

import pptx

from agentic_rag_backend.errors import ResourceLimit
from agentic_rag_backend.ingestion.parsing.base import ParsedDocument, Preview
from agentic_rag_backend.ingestion.parsing.building import TextBuilder
from agentic_rag_backend.ingestion.parsing.containers import Container
from agentic_rag_backend.ingestion.parsing.office import package
from agentic_rag_backend.ingestion.parsing.office.pptx_shapes import Placed, shapes_of
from agentic_rag_backend.ingestion.parsing.office.values import format_value

MAX_SLIDES = 5_000
MAX_CHART_VALUES = 10_000

_MAIN = "ppt/presentation.xml"


class PptxParser:
    """Parser of presentations. The page of a region is the number of the slide. Hidden slides are left out, but counted."""

    def check(self, head: bytes, *, whole: bool) -> Preview:
        """Open the package and read its title."""
        return package.check_package(head, _MAIN, whole=whole)

    def parse(self, content: bytes) -> ParsedDocument:
        """Return the slides one after the other, each with its notes."""
        container = Container(content)
        package.require_main_part(container, _MAIN)
        title, metadata = package.core_properties(container)
        copy = package.copy_package(container)
        builder = TextBuilder(len(copy))
        with package.report_damage("presentation"):
            hidden = _add_slides(builder, pptx.Presentation(io.BytesIO(copy)))
        return builder.build(title=title, metadata={**metadata, **({"hidden_slides": hidden} if hidden else {})})

    def restore(self, text: str) -> ParsedDocument:
        """Return ``text``; which lines are titles is not known."""
        return ParsedDocument(text=text)


def _add_slides(builder: TextBuilder, presentation: Any) -> list[int]:
    """Add the visible slides, and return the numbers of the hidden ones."""
    if len(presentation.slides) > MAX_SLIDES:
        raise ResourceLimit(f"the presentation has {len(presentation.slides)} slides; the limit is {MAX_SLIDES}")
    hidden = []
    for number, slide in enumerate(presentation.slides, start=1):
        if slide._element.get("show") in {"0", "false"}:
            hidden.append(number)
        else:
            _add_slide(builder, slide, number, float(presentation.slide_height or 0))
    return hidden


def _add_slide(builder: TextBuilder, slide: Any, page: int, height: float) -> None:
    shapes = shapes_of(slide, height)
    notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    spoken = notes.text.strip() if notes is not None else ""
    contents = [(placed, list(_read_rows(placed)), _read_text(placed)) for placed in shapes]
    if not spoken and not any(rows or text for _, rows, text in contents):
        return
    if not any(placed.is_title and text for placed, _, text in contents):
        builder.add_heading(1, f"Slide {page}", page=page)
    for placed, rows, text in contents:
        box = placed.make_box(height)
        if rows:
            builder.add_table(rows, _locate_rows(placed, rows, page, height))
        elif placed.is_title:
            builder.add_heading(1, text, page=page, box=box)
        else:
            builder.add_paragraph(text, page=page, box=box)
    if spoken:
        builder.add_paragraph(f"Notes: {spoken}", page=page)


def _read_text(placed: Placed) -> str:
    if not placed.shape.has_text_frame:
        return ""
    # A vertical tab is a line break within a paragraph.
    lines = [paragraph.text.replace("\v", "\n").strip() for paragraph in placed.shape.text_frame.paragraphs]
    lines = [line for line in lines if line]
    return "\n".join(f"- {line}" for line in lines) if placed.is_list and len(lines) > 1 else "\n".join(lines)


def _read_rows(placed: Placed) -> Iterator[list[str]]:
    """Yield the rows of a table or of a chart's data."""
    shape = placed.shape
    if shape.has_table:
        for row in shape.table.rows:
            yield ["" if cell.is_spanned else cell.text.replace("\v", "\n") for cell in row.cells]
    elif shape.has_chart:
        yield from _chart_rows(shape.chart)


def _chart_rows(chart: Any) -> Iterator[list[str]]:
    title = chart.chart_title.text_frame.text if chart.has_title and chart.chart_title.has_text_frame else ""
    for plot in chart.plots:
        series = [(each.name, list(each.values)[:MAX_CHART_VALUES]) for each in plot.series]
        categories = [str(each) for each in plot.categories][:MAX_CHART_VALUES]
        yield [title, *(name for name, _ in series)]
        for index in range(max([len(categories), *(len(values) for _, values in series)])):
            numbers = [values[index] if index < len(values) else None for _, values in series]
            name = categories[index] if index < len(categories) else ""
            yield [name, *("" if number is None else format_value(number) for number in numbers)]


def _locate_rows(placed: Placed, rows: list[list[str]], page: int, height: float) -> list[Mapping[str, Any]]:
    """Return the place of each row of a table. The rows of a chart all stand in the whole chart."""
    if not placed.shape.has_table:
        return [{"page": page, "box": placed.make_box(height)}] * len(rows)
    heights = [float(row.height or 0) for row in placed.shape.table.rows]
    share = placed.height / (sum(heights) or 1)
    places: list[Mapping[str, Any]] = []
    for each, above in zip(heights, accumulate(heights, initial=0.0), strict=False):
        top = share * above
        places.append({"page": page, "box": placed.make_box(height, top=top, height=share * each)})
    return places
