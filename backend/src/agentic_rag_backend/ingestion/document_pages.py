"""Single pages of documents: text with boxes from the visible version's chunks, pictures from its original."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from agentic_rag_backend.documents.parsing.base import PageFrame
from agentic_rag_backend.documents.parsing.registry import RENDERERS
from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.location import Box, Region, enclose_regions
from agentic_rag_backend.domain.tenant import TenantId, require_tenant
from agentic_rag_backend.errors import NotFound, UnsupportedMediaType
from agentic_rag_backend.ingestion.accept.originals import Original, read_original
from agentic_rag_backend.ingestion.isolation.worker_pool import Isolation
from agentic_rag_backend.stores.blob.base import BlobStore
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue

_CHUNKS_AT_ONCE = 100
_LINE_TOLERANCE = 0.05
"""Points by which the heights of two parts of one line may differ."""


@dataclass(frozen=True, slots=True)
class PageLine:
    """A line of a page, or another part of it, with its text."""

    text: str
    region: Region


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPage:
    """A page of a document's visible version. ``frame`` is None if its original was not kept, or has no pictures of pages."""

    number: int
    label: str | None
    text: str
    lines: Sequence[PageLine]
    frame: PageFrame | None


class DocumentPages:
    """Reads pages, slides and chapters of documents."""

    def __init__(self, documents: DocumentCatalogue, blobs: BlobStore, isolation: Isolation) -> None:
        self._documents = documents
        self._blobs = blobs
        self._isolation = isolation

    async def read_page(self, tenant: TenantId, document_id: str, number: int) -> DocumentPage:
        """Return page ``number``, from 1.

        Raises:
            NotFound: the document does not exist, or has no such page.
        """
        require_tenant(tenant)
        parts: list[Region] = []
        last_chunk: VisibleChunk | None = None
        async for last_chunk in self._list_chunks(tenant, document_id):
            on_page = [region for region in last_chunk.chunk.location.regions if region.page is not None]
            parts += [region for region in on_page if region.page == number]
            if on_page and all(cast(int, region.page) > number for region in on_page):
                break
        regions = merge_regions(parts)
        if not regions and not _is_blank_page(last_chunk, number):
            raise NotFound(f"document {document_id!r} has no page {number}")
        text = ""
        if regions and last_chunk is not None:
            text = (await self._documents.version(tenant, document_id, last_chunk.chunk.version)).text
        return DocumentPage(
            number=number,
            label=next((region.label for region in regions), None),
            text=text[regions[0].start_char : regions[-1].end_char] if regions else "",
            lines=[PageLine(text[region.start_char : region.end_char], region) for region in regions],
            frame=await self._read_frame(tenant, document_id, number),
        )

    async def draw_page(
        self, tenant: TenantId, document_id: str, number: int, *, scale: float, boxes: Sequence[Box] = ()
    ) -> bytes:
        """Return a PNG of page ``number`` with ``scale`` pixels a point, with ``boxes`` highlighted.

        Raises:
            NotFound: the document does not exist, has no such page, or its original was not kept.
            UnsupportedMediaType: pages of its format have no picture.
            InvalidRequest: the picture would be too large.
            UnreadableDocument: the page is damaged.
        """
        original = await self._read_original(tenant, document_id)
        return cast(bytes, await self._call_renderer("picture", tenant, original, number, scale, list(boxes)))

    async def _list_chunks(self, tenant: TenantId, document_id: str) -> AsyncIterator[VisibleChunk]:
        cursor: str | None = None
        while True:
            page = await self._documents.chunks(tenant, document_id, limit=_CHUNKS_AT_ONCE, cursor=cursor)
            for chunk in page.items:
                yield chunk
            cursor = page.next_cursor
            if cursor is None:
                return

    async def _read_frame(self, tenant: TenantId, document_id: str, number: int) -> PageFrame | None:
        document = await self._documents.document(tenant, document_id)
        version = await self._documents.version(tenant, document_id, document.current_version or document.latest_version)
        if version.media_type not in RENDERERS or not version.blob_key:
            return None
        try:
            original = await self._read_original(tenant, document_id)
            return cast(PageFrame, await self._call_renderer("frame", tenant, original, number))
        except (NotFound, UnsupportedMediaType):  # a new version took its place
            return None

    async def _read_original(self, tenant: TenantId, document_id: str) -> Original:
        return await read_original(self._documents, self._blobs, require_tenant(tenant), document_id)

    async def _call_renderer(self, name: str, tenant: TenantId, original: Original, *arguments: object) -> object:
        content = original.content
        return await self._isolation.call_worker(
            name, content, original.media_type, *arguments, size_bytes=len(content), tenant=tenant
        )


def _is_blank_page(last_chunk: VisibleChunk | None, number: int) -> bool:
    """Whether the file has this page, without text: its parser counts ``pages``."""
    pages = last_chunk.metadata.get("pages") if last_chunk is not None else None
    return isinstance(pages, int) and 1 <= number <= pages


def merge_regions(parts: Iterable[Region]) -> list[Region]:
    """Join the parts of regions, and return the whole regions in order. Chunks that overlap repeat lines, or cut them."""
    regions: list[Region] = []
    for part in sorted(parts, key=lambda region: (region.start_char, region.end_char)):
        last_region = regions[-1] if regions else None
        if last_region is not None and part.end_char <= last_region.end_char:
            continue
        if last_region is not None and part.start_char <= last_region.end_char and _of_one_line(last_region, part):
            regions[-1] = replace(last_region, end_char=part.end_char, box=enclose_regions([last_region, part]))
        else:
            regions.append(part)
    return regions


def _of_one_line(region: Region, following: Region) -> bool:
    if region.box is None or following.box is None:
        return region.box is following.box and (region.sheet, region.cells) == (following.sheet, following.cells)
    return all(abs(a - b) <= _LINE_TOLERANCE for a, b in ((region.box[1], following.box[1]), (region.box[3], following.box[3])))
