"""ODP: the slides of an OpenDocument presentation, with the box of every shape."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lxml import etree

from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.documents.parsing.building import TextBuilder
from agentic_rag_backend.documents.parsing.containers import ZipContainer
from agentic_rag_backend.documents.parsing.office import package
from agentic_rag_backend.documents.parsing.office.opendocument import (
    LEFT_OUT,
    STYLES,
    OpenDocumentParser,
    cell_text,
    list_items,
    normalise_body,
    open_body,
    open_container,
    read_properties,
    text_of,
)
from agentic_rag_backend.documents.parsing.office.opendocument_tables import read_grid
from agentic_rag_backend.documents.parsing.office.pptx import MAX_SLIDES
from agentic_rag_backend.documents.parsing.office.pptx_shapes import EMU_PER_POINT, MAX_SHAPES, PlacedShape, arrange_shapes
from agentic_rag_backend.documents.parsing.office.walking import local_name, walk_elements
from agentic_rag_backend.errors import ResourceLimit, UnreadableDocument

_DRAW = "{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}"
_PRESENTATION = "{urn:oasis:names:tc:opendocument:xmlns:presentation:1.0}"
_STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
_SVG = "{urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0}"
_FORMAT = "{urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0}"
_LENGTH = re.compile(r"(-?\d{1,6}(?:\.\d{1,9})?)(cm|mm|in|pt|pc)")
_POINTS: Mapping[str, float] = {"cm": 72 / 2.54, "mm": 72 / 25.4, "in": 72.0, "pt": 1.0, "pc": 12.0}
_RUNNING = frozenset({"header", "footer", "date-time", "page-number", "page"})
_TITLES = frozenset({"title"})


class OdpParser(OpenDocumentParser):
    """Parser of OpenDocument presentations. The page of a region is the number of the slide. Hidden slides are left out."""

    def parse(self, content: bytes) -> ParsedDocument:
        """Return the slides one after the other, each with its notes."""
        container = open_container(content)
        title, metadata = read_properties(container)
        root, body = open_body(container, "presentation")
        builder = TextBuilder(container.unzipped_bytes)
        with package.report_damage("OpenDocument presentation"):
            normalise_body(root, body, builder.omissions)
            hidden = _add_slides(builder, body, _read_hidden_styles(root), _read_heights(container))
        return builder.build(title=title, metadata={**metadata, **({"hidden_slides": hidden} if hidden else {})})


def _read_hidden_styles(root: etree._Element) -> set[str | None]:
    properties = root.iter(_STYLE + "drawing-page-properties")
    return {
        element.getparent().get(_STYLE + "name")
        for element in properties
        if element.get(_PRESENTATION + "visibility") == "hidden"
    }


def _read_heights(container: ZipContainer) -> dict[str | None, float]:
    """Return the height of the slides of each master slide, in points."""
    try:
        root = container.read_tree(STYLES)
    except UnreadableDocument:
        return {}
    layouts = {
        layout.get(_STYLE + "name"): _read_length(properties, _FORMAT + "page-height")
        for layout in root.iter(_STYLE + "page-layout")
        for properties in layout.iterfind(_STYLE + "page-layout-properties")
    }
    masters = root.iter(_STYLE + "master-page")
    return {master.get(_STYLE + "name"): layouts.get(master.get(_STYLE + "page-layout-name"), 0.0) for master in masters}


def _add_slides(
    builder: TextBuilder, body: etree._Element, hidden_styles: set[str | None], heights: Mapping[str | None, float]
) -> list[int]:
    """Add the visible slides, and return the numbers of the hidden ones."""
    slides = [element for element in body if local_name(element) == "page"]
    if len(slides) > MAX_SLIDES:
        raise ResourceLimit(f"the presentation has {len(slides)} slides; the limit is {MAX_SLIDES}")
    hidden: list[int] = []
    for number, slide in enumerate(slides, start=1):
        if slide.get(_DRAW + "style-name") in hidden_styles:
            hidden.append(number)
            builder.omissions.add("hidden slides", f"slide {number}")
        else:
            _Slide(builder, number, heights.get(slide.get(_DRAW + "master-page-name"), 0.0) * EMU_PER_POINT).add_slide(slide)
    return hidden


@dataclass(frozen=True, slots=True)
class _Slide:
    builder: TextBuilder
    number: int
    height: float

    def add_slide(self, slide: etree._Element) -> None:
        """Add the title, the shapes from top to bottom and the notes of a slide."""
        shapes = [shape for shape in _walk_shapes(slide) if shape.shape.get(_PRESENTATION + "class") not in _RUNNING]
        titles = [shape for shape in shapes if shape.shape.get(_PRESENTATION + "class") in _TITLES and _read_text(shape.shape)]
        title_numbers = {title.number for title in titles}
        contents = [shape for shape in shapes if shape.number not in title_numbers and _has_content(shape.shape)]
        notes = slide.find(_PRESENTATION + "notes")
        spoken = "" if notes is None else "\n".join(filter(None, (_read_text(shape.shape) for shape in _walk_shapes(notes))))
        if not (titles or contents or spoken):
            return
        if not titles:
            self.builder.add_heading(1, f"Slide {self.number}", page=self.number)
        for title in titles:
            self.builder.add_heading(1, _read_text(title.shape), **self._locate_shape(title))
        for shape in arrange_shapes(contents, self.height):
            self._add_shape(shape)
        if spoken:
            self.builder.add_paragraph(f"Notes: {spoken}", page=self.number)

    def _add_shape(self, shape: PlacedShape) -> None:
        where = self._locate_shape(shape)
        self.builder.add_paragraph(_read_text(shape.shape), **where)
        for element in walk_elements(shape.shape, without=LEFT_OUT, leaf_names={"table", "text-box"}):
            if local_name(element) == "table":
                grid, header_rows = read_grid(element, lambda cell, _: cell_text(cell), without=LEFT_OUT)
                grid.write_table(self.builder, [where] * grid.row_count, header_rows=header_rows)
            elif local_name(element) in {"object", "object-ole"}:
                self.builder.omissions.add("embedded objects", f"slide {self.number}")

    def _locate_shape(self, shape: PlacedShape) -> dict[str, Any]:
        return {"page": self.number, **({"box": shape.make_box(self.height)} if self.height else {})}


def _walk_shapes(slide: etree._Element) -> Iterator[PlacedShape]:
    """Yield the shapes of a slide, and those within groups."""
    waiting = list(reversed(slide))
    number = 0
    while waiting:
        element = waiting.pop()
        number += 1
        if number > MAX_SHAPES:
            raise ResourceLimit(f"a slide has more than {MAX_SHAPES} shapes, which is the limit")
        if local_name(element) in {"g", "a"}:
            waiting.extend(reversed(element))
        elif local_name(element) not in {"notes", "forms", "animations", ""} and not _is_placeholder(element):
            x, y, width, height = (EMU_PER_POINT * _read_length(element, _SVG + name) for name in ("x", "y", "width", "height"))
            yield PlacedShape(element, x, y, width, height, number)


def _is_placeholder(element: etree._Element) -> bool:
    return str(element.get(_PRESENTATION + "placeholder")) == "true"


def _has_content(shape: etree._Element) -> bool:
    return bool(_read_text(shape)) or any(local_name(element) in {"table", "object", "object-ole"} for element in shape.iter())


def _read_text(shape: etree._Element) -> str:
    """Return the lines of a shape. Items of lists have marks. Text in tables is no part of it."""
    lines: list[str] = []
    for block in walk_elements(shape, without={*LEFT_OUT, "table"}, leaf_names={"p", "h", "list"}):
        if local_name(block) == "list":
            lines += [f"- {item}" for item in list_items(block)]
        elif local_name(block) in {"p", "h"}:
            lines.append(text_of(block).strip())
    return "\n".join(filter(None, lines))


def _read_length(element: etree._Element, name: str) -> float:
    """Return a length in points; 0 if there is none."""
    length = _LENGTH.fullmatch(element.get(name, ""))
    return float(length[1]) * _POINTS[length[2]] if length else 0.0
