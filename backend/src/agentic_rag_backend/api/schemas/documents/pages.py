"""Pages of documents."""

from __future__ import annotations

from pydantic import Field

from agentic_rag_backend.api.schemas.base import View
from agentic_rag_backend.api.schemas.documents.places import BOX_DESCRIPTION
from agentic_rag_backend.domain.location import Box
from agentic_rag_backend.ingestion.document_pages import DocumentPage


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
