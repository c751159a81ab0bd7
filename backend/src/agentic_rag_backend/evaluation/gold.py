"""The evidence that a case expects, found in the visible documents, and the results that cover it.

Metrics rank *items* of evidence: a result that covers an item counts as this item. Several chunks can cover one item, because
chunks overlap, and documents are chunked anew.
"""

from __future__ import annotations

import asyncio
import bisect
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from agentic_rag_backend.answering.evidence.context import Passage
from agentic_rag_backend.domain.document import Document, VisibleChunk
from agentic_rag_backend.domain.evaluation import EvaluationCase, GoldItem
from agentic_rag_backend.domain.query import Hit
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import NotFound
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue, Matching

SearchText = Callable[[str], Awaitable[Sequence[Hit]]]
"""Returns the passages that have most words of a text."""
_TOKEN = re.compile(r"\S+")
_PAGE = 1000
_DOCUMENTS_KEPT = 32
_LEAST_SHARE = 0.5
"""Share of a quote, or of a chunk, that the other must have where a chunk's border cuts the quote."""


@dataclass(frozen=True, slots=True)
class GoldEvidence:
    """One item of evidence: the chunks that have it, or the document of which every chunk has it."""

    chunk_ids: frozenset[str] = frozenset()
    document_id: str | None = None

    @property
    def missing(self) -> bool:
        """Whether no visible document has it."""
        return not self.chunk_ids and self.document_id is None

    def covers(self, hit: Hit | Passage) -> bool:
        """Return whether a result, or a passage of an answer, has the evidence in its chunk or in the text around it."""
        if isinstance(hit, Passage):
            return hit.document_id == self.document_id or not self.chunk_ids.isdisjoint(hit.chunk_ids)
        if hit.visible.chunk.document_id == self.document_id or hit.id in self.chunk_ids:
            return True
        return hit.parent is not None and any(chunk.id in self.chunk_ids for chunk in hit.parent.chunks)


def rank_evidence(evidence: Sequence[GoldEvidence], hits: Sequence[Hit | Passage]) -> list[str]:
    """Return the ranked list of ids that metrics read: the numbers of covered items, otherwise the ids of chunks.

    A result that covers several items that no earlier result covers stands for all of them, in adjacent ranks.
    """
    ranked: list[str] = []
    open_items = dict(enumerate(evidence))
    for hit in hits:
        numbers = [number for number, item in open_items.items() if item.covers(hit)]
        ranked += [str(number) for number in numbers] or [f"chunk {hit.chunk_id if isinstance(hit, Passage) else hit.id}"]
        for number in numbers:
            del open_items[number]
    return ranked


def locate_quote(text: str, quote: str) -> tuple[int, int] | None:
    """Return the span of ``quote`` in ``text``. Runs of white space and letter case do not matter. None: it is not there."""
    quote_text = " ".join(quote.casefold().split())
    start = text.find(quote)
    if start >= 0 and quote_text:
        return start, start + len(quote)
    tokens = [(match[0].casefold(), match.start(), match.end()) for match in _TOKEN.finditer(text)]
    joined = " ".join(token for token, *_ in tokens)
    span = joined.find(quote_text) if quote_text else -1
    if span < 0:
        return None
    starts, position = [], 0
    for token, *_ in tokens:
        starts.append(position)
        position += len(token) + 1
    first_token = tokens[bisect.bisect_right(starts, span) - 1]
    last_token = tokens[bisect.bisect_right(starts, span + len(quote_text) - 1) - 1]
    return first_token[1], last_token[2]


class EvidenceFinder:
    """Finds the evidence of cases in a tenant's visible documents.

    Args:
        search_text: finds passages for a quote without a document.
    """

    def __init__(self, documents: DocumentCatalogue, tenant: TenantId, search_text: SearchText) -> None:
        self._documents = documents
        self._tenant = tenant
        self._search_text = search_text
        self._texts: OrderedDict[str, tuple[str, list[VisibleChunk]]] = OrderedDict()

    async def find(self, case: EvaluationCase) -> list[GoldEvidence]:
        """Return the evidence of a case, item by item."""
        return [await self._find_item(item) for item in case.gold]

    async def _find_item(self, item: GoldItem) -> GoldEvidence:
        if item.chunk_id is not None and await self._documents.hydrate(self._tenant, [item.chunk_id]):
            return GoldEvidence(frozenset({item.chunk_id}))
        if not item.quote:
            document = await self._find_document(item.document) if item.chunk_id is None else None
            return GoldEvidence(document_id=document.id if document is not None else None)
        document = await self._find_document(item.document)
        if document is not None:
            return GoldEvidence(await self._find_in_document(document.id, item.quote))
        hits = await self._search_text(item.quote)
        for document_id in dict.fromkeys(hit.visible.chunk.document_id for hit in hits):
            if chunk_ids := await self._find_in_document(document_id, item.quote):
                return GoldEvidence(chunk_ids)
        return GoldEvidence()

    async def _find_document(self, id_or_key: str | None) -> Document | None:
        if id_or_key is None:
            return None
        try:
            return await self._documents.document(self._tenant, id_or_key)
        except NotFound:
            page = await self._documents.documents(self._tenant, Matching(key=id_or_key), limit=1)
            return page.items[0] if page.items else None

    async def _find_in_document(self, document_id: str, quote: str) -> frozenset[str]:
        """Return the chunks of a document that have the quote, or at least half of it."""
        text, chunks = await self._read_document(document_id)
        span = await asyncio.to_thread(locate_quote, text, quote)
        if span is None:
            return frozenset()
        return frozenset(chunk.chunk.id for chunk in chunks if _shares_enough(chunk, span))

    async def _read_document(self, document_id: str) -> tuple[str, list[VisibleChunk]]:
        if document_id in self._texts:
            self._texts.move_to_end(document_id)
            return self._texts[document_id]
        chunks: list[VisibleChunk] = []
        try:
            document = await self._documents.document(self._tenant, document_id)
            text = (await self._documents.version(self._tenant, document_id, document.current_version)).text or ""
            cursor: str | None = None
            while True:
                page = await self._documents.chunks(self._tenant, document_id, limit=_PAGE, cursor=cursor)
                chunks += page.items
                cursor = page.next_cursor
                if cursor is None:
                    break
        except NotFound:  # it was deleted in the meantime
            text = ""
        self._texts[document_id] = (text, chunks)
        while len(self._texts) > _DOCUMENTS_KEPT:
            self._texts.popitem(last=False)
        return text, chunks


def _shares_enough(chunk: VisibleChunk, span: tuple[int, int]) -> bool:
    start, end = span
    location = chunk.chunk.location
    shared = min(end, location.end_char) - max(start, location.start_char)
    return shared > 0 and shared >= _LEAST_SHARE * min(end - start, location.end_char - location.start_char)
