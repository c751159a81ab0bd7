"""Originals that no document names: what a process leaves that is killed between storing one and recording its document."""

from __future__ import annotations

from dataclasses import dataclass

from agentic_rag_backend.ingestion.reconciliation.report import Kind
from agentic_rag_backend.ingestion.reconciliation.rounds import Round


@dataclass(frozen=True, slots=True)
class OriginalsRound:
    """Holds the blob store against the catalogue's versions, by page.

    An original's key is of one submission alone, and its row is written right after it. So one that is old enough and has
    no row will never have one.
    """

    round: Round

    async def run(self) -> None:
        """Compare, and mend where that is asked for."""
        tenant, stores, report = self.round.tenant, self.round.stores, self.round.report
        await self.round.progress("originals", 0, 0)
        async for keys in stores.blobs.keys(tenant, before=self.round.originals_before):
            unknown = await stores.catalogue.documents.unknown_blobs(tenant, keys)
            report.found(Kind.ORIGINAL_ORPHANED, unknown)
            if self.round.repair:
                for key in unknown:
                    report.mended(Kind.ORIGINAL_ORPHANED, int(await stores.blobs.delete(tenant, key)))
            await self.round.progress("originals", 0, 0)
