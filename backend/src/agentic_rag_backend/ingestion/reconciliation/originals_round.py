"""Reconciliation of originals without a document: a process was killed between storing and recording them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from agentic_rag_backend.ingestion.reconciliation.removals import may_remove
from agentic_rag_backend.ingestion.reconciliation.report import Kind
from agentic_rag_backend.ingestion.reconciliation.rounds import Round
from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class OriginalsRound:
    """Compares the blob store with the catalogue's versions, page by page.

    An original's key belongs to one submission, and its row is written right after the original. An older original without a
    row will therefore never have one.
    """

    round: Round

    async def run(self) -> None:
        """Compare, and repair if requested. All are counted first, because removing many needs a person's confirmation."""
        report = self.round.report
        total = 0
        orphans: list[str] = []
        async for keys, unknown in self._list_pages():
            total += len(keys)
            orphans += unknown
        report.count_differences(Kind.ORIGINAL_ORPHANED, orphans)
        if not may_remove(report, Kind.ORIGINAL_ORPHANED, len(orphans), total):
            return
        for key in orphans:
            report.count_repairs(Kind.ORIGINAL_ORPHANED, int(await self.round.stores.blobs.delete(self.round.tenant, key)))
        _log.info("originals_of_no_document_removed", tenant=self.round.tenant.value, count=len(orphans))

    async def _list_pages(self) -> AsyncIterator[tuple[list[str], list[str]]]:
        """Yield pages of keys, each with its keys that no version of a document has."""
        tenant, stores = self.round.tenant, self.round.stores
        await self.round.progress("originals", 0, 0)
        async for keys in stores.blobs.keys(tenant, before=self.round.originals_before):
            yield keys, list(await stores.catalogue.documents.unknown_blobs(tenant, keys))
            await self.round.progress("originals", 0, 0)
