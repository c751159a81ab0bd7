"""Import of an archive into a tenant. Everything is staged invisibly, then made visible at once.

Each step can be repeated: ids derive from the archive's, a repeated write is equal, and a staged document is not computed
again. Model results come with the archive; vectors of another embedder are computed again.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.documents.chunking.passages import passage_text
from agentic_rag_backend.domain.document import Chunk, Failure, SyntheticQuestion, content_hash, question_id, stable_id
from agentic_rag_backend.domain.graph import (
    Community,
    CommunitySummary,
    DocumentKnowledge,
    Entity,
    Extraction,
    Mention,
    OtherName,
    Relationship,
    RelationshipSupport,
    Support,
    community_point_id,
    relationship_id,
)
from agentic_rag_backend.domain.graph_edits import GraphEdit
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.ingestion.prepare.computation import Computation, recipe_of
from agentic_rag_backend.ingestion.questions.asking import embed_questions
from agentic_rag_backend.ingestion.vectors.fact_points import FactPoints
from agentic_rag_backend.ingestion.vectors.reindexer import chunk_points
from agentic_rag_backend.jobs.runner import Run
from agentic_rag_backend.stores.blob.base import BlobStore, blob_key
from agentic_rag_backend.stores.catalogue.base import (
    Catalogue,
    ChunkQuestions,
    DocumentRecord,
    Opening,
    PreparedChunk,
    PreparedQuestion,
    TransferCatalogue,
)
from agentic_rag_backend.stores.graph.base import GraphStore
from agentic_rag_backend.stores.local_files import DiskSpace
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, VectorPoint, VectorStore
from agentic_rag_backend.themes.communities.detection.documents import choose_title, describe_documents
from agentic_rag_backend.themes.communities.detection.knowledge import VisibleKnowledge, read_visible
from agentic_rag_backend.themes.communities.generations import MIN_SEARCHABLE, Restorer, searchable_text
from agentic_rag_backend.themes.raptor.tree_publication import NodePoints
from agentic_rag_backend.transfer.evaluation_lines import AnyLine, EvaluationMapping
from agentic_rag_backend.transfer.identity import Identity, Passages, fingerprint_communities
from agentic_rag_backend.transfer.imported_trees import ImportedTree
from agentic_rag_backend.transfer.record_lines import ArchivedDocument, unpack_vector
from agentic_rag_backend.transfer.records import (
    ChunkLine,
    CommunityRecord,
    DocumentLine,
    EditRecord,
    EntityLine,
    EntityRecord,
    Manifest,
    NameRecord,
    QuestionsRecord,
    RelationshipLine,
)

EVALUATION = "evaluation"
"""Argument of an import job: whether the tenant had no datasets, feedback and scores before."""
_GROUP_CHUNKS = 64
_BATCH = 500
Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """The stores to write a tenant to, and the computation of results that the archive lacks."""

    catalogue: Catalogue
    transfer: TransferCatalogue
    graph: GraphStore
    vectors: VectorStore
    blobs: BlobStore
    computation: Computation
    disk_space: DiskSpace
    keep_originals: bool = True

    @property
    def facts(self) -> FactPoints:
        """Vector points of facts, consistent with the graph."""
        return FactPoints(self.graph, self.vectors)


@dataclass(slots=True)
class TenantImport:
    """Import into one tenant. Call the methods in the order of the archive's parts.

    Args:
        manifest: of the archive.
    """

    run: Run
    destination: Destination
    manifest: Manifest
    identity: Identity = field(init=False)
    types: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Name and type of the archive's entities, by their id in the archive."""
    versions: dict[str, int] = field(default_factory=dict)
    chunk_ids: dict[str, str] = field(default_factory=dict)
    """Chunk ids by the archive's chunk ids, if they differ."""
    documents: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """Of each document: its key, and by chunk id the title that names its themes. Empty if ids stay unchanged."""
    generation: int = 0
    edits: list[GraphEdit] = field(default_factory=list)
    communities: list[tuple[CommunityRecord, Community]] = field(default_factory=list)
    embedded: int = 0
    evaluated: int = 0
    """Number of datasets, cases, feedback and scores that were written."""
    tree: ImportedTree = field(init=False)
    _staged: frozenset[str] = frozenset()
    _scaffolds: int = 0

    def __post_init__(self) -> None:
        self.identity = Identity(TenantId(self.manifest.tenant.id), self.run.tenant)
        self.tree = ImportedTree(self.tenant, Passages(self.identity, self.chunk_ids))

    @property
    def tenant(self) -> TenantId:
        """The tenant that receives the archive."""
        return self.run.tenant

    @property
    def same_vectors(self) -> bool:
        """Return whether this deployment's embedder made the archive's vectors."""
        embedder = self.destination.computation.embedder
        return (self.manifest.embedder, self.manifest.dimensions) == (embedder.fingerprint, embedder.dimensions)

    async def load_staged_state(self) -> None:
        """Load the state that an interrupted attempt has staged."""
        self._staged = await self.destination.transfer.staged(self.tenant)

    async def write_entities(self, records: Sequence[EntityRecord]) -> None:
        """Write entities with their names, under a temporary version that `finish_import` removes.

        Otherwise the first written document would name them.
        """
        self.types.update((record.id, (record.name, record.type)) for record in records)
        for record in records:
            self.identity.note_name(record.id, record.name, record.type)
        self._scaffolds += 1
        await self.destination.graph.write_document(
            self.tenant,
            DocumentKnowledge(
                document_id=self._scaffold_id,
                version=self._scaffolds,
                title="",
                chunk_ids=(),
                entities=tuple(
                    Entity(id=self.identity.entity_id(record.id), name=record.name, type=record.type) for record in records
                ),
            ),
        )

    def read_edits(self, records: Sequence[EditRecord]) -> None:
        """Collect edits of the graph, with the ids of the target. `finish_import` records them."""
        for record in records:
            # Before entities are written: an editor may have renamed them, and ids derive from the names of documents.
            for id, name in ((record.entity_id, record.entity_name), *zip(record.entity_ids, record.entity_names, strict=True)):
                self.identity.note_name(id, name, "")
        self.edits += [self.identity.make_edit(record) for record in records]

    async def write_document(self, archived: ArchivedDocument) -> None:
        """Write a document to every store, invisibly."""
        document_id = self.identity.document_id(archived.document.id)
        chunks, knowledge = await asyncio.to_thread(self._read_document, archived, document_id)
        self.versions[document_id] = archived.document.version
        if not self.identity.kept:
            self.chunk_ids.update(zip((line.id for line in archived.chunks), (chunk.id for chunk in chunks), strict=True))
        await self.run.report_progress("documents", len(self.versions), self.manifest.documents)
        if document_id in self._staged:
            return
        record = self._make_record(archived, document_id, await self._prepare_chunks(archived, chunks))
        if archived.original is not None and record.blob_key:
            await self.destination.blobs.put(self.tenant, record.blob_key, archived.original)
        await self.destination.graph.write_document(self.tenant, knowledge)
        await self.destination.vectors.upsert(self.tenant, Collection.CHUNKS, chunk_points(record))
        await self.destination.facts.write_points(self.tenant, knowledge)
        await self.destination.transfer.stage(self.tenant, record)
        await self.run.count_save()

    async def read_communities(self, records: Sequence[CommunityRecord]) -> None:
        """Collect communities. `finish_import` writes them, because a parent may come after its children."""
        if not self.generation and self.manifest.generation is not None:
            last_number = (await self.destination.transfer.snapshot(self.tenant)).last_generation
            self.generation = max(self.manifest.generation.number, last_number + 1)
        await asyncio.to_thread(self._read_communities, records)

    def _read_communities(self, records: Sequence[CommunityRecord]) -> None:
        for record in records:
            members = tuple(map(self.identity.entity_id, record.members))
            community = Community(
                id=self.identity.community_id(members, record.id),
                generation=self.generation,
                level=record.level,
                parent_id=record.parent,
                entity_ids=members,
                fingerprint=record.fingerprint,
                entity_count=len(members),
            )
            self.communities.append((record, community))

    async def write_communities(self) -> None:
        """Write the generation to the graph, with the new ids of parents and the new fingerprints."""
        now: Mapping[str, str] = {}
        if not self.identity.kept and self.communities:
            order = [id for _, titles in sorted(self.documents, key=itemgetter(0)) for id in titles]
            knowledge = await read_visible(self.destination.graph, self.tenant, self.versions, order)
            now = await asyncio.to_thread(self._fingerprint_communities, knowledge)
        await asyncio.to_thread(self._name_communities, now)
        if self.generation:
            new_communities = [community for _, community in self.communities]
            await self.destination.graph.write_communities(self.tenant, self.generation, new_communities)

    def _fingerprint_communities(self, knowledge: VisibleKnowledge) -> dict[str, str]:
        titles = {id: title for _, titles in self.documents for id, title in titles.items()}
        knowledge = replace(knowledge, documents=describe_documents(knowledge, titles))
        return fingerprint_communities(knowledge, [community for _, community in self.communities])

    def _name_communities(self, now: Mapping[str, str]) -> None:
        ids = {record.id: community.id for record, community in self.communities}
        self.communities = [
            (
                record,
                replace(
                    community,
                    parent_id=None if record.parent is None else ids[record.parent],
                    fingerprint=self._fingerprint_summary(record, now.get(community.id)),
                ),
            )
            for record, community in self.communities
        ]

    async def write_summaries(self, read_summaries: Sequence[CommunitySummary]) -> None:
        """Record summaries in the order of their creation."""
        rounds = await asyncio.to_thread(self._group_summaries, read_summaries)
        for number in sorted(rounds):
            await self.destination.catalogue.communities.save_summaries(self.tenant, rounds[number])

    def _group_summaries(self, read_summaries: Sequence[CommunitySummary]) -> dict[int, list[CommunitySummary]]:
        fingerprint = {record.fingerprint: community.fingerprint for record, community in self.communities}
        passages = Passages(self.identity, self.chunk_ids)
        rounds: dict[int, list[CommunitySummary]] = defaultdict(list)
        occurrences: dict[str, int] = defaultdict(int)
        for summary in read_summaries:
            new_fingerprint = summary.fingerprint if self.identity.kept else fingerprint.get(summary.fingerprint)
            if new_fingerprint is not None:
                rounds[occurrences[new_fingerprint]].append(replace(passages.rewrite_value(summary), fingerprint=new_fingerprint))
                occurrences[new_fingerprint] += 1
        return rounds

    async def write_evaluation(self, lines: Sequence[AnyLine]) -> None:
        """Write datasets, feedback and scores. A tenant that has own ones keeps these alone."""
        if not self.run.job.arguments.get(EVALUATION):
            return
        mapping = EvaluationMapping(self.identity, self.chunk_ids, self.versions.keys())
        records = await asyncio.to_thread(lambda: [mapping.make_record(line) for line in lines])
        await self.destination.catalogue.evaluation_transfer.stage(self.tenant, records)
        self.evaluated += len(records)

    async def finish_import(self) -> None:
        """Write the search points of communities, remove the scaffold documents, and make everything visible."""
        await self.run.report_progress("communities", 0, len(self.communities), at_once=True)
        await self._write_community_points()
        catalogue, computation = self.destination.catalogue, self.destination.computation
        embedded = await self.tree.write_tree(
            catalogue.trees,
            NodePoints(self.destination.vectors, computation.embedder),
            self.manifest.tree,
            dimensions=self.manifest.dimensions if self.same_vectors else None,
        )
        self.embedded += embedded
        for number in range(1, self._scaffolds + 1):
            await self.destination.graph.delete_document(self.tenant, self._scaffold_id, up_to_version=number, above=number - 1)
        await self.destination.vectors.flush()
        await self.run.report_progress("open", len(self.versions), self.manifest.documents, at_once=True)
        generation = self.manifest.generation
        tree = self.manifest.tree
        opening = Opening(
            state_version=self.manifest.state_version,
            flags=self.manifest.flags,
            ontology=self.manifest.tenant_ontology,
            edits=tuple(self.edits),
            tree_stale=tree is not None and tree.stale,
        )
        if generation is not None and self.generation:
            opening = replace(
                opening,
                generation=self.generation,
                stale=generation.stale,
                built_at=generation.built_at,
                details=self._map_details(generation.details),
            )
        await self.destination.transfer.open(self.tenant, opening)

    # --- internals

    def _read_document(self, archived: ArchivedDocument, document_id: str) -> tuple[list[Chunk], DocumentKnowledge]:
        """Return the document's chunks and knowledge. Call it in a thread, because the time grows with the document."""
        archived.check_references(self.types.keys())
        chunks = self.identity.make_chunks(archived)
        if not self.identity.kept:
            title, key = archived.document.title, archived.document.key
            self.documents.append((key, {chunk.id: choose_title(title, key, chunk) for chunk in chunks}))
        return chunks, self._make_knowledge(archived, document_id, chunks)

    @property
    def _scaffold_id(self) -> str:
        return stable_id("import-scaffold", self.tenant)

    async def _prepare_chunks(self, archived: ArchivedDocument, chunks: Sequence[Chunk]) -> list[PreparedChunk]:
        """Return the chunks' results: the archive's, and for missing ones the results of this deployment's models."""
        results: dict[int, PreparedChunk] = {}
        for number, (line, chunk) in enumerate(zip(archived.chunks, chunks, strict=True)):
            if line.extraction is None:
                continue
            vector: Vector | None = None
            if self.same_vectors and line.vector is not None:
                vector = unpack_vector(line.vector, dimensions=self.manifest.dimensions)
            extraction = _of_chunk(line.extraction, chunk.id)
            failure = None if line.failure is None else replace(line.failure, chunk_id=chunk.id)
            recipe = self._choose_recipe(archived.document, chunk, line)
            results[number] = PreparedChunk(chunk, vector, extraction, recipe=recipe, failure=failure)
        await self._embed_chunks(archived.document.title, results)
        missing_numbers = [number for number in range(len(chunks)) if number not in results]
        title, method = archived.document.title, archived.document.options.extraction
        computation = self.destination.computation.make_computation(method, self.manifest.tenant_ontology)
        for start in range(0, len(missing_numbers), _GROUP_CHUNKS):
            await self.run.report_progress("documents", len(self.versions), self.manifest.documents)
            numbers = missing_numbers[start : start + _GROUP_CHUNKS]
            group = [chunks[number] for number in numbers]
            computed = await computation.compute(title, group, [computation.make_recipe(title, chunk) for chunk in group])
            results.update(zip(numbers, computed, strict=True))
        for number, questions in (await self._read_questions(archived, chunks)).items():
            results[number] = replace(results[number], questions=questions)
        return [results[number] for number in range(len(chunks))]

    async def _read_questions(self, archived: ArchivedDocument, chunks: Sequence[Chunk]) -> dict[int, ChunkQuestions]:
        """Return the archive's synthetic questions by the number of their chunk, with vectors of this deployment's embedder."""
        results = {
            number: _of_archive(line.questions, chunk.id, self.manifest.dimensions)
            for number, (line, chunk) in enumerate(zip(archived.chunks, chunks, strict=True))
            if line.questions is not None
        }
        if self.same_vectors:
            return results
        numbers = list(results)
        for start in range(0, len(numbers), _GROUP_CHUNKS):
            await self.run.report_progress("documents", len(self.versions), self.manifest.documents)
            group = numbers[start : start + _GROUP_CHUNKS]
            renewed = await embed_questions(self.destination.computation, [results[number] for number in group])
            self.embedded += sum(len(chunk_questions.items) for chunk_questions in renewed)
            results.update(zip(group, renewed, strict=True))
        return results

    async def _embed_chunks(self, title: str, results: dict[int, PreparedChunk]) -> None:
        """Embed the chunks without a vector, except chunks that this embedder refused before."""
        without = [
            number
            for number, item in results.items()
            if item.vector is None and not (self.same_vectors and item.failure is not None)
        ]
        for start in range(0, len(without), _GROUP_CHUNKS):
            await self.run.report_progress("documents", len(self.versions), self.manifest.documents)
            numbers = without[start : start + _GROUP_CHUNKS]
            vectors = await self.destination.computation.embed(
                [passage_text(title, results[position].chunk) for position in numbers]
            )
            self.embedded += len(numbers)
            for number, vector in zip(numbers, vectors, strict=True):
                chunk = results[number].chunk
                if isinstance(vector, np.ndarray):
                    results[number] = replace(results[number], vector=vector, failure=None)
                else:
                    failure = Failure("embed", vector.code, vector.message, chunk.id)
                    results[number] = replace(results[number], failure=failure)

    def _choose_recipe(self, document: DocumentLine, chunk: Chunk, line: ChunkLine) -> str | None:
        """Return the recipe of the result in this deployment; None if the result's inputs are not known."""
        if self.same_vectors and self.identity.kept:
            return line.recipe
        extractor = self.manifest.extractors.get(document.options.extraction, self.manifest.extractor)
        if line.recipe != recipe_of(self.manifest.embedder, extractor, document.title, replace(chunk, id=line.id)):
            return None
        return recipe_of(self.destination.computation.embedder.fingerprint, extractor, document.title, chunk)

    def _make_record(self, archived: ArchivedDocument, document_id: str, prepared: Sequence[PreparedChunk]) -> DocumentRecord:
        line, keeps_original = archived.document, archived.original is not None and self.destination.keep_originals
        chunk_ids = {chunk_line.id: item.chunk.id for chunk_line, item in zip(archived.chunks, prepared, strict=True)}
        return line.to_value(
            DocumentRecord,
            id=document_id,
            blob_key=blob_key(document_id, line.version) if keeps_original else "",
            failures=tuple(replace(failure, chunk_id=chunk_ids.get(failure.chunk_id or "")) for failure in line.failures),
            parent_id=None if line.parent_id is None or line.place is None else self.identity.document_id(line.parent_id),
            place=None if line.parent_id is None else line.place,
            prepared=tuple(prepared),
        )

    def _make_knowledge(self, archived: ArchivedDocument, document_id: str, chunks: Sequence[Chunk]) -> DocumentKnowledge:
        supports = [Support(document_id, archived.document.version, chunk.id) for chunk in chunks]
        relationships: dict[str, Relationship] = {}
        sentences: list[RelationshipSupport] = []
        for line in archived.relationships:
            relationship, new_supports = self._make_relationship(line, supports)
            relationships[relationship.id] = relationship
            sentences += new_supports
        return DocumentKnowledge(
            document_id=document_id,
            version=archived.document.version,
            title=archived.document.title,
            chunk_ids=tuple(chunk.id for chunk in chunks),
            entities=tuple(self._make_entity(entity_line) for entity_line in archived.entities),
            relationships=tuple(relationships.values()),
            mentions=tuple(
                Mention(self.identity.entity_id(entity_line.id), supports[mention.chunk], mention.count, mention.about)
                for entity_line in archived.entities
                for mention in entity_line.mentions
            ),
            relationship_supports=tuple(sentences),
        )

    def _make_relationship(
        self, line: RelationshipLine, supports: Sequence[Support]
    ) -> tuple[Relationship, list[RelationshipSupport]]:
        source, target = self.identity.entity_id(line.source), self.identity.entity_id(line.target)
        id = relationship_id(self.tenant, source, line.relation, target)
        sentences = [
            RelationshipSupport(
                relationship_id=id,
                support=supports[sentence.chunk],
                fact=sentence.fact,
                start_char=sentence.start_char,
                end_char=sentence.end_char,
            )
            for sentence in line.sentences
        ]
        relationship = Relationship(
            id=id,
            source_id=source,
            target_id=target,
            relation=line.relation,
            fact=sentences[0].fact,
            weight=line.weight,
            valid_at=line.valid_at,
            invalid_at=line.invalid_at,
            supports=tuple(dict.fromkeys(sentence.support for sentence in sentences)),
        )
        return relationship, sentences

    def _make_entity(self, line: EntityLine) -> Entity:
        archived_name, kind = self.types[line.id]
        names_said = {said_name.name: self._other_name(said_name) for said_name in line.said}
        own_names = [candidate for candidate in line.names if candidate in names_said and names_said[candidate].type] or list(
            line.names
        )
        name = archived_name if archived_name in own_names else own_names[0]
        main = names_said.get(name, OtherName(name))
        return Entity(
            id=self.identity.entity_id(line.id),
            name=name,
            type=main.type or kind,
            aliases=tuple(alias for alias in line.names if alias != name),
            description=main.description,
            assigned=main.assigned,
            mark=main.mark,
            other_names=tuple(other_name for other_name in names_said.values() if other_name.name != name),
        )

    def _other_name(self, record: NameRecord) -> OtherName:
        return record.to_value(OtherName, assigned=self.identity.entity_id(record.assigned) if record.assigned else "")

    def _fingerprint_summary(self, record: CommunityRecord, now: str | None) -> str:
        """Return the fingerprint with which a rebuild finds the summary. A changed community gets one that no rebuild finds."""
        if self.identity.kept:
            return record.fingerprint
        return now if record.current and now is not None else content_hash(f"imported {record.fingerprint}")

    def _map_details(self, details: Mapping[str, object]) -> dict[str, object]:
        if self.identity.kept:
            return dict(details)
        ids = {record.id: community.id for record, community in self.communities}
        coarse = details.get("coarse")
        ids_of_coarse = [ids[id] for id in coarse if id in ids] if isinstance(coarse, list) else []
        # Without the digest of the graph, the next rebuild reads all of it once.
        return {**{name: value for name, value in details.items() if name != "graph"}, "coarse": ids_of_coarse}

    async def _write_community_points(self) -> None:
        catalogue, vectors = self.destination.catalogue.communities, self.destination.vectors
        without: list[Community] = []
        for start in range(0, len(self.communities), _BATCH):
            batch = self.communities[start : start + _BATCH]
            summaries = await catalogue.summaries(self.tenant, [community.fingerprint for _, community in batch])
            points: list[VectorPoint] = []
            for record, community in batch:
                if len(community.entity_ids) < MIN_SEARCHABLE or community.fingerprint not in summaries:
                    continue
                if record.vector is None or not self.same_vectors:
                    without.append(community)
                    continue
                points.append(
                    VectorPoint(
                        id=community_point_id(community.id, self.generation),
                        kind=NodeKind.COMMUNITY,
                        dense=unpack_vector(record.vector, dimensions=self.manifest.dimensions),
                        text=searchable_text(summaries[community.fingerprint]),
                        generation=self.generation,
                    )
                )
            await vectors.upsert(self.tenant, Collection.NODES, points)
        embedder = self.destination.computation.embedder
        restored = await Restorer(communities=catalogue, vectors=vectors, embedder=embedder).restore(self.tenant, without)
        self.embedded += len(restored)


def _of_archive(record: QuestionsRecord, chunk_id: str, dimensions: int) -> ChunkQuestions:
    """Return the questions of a chunk, each text once."""
    texts = {item.text: item for item in record.items}
    items = (
        PreparedQuestion(
            SyntheticQuestion(id=question_id(chunk_id, text), chunk_id=chunk_id, text=text, source=item.source),
            None if item.vector is None else unpack_vector(item.vector, dimensions=dimensions),
        )
        for text, item in texts.items()
    )
    failure = None if record.failure is None else replace(record.failure, chunk_id=chunk_id)
    return ChunkQuestions(record.recipe, tuple(items), failure)


def _of_chunk(extraction: Extraction, chunk_id: str) -> Extraction:
    failure = None if extraction.failure is None else replace(extraction.failure, chunk_id=chunk_id)
    return replace(extraction, chunk_id=chunk_id, failure=failure)
