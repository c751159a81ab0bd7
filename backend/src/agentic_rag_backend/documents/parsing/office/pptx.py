"""PPTX: slide by slide, with the box of every shape."""

from __future__ import annotations

import io
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import pptx

from agentic_rag_backend.documents.parsing.base import ParsedDocument, Preview
from agentic_rag_backend.documents.parsing.building import TextBuilder
from agentic_rag_backend.documents.parsing.containers import ZipContainer
from agentic_rag_backend.documents.parsing.grid import TableGrid
from agentic_rag_backend.documents.parsing.office import package
from agentic_rag_backend.documents.parsing.office.drawings.drawing_parts import drawing_id, read_root, write_drawing
from agentic_rag_backend.documents.parsing.office.pptx_shapes import PlacedShape, flatten_text, shapes_of
from agentic_rag_backend.errors import ResourceLimit

MAX_SLIDES = 5_000

_MAIN = "ppt/presentation.xml"


class PptxParser:
    """Parser of presentations. The page of a region is the number of the slide. Hidden slides are left out, but counted."""

    def check(self, head: bytes, *, is_whole: bool) -> Preview:
        """Open the package and read its title."""
        return package.check_package(head, _MAIN, is_whole=is_whole)

    def parse(self, content: bytes) -> ParsedDocument:
        """Return the slides one after the other, each with its notes."""
        container = ZipContainer(content)
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
            builder.omissions.add("hidden slides", f"slide {number}")
        else:
            _add_slide(builder, slide, number, float(presentation.slide_height or 0))
    return hidden


def _add_slide(builder: TextBuilder, slide: Any, page: int, height: float) -> None:
    flatten_text(slide)
    shapes = shapes_of(slide, height)
    notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    spoken = notes.text.strip() if notes is not None else ""
    contents = [(shape, _read_table(shape), _read_text(shape), _find_drawing(shape)) for shape in shapes]
    if not spoken and not any(table or text or drawing for _, table, text, drawing in contents):
        return
    if not any(shape.is_title and text for shape, _, text, _ in contents):
        builder.add_heading(1, f"Slide {page}", page=page)
    for shape, table, text, drawing in contents:
        box = shape.make_box(height)
        if table is not None:
            table.write_table(builder, _locate_rows(shape, page, height))
        elif drawing is not None:
            relationship = shape.shape.part.rels.get(drawing)
            root = None if relationship is None or relationship.is_external else read_root(relationship.target_part)
            write_drawing(builder, root, f"slide {page}", page=page, box=box)
        elif shape.is_title:
            builder.add_heading(1, text, page=page, box=box)
        else:
            builder.add_paragraph(text, page=page, box=box)
    if spoken:
        builder.add_paragraph(f"Notes: {spoken}", page=page)


def _read_text(shape: PlacedShape) -> str:
    if not shape.shape.has_text_frame:
        return ""
    # A vertical tab is a line break within a paragraph.
    lines = [paragraph.text.replace("\v", "\n").strip() for paragraph in shape.shape.text_frame.paragraphs]
    lines = [line for line in lines if line]
    return "\n".join(f"- {line}" for line in lines) if shape.is_list and len(lines) > 1 else "\n".join(lines)


def _read_table(placed_shape: PlacedShape) -> TableGrid | None:
    """Return the cells of a table; None if the shape is none."""
    shape = placed_shape.shape
    if not shape.has_table:
        return None
    grid = TableGrid()
    for number, row in enumerate(shape.table.rows):
        for column, cell in enumerate(row.cells):
            text = "" if cell.is_spanned else cell.text.replace("\v", "\n")
            grid.add_cell(number, column, text, row_span=cell.span_height, column_span=cell.span_width)
    return grid


def _find_drawing(shape: PlacedShape) -> str | None:
    """Return the id of the relationship with the chart or diagram in a frame; None if there is none."""
    return next(filter(None, map(drawing_id, shape.shape._element.iterfind("{*}graphic/{*}graphicData/*"))), None)


def _locate_rows(shape: PlacedShape, page: int, height: float) -> list[Mapping[str, Any]]:
    """Return the place of each row of a table."""
    heights = [float(row.height or 0) for row in shape.shape.table.rows]
    share = shape.height / (sum(heights) or 1)
    places: list[Mapping[str, Any]] = []
    for row_height, above in zip(heights, accumulate(heights, initial=0.0), strict=False):
        top = share * above
        places.append({"page": page, "box": shape.make_box(height, top=top, height=share * row_height)})
    return places
