"""Shapes of a slide with their boxes, in reading order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from lxml import etree
from pptx.enum.shapes import PP_PLACEHOLDER

from agentic_rag_backend.documents.parsing.inline_scripts import BASE_CHARACTERS, SUBSCRIPT, SUPERSCRIPT, write_script
from agentic_rag_backend.documents.parsing.office.walking import local_name, walk_elements
from agentic_rag_backend.documents.parsing.office.word.formulas import write_formula
from agentic_rag_backend.domain.location import Box
from agentic_rag_backend.errors import ResourceLimit

MAX_SHAPES = 20_000
EMU_PER_POINT = 12_700
BAND_SHARE = 0.04
"""Shapes whose tops differ by less than this share of the slide's height stand side by side."""

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_RUNNING = frozenset({PP_PLACEHOLDER.DATE, PP_PLACEHOLDER.FOOTER, PP_PLACEHOLDER.HEADER, PP_PLACEHOLDER.SLIDE_NUMBER})
_TITLES = frozenset({PP_PLACEHOLDER.TITLE, PP_PLACEHOLDER.CENTER_TITLE, PP_PLACEHOLDER.VERTICAL_TITLE})
_LISTS = frozenset({PP_PLACEHOLDER.BODY, PP_PLACEHOLDER.OBJECT, PP_PLACEHOLDER.VERTICAL_BODY, PP_PLACEHOLDER.VERTICAL_OBJECT})


@dataclass(frozen=True, slots=True)
class Scale:
    """The map from the coordinates of a group's children to those of the slide: factor and offset of both axes."""

    factor_x: float = 1.0
    offset_x: float = 0.0
    factor_y: float = 1.0
    offset_y: float = 0.0

    def scale_group(self, group: Any) -> Scale:
        """Return the map for the children of ``group``."""
        frame = group._element.grpSpPr.find("{*}xfrm")
        if frame is None or None in {frame.find("{*}off"), frame.find("{*}ext"), frame.find("{*}chOff"), frame.find("{*}chExt")}:
            return self
        (x, y), (child_x, child_y) = _read_pair(frame, "off", "x", "y"), _read_pair(frame, "chOff", "x", "y")
        (width, height), (child_width, child_height) = (
            _read_pair(frame, "ext", "cx", "cy"),
            _read_pair(frame, "chExt", "cx", "cy"),
        )
        by_x, by_y = width / (child_width or width or 1), height / (child_height or height or 1)
        return Scale(
            self.factor_x * by_x,
            self.offset_x + self.factor_x * (x - child_x * by_x),
            self.factor_y * by_y,
            self.offset_y + self.factor_y * (y - child_y * by_y),
        )


@dataclass(frozen=True, slots=True)
class PlacedShape:
    """A shape and its place in EMU from the upper left corner of the slide. ``number`` is its place in the file."""

    shape: Any
    left: float
    top: float
    width: float
    height: float
    number: int

    @property
    def kind(self) -> Any:
        """The type of its placeholder; None if it is none."""
        return self.shape.placeholder_format.type if self.shape.is_placeholder else None

    @property
    def is_title(self) -> bool:
        """Whether it is the title of its slide."""
        return self.kind in _TITLES

    @property
    def is_list(self) -> bool:
        """Whether its paragraphs are items of a list."""
        return self.kind in _LISTS

    def make_box(self, slide_height: float, *, top: float = 0.0, height: float | None = None) -> Box:
        """Return the box of the shape, or of the part of it from ``top`` that is ``height`` high."""
        upper = slide_height - self.top - top
        lower = upper - (self.height if height is None else height)
        edges = (self.left, lower, self.left + self.width, upper)
        x_min, bottom, right, above = (round(edge / EMU_PER_POINT, 1) for edge in edges)
        return x_min, bottom, right, above


