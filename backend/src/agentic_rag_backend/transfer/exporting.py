"""Writes a tenant's archive: a consistent snapshot at one ``state_version``.

The tenant may change during the export. The exporter spools its reads in a folder, one file a document, and reads changed parts
again until a check finds no change. After two checks, the tenant's commits in this process wait until the snapshot is complete.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from agentic_rag_backend.domain.graph import Community, CommunitySummary, community_point_id
from agentic_rag_backend.domain.tenant import TenantId, TenantState
from agentic_rag_backend.errors import Conflict, NotFound
from agentic_rag_backend.jobs.coordination.tenant_locks import TenantLock
from agentic_rag_backend.jobs.queue.job_queue import JobQueue
from agentic_rag_backend.knowledge.extraction.methods import ExtractionMethods
from agentic_rag_backend.knowledge.visible.summaries import passages_behind, visible_summary
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.stores.blob.base import BlobStore
from agentic_rag_backend.stores.catalogue.base import (
    Catalogue,
    DocumentHeader,
    DocumentRecord,
    PreparedChunk,
    TenantSnapshot,
    TransferCatalogue,
)
from agentic_rag_backend.stores.graph.base import GraphStore
from agentic_rag_backend.stores.vector.base import Collection, VectorStore
from agentic_rag_backend.telemetry.logs import get_logger
from agentic_rag_backend.themes.communities.detection.documents import read_documents
from agentic_rag_backend.themes.communities.detection.knowledge import read_visible
from agentic_rag_backend.transfer import archive
from agentic_rag_backend.transfer.archive import ArchiveWriter
from agentic_rag_backend.transfer.evaluation_lines import read_evaluation
from agentic_rag_backend.transfer.identity import fingerprint_communities
from agentic_rag_backend.transfer.imported_trees import ExportedTree, read_tree
from agentic_rag_backend.transfer.record_lines import knowledge_lines, pack_vector, record_lines
from agentic_rag_backend.transfer.records import (
    FORMAT,
    VERSION,
    CommunityRecord,
    EditRecord,
    End,
    EntityLine,
    EntityRecord,
    Generation,
    Manifest,
    Record,
    SummaryRecord,
    TenantName,
    decode_record,
    encode_record,
)

T = TypeVar("T")

_ATTEMPTS = 30
"""Times that changed parts are read again before the export fails because the tenant changes too fast."""
_UNHURRIED = 2
"""Checks after which the tenant's commits wait."""
_PAGE = 500

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSource:
    """The stores to read a tenant from, and the identities of its embedder and extractors."""

    catalogue: Catalogue
    transfer: TransferCatalogue
    graph: GraphStore
    vectors: VectorStore
    blobs: BlobStore
    embedder: Embedder
    extraction: ExtractionMethods
    queue: JobQueue
    release: str
    """The version of this program."""


@dataclass(slots=True)
class _Spool:
    """The data read so far, as files of a folder."""

    folder: Path
    held: dict[str, DocumentHeader] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)

    def record_path(self, document_id: str) -> Path:
        return self.folder / f"{self.numbers[document_id]}.record"

    def original_path(self, document_id: str) -> Path:
        return self.folder / f"{self.numbers[document_id]}.original"

    def keep_document(self, document_id: str, header: DocumentHeader, lines: Iterable[Record], original: bytes | None) -> None:
        self.numbers.setdefault(document_id, len(self.numbers))
        self.drop_document(document_id)
        with self.record_path(document_id).open("wb") as file:
            file.writelines(map(encode_record, lines))
        if original is not None:
            self.original_path(document_id).write_bytes(original)
        self.held[document_id] = header

    def drop_document(self, document_id: str) -> None:
        self.held.pop(document_id, None)
        if document_id in self.numbers:
            self.record_path(document_id).unlink(missing_ok=True)
            self.original_path(document_id).unlink(missing_ok=True)

    def names_by_entity(self) -> dict[str, set[str]]:
        """Return the documents' names for each entity."""
        names_of: dict[str, set[str]] = {}
        for document_id in self.held:
            with self.record_path(document_id).open("rb") as file:
                for line in file:
                    if line.startswith(b'{"kind":"entity"'):
                        entity = decode_record(EntityLine, line.strip(), where="spool")
                        names_of.setdefault(entity.id, set()).update(entity.names)
        return names_of


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rest:
    """The archive's content except documents and their originals."""

    entities: Sequence[EntityRecord]
    edits: Sequence[EditRecord]
    communities: Sequence[CommunityRecord]
    summaries: Sequence[CommunitySummary]
    tree: ExportedTree
    evaluation: Path
    """Datasets, feedback and scores, as lines of a file."""


