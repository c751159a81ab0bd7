"""The place of a passage in the text of its document, and in the file from which the text was made."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, astuple, dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

from agentic_rag_backend.language.entries.base import MAX_HEADER_CHARACTERS

MAX_FUNCTIONS = 100
"""Definitions of source code that the location of a passage names."""
MAX_REGIONS = 40_000
"""Regions of a passage. A passage has at most 32,768 characters, and a region at least one."""
MAX_HEADINGS = 100
MAX_STATEMENTS = 100
"""Statements of a passage. Chunking writes far fewer."""
Box = tuple[float, float, float, float]
"""Left, bottom, right and top in points (1/72 inch). The origin is the lower left corner of the page before it is rotated."""


@dataclass(frozen=True, slots=True)
class Region:
    """The place in the file of the characters [``start_char``, ``end_char``) of its text.

    A region is a line of a page, a shape of a slide, or a row of a sheet. Regions of a text are in its order and do not overlap.

    Args:
        page: page of a PDF, slide of a presentation, or chapter of a book, from 1. None in a file without pages.
        label: the name that the file gives its page, such as "iv". None if it gives none.
        box: the region's bounding box on its page.
        sheet: name of the sheet.
        cells: range of cells in the sheet, such as "A2:D2".
    """

    start_char: int
    end_char: int
    page: int | None = None
    label: str | None = None
    box: Box | None = None
    sheet: str | None = None
    cells: str | None = None

    def clip_region(self, start_char: int, end_char: int) -> Region:
        """Return the part of the region within [``start_char``, ``end_char``), which it overlaps.

        Characters of a line are taken to be equally wide.
        """
        start, end = max(self.start_char, start_char), min(self.end_char, end_char)
        box = self.box
        if box is not None and (start, end) != (self.start_char, self.end_char):
            x_min, bottom, right, top = box
            width = (right - x_min) / (self.end_char - self.start_char)
            box = (x_min + (start - self.start_char) * width, bottom, x_min + (end - self.start_char) * width, top)
        return replace(self, start_char=start, end_char=end, box=box)

    def as_row(self) -> list[Any]:
        """Return the values of the fields in their order, without missing values at the end. JSON stores them so."""
        row = [list(value) if isinstance(value, tuple) else value for value in astuple(self)]
        while row[-1] is None:
            row.pop()
        return row

    @classmethod
    def of_row(cls, row: Sequence[Any]) -> Region:
        """Return the region that `as_row` describes."""
        region = cls(*row)
        return region if region.box is None else replace(region, box=(region.box[0], *region.box[1:]))


def _recorded_field(*, shown: str = "", description: str = "", limit: int = 0, default: Any = MISSING) -> Any:
    """Return a field of `Location` with its row of `LOCATION_TABLE`; see `LocationField`."""
    row = {"most": limit, "shown": shown, "description": description}
    return field(metadata=row) if default is MISSING else field(metadata=row, default=default)


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """The place of a passage in the text of one document version.

    Offsets count Unicode characters, ``0 <= start_char < end_char``. Lines count from 1, and ``end_line`` is the last line of
    the passage. ``headings`` is the path of the headings above the passage, outermost first; of source code, the names of the
    classes and functions around it. ``header`` is the header of the table within which the passage begins, or the line that
    introduces its list, as the document has it. It is empty if the passage does not begin within one. ``regions`` are the places
    in the file; empty if the file has no pages, sheets or boxes. [``parent_start``, ``parent_end``) is the parent that is
    read when the passage is found; None if the passage is read by itself. ``functions`` are the functions and classes of source
    code that the passage defines, wholly or in part, in their order: "Crane.lift" is the method ``lift`` of the class ``Crane``.
    ``statements`` are self-contained statements by which search finds the passage; empty: by its text.

    A field that is added here is in every record of a chunk, because they read `LOCATION_TABLE`: a column of ``chunks`` (add a
    migration), a field of the archive's chunk line, and, if it has a name there, a field of the API's location. A field of the
    same name of `documents.chunking.base.Piece` provides its value.
    """

    start_char: int = _recorded_field(shown="start_char")
    end_char: int = _recorded_field(shown="end_char")
    start_line: int = _recorded_field(shown="start_line")
    end_line: int = _recorded_field(shown="end_line")
    headings: tuple[str, ...] = _recorded_field(
        default=(),
        limit=MAX_HEADINGS,
        shown="path",
        description="headings above the chunk, outermost first; of code, its classes and functions",
    )
    header: str = _recorded_field(
        default="",
        limit=MAX_HEADER_CHARACTERS,
        shown="header",
        description="header of the table or list within which the chunk begins, otherwise empty",
    )
    regions: tuple[Region, ...] = _recorded_field(default=(), limit=MAX_REGIONS)
    parent_start: int | None = _recorded_field(default=None)
    parent_end: int | None = _recorded_field(default=None)
    functions: tuple[str, ...] = _recorded_field(
        default=(),
        limit=MAX_FUNCTIONS,
        shown="functions",
        description="of code, the functions and classes that the chunk defines, wholly or in part: `Crane.lift`",
    )
    statements: tuple[str, ...] = _recorded_field(default=(), limit=MAX_STATEMENTS)

    def as_fields(self) -> dict[str, Any]:
        """Return the fields by name; regions as rows."""
        values = {name: getattr(self, name) for name in LOCATION_FIELDS}
        return {**values, "regions": [region.as_row() for region in self.regions]}

    @classmethod
    def of_fields(cls, values: Mapping[str, Any]) -> Location:
        """Return the location that `as_fields` describes."""
        regions = tuple(map(Region.of_row, values["regions"])) if values["regions"] else ()
        texts = {name: tuple(values[name]) for name in _TEXT_LISTS}
        return cls(**{**values, **texts, "regions": regions})


class FieldKind(StrEnum):
    """Types of the fields of a location, by their annotation."""

    COUNT = "int"
    OPTIONAL_COUNT = "int | None"
    TEXT = "str"
    TEXTS = "tuple[str, ...]"
    REGIONS = "tuple[Region, ...]"


@dataclass(frozen=True, slots=True)
class LocationField:
    """A field of `Location`, as every record of a chunk has it.

    Args:
        most: largest number of characters or items. 0: the limit of all counts.
        shown: name in the API's location. Empty: the API does not have it there.
        description: description in the API.
    """

    name: str
    kind: FieldKind
    most: int
    shown: str
    description: str


LOCATION_TABLE: tuple[LocationField, ...] = tuple(
    LocationField(field.name, FieldKind(str(field.type)), **field.metadata) for field in fields(Location)
)
LOCATION_FIELDS: tuple[str, ...] = tuple(row.name for row in LOCATION_TABLE)
_TEXT_LISTS: tuple[str, ...] = tuple(row.name for row in LOCATION_TABLE if row.kind is FieldKind.TEXTS)


def regions_within(regions: Sequence[Region], start_char: int, end_char: int) -> tuple[Region, ...]:
    """Return the parts of ``regions`` within [``start_char``, ``end_char``). Regions are in order and do not overlap."""
    first_region = bisect_right(regions, start_char, key=lambda region: region.end_char)
    last_region = bisect_left(regions, end_char, key=lambda region: region.start_char)
    return tuple(region.clip_region(start_char, end_char) for region in regions[first_region:last_region])


def enclose_regions(regions: Iterable[Region]) -> Box | None:
    """Return the smallest box around all ``regions``, which are on one page; None if none has a box."""
    boxes = [region.box for region in regions if region.box is not None]
    if not boxes:
        return None
    lefts, bottom, right, top = zip(*boxes, strict=True)
    return min(lefts), min(bottom), max(right), max(top)


def joined_regions(parts: Iterable[Sequence[Region]]) -> tuple[Region, ...]:
    """Return the regions of passages that come in order. Of passages that overlap, the text is counted once."""
    merged: list[Region] = []
    for region in (region for regions in parts for region in regions):
        covered = merged[-1].end_char if merged else 0
        if region.end_char > covered:
            merged.append(region if region.start_char >= covered else region.clip_region(covered, region.end_char))
    return tuple(merged)