def flatten_text(slide: Any) -> None:
    """Change a slide: runs have superscripts, subscripts and formulas as text on the line, and newer shapes stand by themselves.

    Shapes that older programs do not know, such as texts with formulas, stand beside a picture of them in ``AlternateContent``.
    """
    for alternatives in list(slide._element.iter("{*}AlternateContent")):
        parent, choice = alternatives.getparent(), alternatives.find("{*}Choice")
        if parent is not None and choice is not None and local_name(parent) in {"spTree", "grpSp"}:
            for shape in choice:
                alternatives.addprevious(shape)
            parent.remove(alternatives)
    for paragraph in slide._element.iter(_A + "p"):
        runs: list[tuple[str, etree._Element]] = []
        for child in list(paragraph):
            if child.tag == _A + "r" and (text := child.find(_A + "t")) is not None:
                properties = child.find(_A + "rPr")
                runs.append((_read_script("" if properties is None else properties.get("baseline", "")), text))
            elif formulas := [
                element for element in walk_elements(child, without={"Fallback"}) if local_name(element) == "oMath"
            ]:
                run = etree.SubElement(paragraph, _A + "r")
                text = etree.SubElement(run, _A + "t")
                text.text = "; ".join(map(write_formula, formulas))
                paragraph.replace(child, run)
                runs.append(("", text))
        if any(script for script, _ in runs):
            _join_runs(runs)


def _join_runs(runs: list[tuple[str, etree._Element]]) -> None:
    """Write superscripts and subscripts of a paragraph into the first run of each."""
    base = ""
    for script, group in groupby(runs, key=lambda run: run[0]):
        texts = [text for _, text in group]
        joined = "".join(text.text or "" for text in texts)
        for text in texts if script else ():
            text.text = ""
        if script:
            joined = texts[0].text = write_script(script, base, joined)
        base = (base + joined)[-BASE_CHARACTERS:]


def _read_script(baseline: str) -> str:
    """Return the script of a run by the distance from its line: raised by a positive one."""
    if baseline.strip("-0%. ") == "":
        return ""
    return SUBSCRIPT if baseline.startswith("-") else SUPERSCRIPT


def shapes_of(slide: Any, slide_height: float) -> list[PlacedShape]:
    """Return the shapes of a slide: its title, then from top to bottom, side by side from left to right."""
    content_shapes = [shape for shape in _walk_shapes(slide.shapes, Scale()) if shape.kind not in _RUNNING]
    titles = [shape for shape in content_shapes if shape.is_title]
    return titles + arrange_shapes([shape for shape in content_shapes if not shape.is_title], slide_height)


def arrange_shapes(shapes: Iterable[PlacedShape], slide_height: float) -> list[PlacedShape]:
    """Return shapes from top to bottom, side by side from left to right. Heights are in EMU."""
    bands: list[list[PlacedShape]] = []
    for shape in sorted(shapes, key=lambda shape: (shape.top, shape.left, shape.number)):
        if bands and shape.top - bands[-1][0].top < BAND_SHARE * slide_height:
            bands[-1].append(shape)
        else:
            bands.append([shape])
    return [shape for band in bands for shape in sorted(band, key=lambda shape: (shape.left, shape.top, shape.number))]


def _walk_shapes(shapes: Any, scale: Scale) -> Iterator[PlacedShape]:
    waiting = [(shape, scale) for shape in shapes][::-1]
    number = 0
    while waiting:
        shape, current = waiting.pop()
        number += 1
        if number > MAX_SHAPES:
            raise ResourceLimit(f"a slide has more than {MAX_SHAPES} shapes, which is the limit")
        if _is_hidden(shape):
            continue
        if hasattr(shape, "shapes"):
            waiting.extend((child, current.scale_group(shape)) for child in list(shape.shapes)[::-1])
        else:
            yield PlacedShape(
                shape,
                current.offset_x + current.factor_x * (shape.left or 0),
                current.offset_y + current.factor_y * (shape.top or 0),
                current.factor_x * (shape.width or 0),
                current.factor_y * (shape.height or 0),
                number,
            )


def _is_hidden(shape: Any) -> bool:
    properties = shape._element.find("./{*}*/{*}cNvPr")
    return properties is not None and properties.get("hidden") in {"1", "true"}


def _read_pair(frame: Any, name: str, x_name: str, y_name: str) -> tuple[int, int]:
    element = frame.find(f"{{*}}{name}")
    return int(element.get(x_name, "0")), int(element.get(y_name, "0"))