class Exporter:
    """Writes archives."""

    def __init__(self, source: ExportSource) -> None:
        self._source = source

    async def export(self, tenant: TenantId, folder: Path) -> Path:
        """Write the tenant's archive into ``folder``, and return its path. The caller removes the folder.

        Raises:
            NotFound: the tenant does not exist.
            Conflict: the tenant is not active, or changes faster than it can be read.
        """
        spool = _Spool(folder / "spool")
        await asyncio.to_thread(spool.folder.mkdir, parents=True)
        snapshot, remainder = await self._read_consistently(tenant, spool)
        path = folder / "archive"
        await asyncio.to_thread(self._write_archive, path, spool, snapshot, remainder)
        await asyncio.to_thread(shutil.rmtree, spool.folder)
        return path

    async def _read_consistently(self, tenant: TenantId, spool: _Spool) -> tuple[TenantSnapshot, _Rest]:
        async with AsyncExitStack() as locks:
            for look in range(_ATTEMPTS):
                if look == _UNHURRIED:
                    await locks.enter_async_context(self._source.queue.tenant_lock(TenantLock.COMMIT, tenant))
                snapshot = await self._source.transfer.snapshot(tenant)
                if snapshot.tenant.state not in (TenantState.ACTIVE, TenantState.SUSPENDED):
                    raise Conflict(f"the tenant is {snapshot.tenant.state.value}")
                if await self._read_documents(tenant, spool):
                    remainder = await self._read_rest(tenant, spool, snapshot)
                    now = (await self._source.transfer.snapshot(tenant)).tenant.state_version
                    if now == snapshot.tenant.state_version:
                        return snapshot, remainder
                _log.info("export_looks_again", tenant=str(tenant), look=look + 1)
        raise Conflict("the tenant changed during every attempt; retry when fewer documents change")

    async def _read_documents(self, tenant: TenantId, spool: _Spool) -> bool:
        """Read the documents that changed or are missing; False if one could not be read."""
        headers = await self._source.transfer.headers(tenant)
        for document_id in [id for id in spool.held if id not in headers]:
            await asyncio.to_thread(spool.drop_document, document_id)
        is_complete = True
        for document_id, header in headers.items():
            if spool.held.get(document_id) != header:
                is_complete &= await self._read_document(tenant, document_id, spool)
        # Write in the order of uploads, independent of the order of reading.
        spool.held = {id: spool.held[id] for id in headers if id in spool.held}
        return is_complete

    async def _read_document(self, tenant: TenantId, document_id: str, spool: _Spool) -> bool:
        record = await self._source.transfer.record(tenant, document_id)
        if record is None:
            return False
        knowledge = await knowledge_lines(self._source.graph, tenant, record)
        stored = await self._read_vectors(tenant, record)
        original: bytes | None = None
        try:
            if record.blob_key:
                original = await self._source.blobs.get(tenant, record.blob_key)
        except NotFound:
            if await self._source.transfer.record(tenant, document_id) != record:
                return False  # superseded since it was read
        # An interrupted reindexing has stored vectors of another embedder.
        prepared = tuple(map(self._with_usable_vectors, record.prepared))
        lines = [*record_lines(replace(record, prepared=prepared), stored, original=original is not None), *knowledge]
        await asyncio.to_thread(spool.keep_document, document_id, record.header, lines, original)
        return True

    def _with_usable_vectors(self, item: PreparedChunk) -> PreparedChunk:
        questions = item.questions
        if questions is not None:
            dimensions = self._source.embedder.dimensions
            items = (
                question if question.vector is None or len(question.vector) == dimensions else replace(question, vector=None)
                for question in questions.items
            )
            questions = replace(questions, items=tuple(items))
        return replace(item, vector=item.vector if self._has_usable_vector(item) else None, questions=questions)

    def _has_usable_vector(self, item: PreparedChunk) -> bool:
        return item.vector is not None and len(item.vector) == self._source.embedder.dimensions

    async def _read_vectors(self, tenant: TenantId, record: DocumentRecord) -> dict[str, str]:
        """Return the stored vectors of chunks without a computed vector on record."""
        computed = {item.chunk.id for item in record.prepared if self._has_usable_vector(item)}
        chunk_ids = [chunk.id for chunk in record.chunks if chunk.id not in computed]
        vectors = await self._source.vectors.vectors(tenant, Collection.CHUNKS, chunk_ids) if chunk_ids else {}
        return {id: pack_vector(vector) for id, vector in vectors.items()}

    async def _read_rest(self, tenant: TenantId, spool: _Spool, snapshot: TenantSnapshot) -> _Rest:
        return _Rest(
            entities=await self._read_entities(tenant, await asyncio.to_thread(spool.names_by_entity)),
            edits=await self._read_edits(tenant),
            communities=await self._read_communities(tenant, snapshot),
            summaries=await self._read_summaries(tenant),
            tree=await read_tree(self._source.catalogue, self._source.vectors, tenant),
            evaluation=await self._read_evaluation(tenant, spool),
        )

    async def _read_evaluation(self, tenant: TenantId, spool: _Spool) -> Path:
        path = spool.folder / "evaluation"
        await asyncio.to_thread(path.write_bytes, b"")
        async for lines in read_evaluation(self._source.catalogue.evaluation_transfer, tenant, spool.held.keys()):
            await asyncio.to_thread(_append_lines, path, lines)
        return path

    async def _read_entities(self, tenant: TenantId, names: Mapping[str, set[str]]) -> list[EntityRecord]:
        records: list[EntityRecord] = []
        for ids in _cut_pages(sorted(names)):
            for entity in (await self._source.graph.entities(tenant, ids)).values():
                # Omit a name that only documents outside the archive use.
                name = entity.name if entity.name in names[entity.id] else min(names[entity.id])
                records.append(EntityRecord.from_value(entity, name=name))
        return sorted(records, key=lambda entity: entity.id)

    async def _read_edits(self, tenant: TenantId) -> list[EditRecord]:
        """Return the edits of the graph, undone ones included, by number."""
        records: list[EditRecord] = []
        cursor: str | None = None
        while True:
            page = await self._source.catalogue.graph_edits.page(tenant, limit=_PAGE, cursor=cursor)
            for edit in page.items:
                times = {"created_at": edit.created_at, "undone_at": edit.undone_at}
                records.append(EditRecord.from_value(edit.draft, number=edit.number, **times))
            if (cursor := page.next_cursor) is None:
                return records[::-1]

    async def _read_communities(self, tenant: TenantId, snapshot: TenantSnapshot) -> list[CommunityRecord]:
        pointer, graph = snapshot.pointer, self._source.graph
        if pointer.generation == 0:
            return []
        communities = await graph.communities(tenant, pointer.generation)
        current = {community.id for community in communities}
        if pointer.stale:
            documents = self._source.catalogue.documents
            versions = await documents.visible_versions(tenant)
            order = await documents.visible_chunks_in_order(tenant)
            knowledge = await read_documents(tenant, await read_visible(graph, tenant, versions, order), documents)
            now = await asyncio.to_thread(fingerprint_communities, knowledge, communities)
            current = {community.id for community in communities if now.get(community.id) == community.fingerprint}
        vectors: dict[str, str] = {}
        for page in _cut_pages([community.id for community in communities]):
            points = {community_point_id(community_id, pointer.generation): community_id for community_id in page}
            stored = await self._source.vectors.vectors(tenant, Collection.NODES, list(points))
            vectors |= {points[point]: pack_vector(vector) for point, vector in stored.items()}
        return [
            _record_community(community, vectors.get(community.id), current=community.id in current) for community in communities
        ]

    async def _read_summaries(self, tenant: TenantId) -> list[CommunitySummary]:
        """Return every summary without statements that rest on invisible passages."""
        documents = self._source.catalogue.documents
        visible_summaries: list[CommunitySummary] = []
        for batch in _cut_pages(await self._source.transfer.summaries(tenant)):
            visible = await passages_behind(documents, tenant, batch)
            visible_summaries += [visible_summary(summary, visible) for summary in batch]
        return visible_summaries

    def _write_archive(self, path: Path, spool: _Spool, snapshot: TenantSnapshot, remainder: _Rest) -> None:
        with ArchiveWriter(path) as writer:
            writer.add_member(archive.MANIFEST, encode_record(self._make_manifest(spool, snapshot, remainder)))
            if remainder.edits:
                writer.add_member(archive.EDITS, b"".join(map(encode_record, remainder.edits)))
            writer.add_member(archive.ENTITIES, b"".join(map(encode_record, remainder.entities)))
            for number, document_id in enumerate(spool.held, start=1):
                writer.add_file(archive.record_name(number), spool.record_path(document_id))
                if spool.original_path(document_id).exists():
                    writer.add_file(archive.original_name(number), spool.original_path(document_id))
            writer.add_member(archive.COMMUNITIES, b"".join(map(encode_record, remainder.communities)))
            writer.add_member(
                archive.SUMMARIES, b"".join(encode_record(SummaryRecord(summary=summary)) for summary in remainder.summaries)
            )
            writer.add_member(archive.TREE, b"".join(map(encode_record, remainder.tree.nodes)))
            summaries = remainder.tree.summaries
            writer.add_member(
                archive.TREE_SUMMARIES, b"".join(encode_record(SummaryRecord(summary=summary)) for summary in summaries)
            )
            if remainder.evaluation.stat().st_size:
                writer.add_file(archive.EVALUATION, remainder.evaluation)
            end = End(
                documents=len(spool.held),
                entities=len(remainder.entities),
                communities=len(remainder.communities),
                summaries=len(remainder.summaries),
                tree_nodes=len(remainder.tree.nodes),
            )
            writer.add_member(archive.END, encode_record(end))

    def _make_manifest(self, spool: _Spool, snapshot: TenantSnapshot, remainder: _Rest) -> Manifest:
        pointer = snapshot.pointer
        generation = None
        if pointer.generation:
            generation = Generation(
                number=pointer.generation, stale=pointer.stale, built_at=pointer.built_at, details=dict(pointer.details)
            )
        return Manifest(
            format=FORMAT,
            version=VERSION,
            release=self._source.release,
            written_at=datetime.now(UTC),
            tenant=TenantName(id=snapshot.tenant.id.value, name=snapshot.tenant.name),
            state_version=snapshot.tenant.state_version,
            flags=dict(snapshot.flags),
            ontology=None if snapshot.ontology is None else asdict(snapshot.ontology),
            embedder=self._source.embedder.fingerprint,
            dimensions=self._source.embedder.dimensions,
            extractor=self._source.extraction.rules.version,
            extractors=dict(self._source.extraction.under(snapshot.ontology).versions()),
            documents=len(spool.held),
            generation=generation,
            tree=remainder.tree.generation,
        )


def _append_lines(path: Path, lines: Sequence[Record]) -> None:
    with path.open("ab") as file:
        file.writelines(map(encode_record, lines))


def _record_community(community: Community, vector: str | None, *, current: bool) -> CommunityRecord:
    return CommunityRecord.from_value(
        community, parent=community.parent_id, members=community.entity_ids, current=current, vector=vector
    )


def _cut_pages(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[start : start + _PAGE] for start in range(0, len(items), _PAGE))
