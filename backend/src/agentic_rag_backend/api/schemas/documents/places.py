"""Pages of documents, and places of a text in the file from which it was made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from agentic_rag_backend.api.schemas.base import View
from agentic_rag_backend.domain.location import Box, Region, enclose_regions
from agentic_rag_backend.ingestion.document_pages import DocumentPage

BOX_DESCRIPTION = "left, bottom, right, top in points from the lower left corner of the page before it is rotated"


class RegionView(View):
    start_char: int
    end_char: int
    page: int | None
    page_label: str | None
    bbox: Box | None = Field(description=BOX_DESCRIPTION)
    sheet: str | None
    cells: str | None

    @classmethod
    def of(cls, region: Region) -> RegionView:
        """Return the view of a region."""
        return cls(
            start_char=region.start_char,
            end_char=region.end_char,
            page=region.page,
            page_label=region.label,
            bbox=_round_box(region.box),
            sheet=region.sheet,
            cells=region.cells,
        )


class FilePlace(View):
    """Fields of every view of a text that has a place in a file. The first five describe the first page or sheet."""

    page: int | None = Field(description="page, slide or chapter from 1; null if the file has none")
    page_label: str | None = Field(description="what the file calls the page, such as `iv`")
    bbox: Box | None = Field(description=f"box around the text on this page: {BOX_DESCRIPTION}")
    sheet: str | None = Field(description="sheet of a workbook")
    cells: str | None = Field(description="range of cells in the sheet, such as `A2:D5`")
    regions: list[RegionView] = Field(description="lines, shapes or rows of the text in the file")


def file_place(regions: Sequence[Region]) -> dict[str, Any]:
    """Return the fields of `FilePlace`."""
    if not regions:
        return {"page": None, "page_label": None, "bbox": None, "sheet": None, "cells": None, "regions": []}
    first_region = regions[0]
    neighbours = [region for region in regions if (region.page, region.sheet) == (first_region.page, first_region.sheet)]
    ranges = [region.cells for region in neighbours if region.cells]
    return {
        "page": first_region.page,
        "page_label": first_region.label,
        "bbox": _round_box(enclose_regions(neighbours)),
        "sheet": first_region.sheet,
        "cells": _spanning(ranges) if ranges else None,
        "regions": [RegionView.of(region) for region in regions],
    }


def _round_box(box: Box | None) -> Box | None:
    """Return the box to a hundredth of a point."""
    return None if box is None else (round(box[0], 2), round(box[1], 2), round(box[2], 2), round(box[3], 2))


def _spanning(ranges: Sequence[str]) -> str:
    """Return the range from the first cell of the first range to the last cell of the last one."""
    start, end = ranges[0].partition(":")[0], ranges[-1].rpartition(":")[2]
    return start if start == end else f"{start}:{end}"


class PageLineView(View):
    text: str
    start_char: int
    end_char: int
    bbox: Box | None = Field(description=BOX_DESCRIPTION)


class PageView(View):
    """A page with the place of each line. ``visible_box`` and ``rotation`` say which part of the page its picture shows."""

    document_id: str
    page: int
    page_label: str | None
    content: str = Field(description="the page's part of the document's text; a paragraph that goes on is cut at the page's end")
    lines: list[PageLineView]
    visible_box: Box | None = Field(description=f"null if the original was not kept; {BOX_DESCRIPTION}")
    rotation: int | None = Field(description="clockwise, in degrees: 0, 90, 180 or 270")

    @classmethod
    def of(cls, document_id: str, page: DocumentPage) -> PageView:
        """Return the view of a page."""
        return cls(
            document_id=document_id,
            page=page.number,
            page_label=page.label,
            content=page.text,
            lines=[
                PageLineView(
                    text=line.text, start_char=line.region.start_char, end_char=line.region.end_char, bbox=line.region.box
                )
                for line in page.lines
            ],
            visible_box=page.frame.box if page.frame else None,
            rotation=page.frame.rotation if page.frame else None,
        )
