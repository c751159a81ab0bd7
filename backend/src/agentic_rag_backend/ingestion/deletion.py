"""Deletion of a document: a tombstone hides it, then every store removes its data, and a receipt lists the counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.ingestion.vectors.fact_points import FactPoints
from agentic_rag_backend.jobs.coordination.tenant_locks import confirm_lock
from agentic_rag_backend.jobs.runner import Run, Unfinished
from agentic_rag_backend.stores.blob.base import BlobStore
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue
from agentic_rag_backend.stores.vector.base import Collection
from agentic_rag_backend.themes.communities.generations import CommunityScrubber
from agentic_rag_backend.themes.raptor.tree_publication import TreeScrubber


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """The work of ``delete_v1``. It removes versions up to the tombstoned one, so a new upload is never affected."""

    documents: DocumentCatalogue
    blobs: BlobStore
    facts: FactPoints
    tree: TreeScrubber
    communities: CommunityScrubber

    async def run(self, run: Run) -> None:
        """Remove vectors, knowledge, originals and rows, check that no data is left, and finish with the receipt."""
        tenant, document_id, last_version = run.tenant, run.document_id, run.version
        run.stage = "inventory"
        await confirm_lock()
        # Counted before any removal: the receipt then also includes the removals of a process that was killed.
        removed = await run.jobs.remember(tenant, run.job.id, "removed", await self._count_items(run))
        run.stage = "vectors"
        await self.facts.vectors.delete_document(tenant, document_id, up_to_version=last_version)
        run.stage = "graph"
        await confirm_lock()
        await self.facts.remove_knowledge(tenant, document_id, up_to_version=last_version)
        run.stage = "tree"
        await confirm_lock()
        await self.tree.scrub(tenant, document_id)
        run.stage = "communities"
        await confirm_lock()
        await self.communities.scrub(tenant, document_id)
        await self.facts.vectors.flush()
        # Originals are removed before the rows that name them. Otherwise an interruption would leave them for ever.
        run.stage = "originals"
        keys = await self.documents.blob_keys(tenant, document_id, up_to_version=last_version)
        for key in keys:
            await self.blobs.delete(tenant, key)
        run.stage = "rows"
        await self.documents.purge(tenant, document_id, up_to_version=last_version)
        run.stage = "check"
        leftovers = await self._count_leftovers(run, keys)
        if any(leftovers.values()):
            raise Unfinished(f"the deletion left data of document {document_id!r}: {dict(leftovers)}")
        receipt = {"document_id": document_id, "removed": removed, "leftovers": dict(leftovers)}
        if run.job.arguments.get("attachments"):  # each has a receipt of its own
            receipt["attachments"] = run.job.arguments["attachments"]
        await run.finish(JobState.SUCCEEDED, result=receipt)

    async def _count_items(self, run: Run) -> Mapping[str, Any]:
        """Count the items of the document that each store holds and will remove."""
        tenant, document_id, last_version = run.tenant, run.document_id, run.version
        keys = await self.documents.blob_keys(tenant, document_id, up_to_version=last_version)
        knowledge = await self.facts.count_knowledge(tenant, document_id, up_to_version=last_version)
        return {
            "vectors": await self.facts.vectors.count(tenant, Collection.CHUNKS, document_id=document_id),
            **asdict(knowledge),
            "summaries": len(await self.tree.resting_on(tenant, document_id))
            + await self.communities.resting_on(tenant, document_id),
            "originals": len(keys) - len(await self.blobs.missing(tenant, keys)),
            "rows": dict(await self.documents.remains(tenant, document_id)),
        }

    async def _count_leftovers(self, run: Run, keys: Sequence[str]) -> Mapping[str, int]:
        """Count the items of the document that remain in each store."""
        tenant, document_id = run.tenant, run.document_id
        graph = self.facts.graph
        mentions = [len(batch) async for batch in graph.all_mentions(tenant, [document_id])]
        relationships = [len(batch) async for batch in graph.all_relationships(tenant, [document_id])]
        return {
            "vectors": await self.facts.vectors.count(tenant, Collection.CHUNKS, document_id=document_id),
            "mentions": sum(mentions),
            "relationships": sum(relationships),
            "summaries": await self.communities.resting_on(tenant, document_id),
            "originals": len(keys) - len(await self.blobs.missing(tenant, keys)),
            **await self.documents.remains(tenant, document_id),
        }
