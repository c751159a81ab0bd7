"""Compares the documents of the catalogue with their vectors, knowledge and originals, one page at a time.

Each difference is checked twice. The first check runs with its page, while other jobs run. The second check holds the
tenant's lock, so that no commit or delete writes. A difference that both checks find is reported. Its repair has no races,
because jobs enqueued meanwhile run later and would write or remove the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agentic_rag_backend.domain.document import Chunk
from agentic_rag_backend.errors import NotFound
from agentic_rag_backend.ingestion.prepare.computation import Computation
from agentic_rag_backend.ingestion.questions.asking import embed_questions, is_current
from agentic_rag_backend.ingestion.reconciliation.document_comparison import (
    Differences,
    DocumentComparison,
    lacks_a_job,
    shown_version,
)
from agentic_rag_backend.ingestion.reconciliation.report import Kind
from agentic_rag_backend.ingestion.reconciliation.rounds import Round
from agentic_rag_backend.ingestion.vectors.chunk_points import PointFields
from agentic_rag_backend.ingestion.vectors.mirroring import mirror_labels
from agentic_rag_backend.knowledge.extraction.base import Origin
from agentic_rag_backend.knowledge.extraction.fields import with_fields
from agentic_rag_backend.knowledge.model_calls import VersionRecord
from agentic_rag_backend.language.times import document_date
from agentic_rag_backend.stores.catalogue.base import ChunkQuestions, DocumentStatus, PreparedChunk, PreparedQuestion
from agentic_rag_backend.stores.vector.base import Collection, VectorPoint

DOCUMENTS_PER_PAGE = 100
CHUNKS_PER_PAGE = 5_000
"""Limit of the chunks of one page of documents. A single document may have more."""
GROUP_CHUNKS = 64
_VECTORS = (Kind.CHUNK_VECTOR_MISSING, Kind.CHUNK_VECTOR_VERSION)
_QUESTIONS = Kind.QUESTION_VECTOR_MISSING
_KNOWLEDGE = (Kind.KNOWLEDGE_MISSING, Kind.KNOWLEDGE_DAMAGED)


@dataclass(frozen=True, slots=True)
class DocumentsRound:
    """Compares all documents of a tenant."""

    round: Round

    async def run(self) -> None:
        """Compare every document, ordered by id, and repair it if requested."""
        documents = self.round.stores.catalogue.documents
        total = (await documents.counts(self.round.tenant))["documents"]
        after = ""
        while True:
            await self.round.progress("documents", min(self.round.report.documents, total), total)
            page = await documents.statuses(self.round.tenant, after=after, limit=DOCUMENTS_PER_PAGE)
            if not page:
                return
            for part in _split_page(page):
                await self._check_page(part)
            after = page[-1].document.id

    async def _check_page(self, page: Sequence[DocumentStatus]) -> None:
        report = self.round.report
        report.documents += len(page)
        report.in_flight += sum(status.in_flight for status in page)
        settled: list[DocumentStatus] = []
        for status in page:
            has_no_job = lacks_a_job(status)
            if has_no_job is not None:
                await self._take_up(status, has_no_job)
            elif not status.in_flight:
                settled.append(status)
        compared = await self._compare_page(settled)
        for status in settled:
            if compared[status.document.id]:
                await self._settle_document(status, compared[status.document.id])

    async def _compare_page(self, page: Sequence[DocumentStatus]) -> dict[str, Differences]:
        """Return the differences of each document. None of the documents may be in flight."""
        tenant, stores = self.round.tenant, self.round.stores
        ids = [status.document.id for status in page]
        expected = await stores.catalogue.documents.visible_chunk_ids(tenant, ids)
        questions = await stores.catalogue.questions.embedded(tenant, ids)
        comparisons = {
            status.document.id: DocumentComparison(
                status,
                expected.get(status.document.id, ()) if shown_version(status) else (),
                questions.get(status.document.id, ()),
            )
            for status in page
        }
        async for points in stores.vectors.points(tenant, Collection.CHUNKS, document_ids=ids):
            for point in points:
                comparisons[point.document_id or ""].add_points([point])
        async for versions in stores.graph.all_versions(tenant, ids):
            for stored_version in versions:
                comparisons[stored_version.document_id].add_version(stored_version)
        originals = {
            status.blob_key: status.document.id for status in page if status.blob_key is not None and shown_version(status)
        }
        without_original = {originals[key] for key in await stores.blobs.missing(tenant, list(originals))}
        return {
            id: comparison.list_differences(original_missing=id in without_original) for id, comparison in comparisons.items()
        }

    async def _take_up(self, status: DocumentStatus, kind: Kind) -> None:
        document_id, report = status.document.id, self.round.report
        documents = self.round.stores.catalogue.documents
        if not self.round.repair:
            again = await documents.statuses(self.round.tenant, ids=[document_id])
            stands = bool(again) and lacks_a_job(again[0]) is kind
            report.count_differences(kind, [document_id]) if stands else report.count_skips(kind, 1)
            return
        job = await documents.take_up(self.round.tenant, document_id, self.round.services.enqueue)
        if job is None:
            report.count_skips(kind, 1)
            return
        report.count_differences(kind, [document_id])
        report.count_repairs(kind, 1)
        report.record_job(job.id)

    async def _settle_document(self, status: DocumentStatus, suspected: Differences) -> None:
        """Check one document again under the tenant's lock, and repair the differences that remain."""
        results = _Results(self.round, status)
        if self.round.repair:
            await results.load_results(suspected)  # Outside the lock: model calls may be slow, and others may write meanwhile.
        async with self.round.tenant_lock():
            # New kinds of difference are left to the next round: nothing was prepared to repair them.
            confirmed = {kind: ids for kind, ids in (await self._compare_again(status)).items() if kind in suspected}
            for kind, ids in suspected.items():
                self.round.report.count_skips(kind, len(set(ids) - set(confirmed.get(kind, ()))))
            for kind, ids in confirmed.items():
                self.round.report.count_differences(kind, ids)
            if Kind.ORIGINAL_MISSING in confirmed:
                self.round.report.not_repairable(Kind.ORIGINAL_MISSING, 1)
            if self.round.repair and set(confirmed) - {Kind.ORIGINAL_MISSING}:
                await self._repair_document(status, confirmed, results)

    async def _compare_again(self, status: DocumentStatus) -> Differences:
        """Return the current differences of the document. Empty if its state has changed since the first check."""
        again = await self.round.stores.catalogue.documents.statuses(self.round.tenant, ids=[status.document.id])
        if not again or again[0].in_flight or again[0].deleted or again[0].unfinished:
            return {}
        if again[0].document.current_version != status.document.current_version:
            return {}
        return (await self._compare_page(again))[status.document.id]

    async def _repair_document(self, status: DocumentStatus, differences: Differences, results: _Results) -> None:
        """Repair in the order of a commit: removals start with the vectors, additions start with the graph."""
        tenant, stores, document = self.round.tenant, self.round.stores, status.document
        report = self.round.report
        for kind in (Kind.CHUNK_VECTOR_ORPHANED, Kind.QUESTION_VECTOR_ORPHANED):
            if orphans := differences.get(kind, ()):
                await stores.vectors.delete(tenant, Collection.CHUNKS, orphans)
                report.count_repairs(kind, len(orphans))
        if Kind.KNOWLEDGE_ORPHANED in differences:
            for version in {int(item_id.rpartition("@")[2]) for item_id in differences[Kind.KNOWLEDGE_ORPHANED]}:
                await stores.facts.remove_knowledge(tenant, document.id, up_to_version=version, above=version - 1)
            report.count_repairs(Kind.KNOWLEDGE_ORPHANED, len(differences[Kind.KNOWLEDGE_ORPHANED]))
        knowledge = [kind for kind in _KNOWLEDGE if kind in differences]
        if knowledge and await results.write_knowledge():
            for kind in knowledge:
                report.count_repairs(kind, len(differences[kind]))
        for kind in (kind for kind in _VECTORS if kind in differences):
            report.count_repairs(kind, await results.write_points(differences[kind]))
        if _QUESTIONS in differences:
            report.count_repairs(_QUESTIONS, await results.write_questions(differences[_QUESTIONS]))
        if Kind.CHUNK_VECTOR_METADATA in differences:
            await mirror_labels(stores.catalogue.documents, stores.vectors, tenant, document.id)
            report.count_repairs(Kind.CHUNK_VECTOR_METADATA, len(differences[Kind.CHUNK_VECTOR_METADATA]))
        changed = bool(knowledge or Kind.KNOWLEDGE_ORPHANED in differences)
        await self.round.publish_repair(document.id, knowledge=changed)


