"""Originals that no document names: what a process leaves that is killed between storing one and recording its document."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import structlog

from agentic_rag_backend.ingestion.reconciliation.removals import may_remove
from agentic_rag_backend.ingestion.reconciliation.report import Kind
from agentic_rag_backend.ingestion.reconciliation.rounds import Round

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class OriginalsRound:
    """Holds the blob store against the catalogue's versions, by page.

    An original's key is of one submission alone, and its row is written right after it. So one that is old enough and has
    no row will never have one.
    """

    round: Round

    async def run(self) -> None:
        """Compare, and mend where that is asked for; all are counted first, since many go only when a person confirms."""
        report = self.round.report
        held = 0
        orphans: list[str] = []
        async for keys, unknown in self._pages():
            held += len(keys)
            orphans += unknown
        report.found(Kind.ORIGINAL_ORPHANED, orphans)
        if not may_remove(report, Kind.ORIGINAL_ORPHANED, len(orphans), held):
            return
        for key in orphans:
            report.mended(Kind.ORIGINAL_ORPHANED, int(await self.round.stores.blobs.delete(self.round.tenant, key)))
        _log.info("originals_of_no_document_removed", tenant=self.round.tenant.value, count=len(orphans))

    async def _pages(self) -> AsyncIterator[tuple[list[str], list[str]]]:
        """Yield pages of keys, and those among each that no version of a document has."""
        tenant, stores = self.round.tenant, self.round.stores
        await self.round.progress("originals", 0, 0)
        async for keys in stores.blobs.keys(tenant, before=self.round.originals_before):
            yield keys, list(await stores.catalogue.documents.unknown_blobs(tenant, keys))
            await self.round.progress("originals", 0, 0)