class _Results:
    """Results of the visible version of one document, recorded or computed again."""

    def __init__(self, round: Round, status: DocumentStatus) -> None:
        self._round = round
        self._document = status.document
        self._held: dict[str, PreparedChunk] = {}
        self._order: list[str] = []
        self._asked: dict[str, PreparedQuestion] = {}

    async def load_results(self, suspected: Mapping[Kind, Sequence[str]]) -> None:
        """Load the results that a repair needs. Missing results are computed by the embedder and the extractor."""
        if not any(kind in suspected for kind in (*_VECTORS, _QUESTIONS, *_KNOWLEDGE)):
            return
        tenant, document = self._round.tenant, self._document
        documents = self._round.stores.catalogue.documents
        self._order = (await documents.visible_chunk_ids(tenant, [document.id])).get(document.id, [])
        prepared_chunks = await documents.prepared(tenant, document.id, document.current_version)
        if _QUESTIONS in suspected:
            self._asked = await self._with_vectors([item.questions for item in prepared_chunks if item.questions is not None])
        # An interrupted reindexing may have recorded vectors of another embedder.
        dimensions = self._round.stores.embedder.dimensions
        self._held = {item.chunk.id: item for item in prepared_chunks if item.vector is None or len(item.vector) == dimensions}
        needs_all = any(kind in suspected for kind in _KNOWLEDGE)
        ids = self._order if needs_all else [id for kind in _VECTORS for id in suspected.get(kind, ())]
        missing_ids = [id for id in ids if id not in self._held]
        for start in range(0, len(missing_ids), GROUP_CHUNKS):
            await self._compute_results(missing_ids[start : start + GROUP_CHUNKS])

    async def _with_vectors(self, questions: Sequence[ChunkQuestions]) -> dict[str, PreparedQuestion]:
        """Return the questions by id. Vectors of another embedder are computed again."""
        computation = self._round.stores.computation
        stale = iter(
            await embed_questions(computation, [question for question in questions if not is_current(computation, question)])
        )
        current = [question if is_current(computation, question) else next(stale) for question in questions]
        return {item.question.id: item for chunk_questions in current for item in chunk_questions.items}

    async def _compute_results(self, ids: Sequence[str]) -> None:
        stores, title = self._round.stores, self._document.title
        chunks = await stores.catalogue.documents.hydrate(self._round.tenant, ids)
        group: list[Chunk] = [chunks[id].chunk for id in ids if id in chunks]
        if group:
            computation = await self._make_computation()
            recipes = [computation.make_recipe(title, chunk) for chunk in group]
            computed = await computation.compute(title, group, recipes)
            self._held.update((item.chunk.id, item) for item in computed)

    async def _make_computation(self) -> Computation:
        """Return the computation of the version's own method of extraction."""
        tenant, id, number, stores = self._round.tenant, self._document.id, self._document.current_version, self._round.stores
        version = await stores.catalogue.documents.version(tenant, id, number)
        record = VersionRecord(stores.catalogue.model_results, tenant, id, number)
        ontology = await stores.catalogue.tenants.ontology(tenant)
        origin = Origin(tenant, id, document_date("", version.metadata))
        return stores.computation.make_computation(version.options.extraction, ontology, record, origin=origin)

    async def write_knowledge(self) -> bool:
        """Rewrite the version's knowledge. Return False if results are missing."""
        if not set(self._order) <= self._held.keys():
            return False
        tenant, stores, document = self._round.tenant, self._round.stores, self._document
        version = document.current_version
        ontology = await stores.catalogue.tenants.ontology(tenant)
        extractions = with_fields([self._held[id].extraction for id in self._order], document.metadata, ontology)
        await stores.facts.replace_knowledge(
            tenant, await stores.resolver.resolve(tenant, document.id, version, document.title, extractions)
        )
        return True

    async def write_points(self, ids: Sequence[str]) -> int:
        """Write the points of the chunks that have results, and return their number."""
        return await self._write_points(
            lambda fields: [fields.make_chunk_fields(self._held[id]) for id in ids if id in self._held]
        )

    async def write_questions(self, ids: Sequence[str]) -> int:
        """Write the points of synthetic questions, and return their number."""
        return await self._write_points(
            lambda fields: fields.make_question_fields([self._asked[id] for id in ids if id in self._asked])
        )

    async def _write_points(self, points_of: Callable[[PointFields], list[VectorPoint]]) -> int:
        try:
            document = await self._round.stores.catalogue.documents.document(self._round.tenant, self._document.id)
        except NotFound:
            return 0  # the pending deletion removes the points
        fields = PointFields(
            document_id=document.id,
            version=document.current_version,
            key=document.key,
            title=document.title,
            metadata=document.metadata,
        )
        points = points_of(fields)
        await self._round.stores.vectors.upsert(self._round.tenant, Collection.CHUNKS, points)
        return len(points)


def _split_page(page: Sequence[DocumentStatus]) -> list[list[DocumentStatus]]:
    """Split a page so that no part has more chunks than the limit, unless one document has."""
    parts: list[list[DocumentStatus]] = [[]]
    chunks = 0
    for status in page:
        if parts[-1] and chunks + status.document.chunk_count > CHUNKS_PER_PAGE:
            parts.append([])
            chunks = 0
        parts[-1].append(status)
        chunks += status.document.chunk_count
    return [part for part in parts if part]
