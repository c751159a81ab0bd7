"""Pure comparison of one document's data in the stores with its state in the catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from agentic_rag_backend.domain.filters import filterable_fields
from agentic_rag_backend.ingestion.reconciliation.report import Kind
from agentic_rag_backend.stores.catalogue.base import DocumentStatus
from agentic_rag_backend.stores.graph.base import HeldVersion
from agentic_rag_backend.stores.vector.base import NodeKind, StoredPoint
from agentic_rag_backend.stores.vector.conditions import tags_of

Differences = dict[Kind, list[str]]
"""Ids by kind. Vector kinds have ids of chunks or questions. Other kinds have document ids (with ``@version`` for knowledge)."""


def shown_version(status: DocumentStatus) -> int:
    """Return the version that readers see; 0 for none."""
    return 0 if status.deleted else status.document.current_version


def lacks_a_job(status: DocumentStatus) -> Kind | None:
    """Return the kind of difference if the document lacks the job to finish its work, else None."""
    if status.in_flight:
        return None
    if status.deleted:
        return Kind.DELETION_STUCK
    return Kind.DOCUMENT_STUCK if status.unfinished else None


@dataclass(slots=True)
class DocumentComparison:
    """Collects a document's data from the stores piece by piece, and records the differences.

    Args:
        expected: the chunks of the visible version; empty without one.
        questions: the embedded synthetic questions of these chunks.
    """

    status: DocumentStatus
    expected: Sequence[str]
    questions: Sequence[str] = ()
    _seen: set[str] = field(default_factory=set)
    _wrong: Differences = field(default_factory=dict)
    _held: set[int] = field(default_factory=set)
    _tags: frozenset[str] = frozenset()
    _wanted: frozenset[str] = frozenset()
    _asked: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        document = self.status.document
        fields = filterable_fields(document.metadata, document_id=document.id, key=document.key, title=document.title)
        self._tags = frozenset(tags_of(fields))
        self._wanted = frozenset(self.expected)
        self._asked = frozenset(self.questions)

    def add_points(self, points: Iterable[StoredPoint]) -> None:
        """Add points of the document."""
        visible_version = shown_version(self.status)
        for point in points:
            if point.kind == NodeKind.QUESTION:
                self._add_question(point, visible_version)
                continue
            if point.id not in self._wanted:
                self._note_difference(Kind.CHUNK_VECTOR_ORPHANED, point.id)
                continue
            self._seen.add(point.id)
            if point.version != visible_version:
                self._note_difference(Kind.CHUNK_VECTOR_VERSION, point.id)
            elif point.tags != self._tags:
                self._note_difference(Kind.CHUNK_VECTOR_METADATA, point.id)

    def _add_question(self, point: StoredPoint, visible_version: int) -> None:
        if point.id not in self._asked:
            self._note_difference(Kind.QUESTION_VECTOR_ORPHANED, point.id)
        elif point.version == visible_version:  # a point of another version is written again, as a missing one
            self._seen.add(point.id)
            if point.tags != self._tags:
                self._note_difference(Kind.CHUNK_VECTOR_METADATA, point.id)

    def add_version(self, stored_version: HeldVersion) -> None:
        """Add a version that the graph holds."""
        visible_version = shown_version(self.status)
        if stored_version.version != visible_version:
            self._note_difference(Kind.KNOWLEDGE_ORPHANED, f"{stored_version.document_id}@{stored_version.version}")
            return
        self._held.add(stored_version.version)
        if not stored_version.whole:
            self._note_difference(Kind.KNOWLEDGE_DAMAGED, f"{stored_version.document_id}@{stored_version.version}")

    def list_differences(self, *, original_missing: bool) -> Differences:
        """Return the differences. Call this after everything was added."""
        differences = {kind: list(ids) for kind, ids in self._wrong.items()}
        missing_ids = [id for id in self.expected if id not in self._seen]
        if missing_ids:
            differences[Kind.CHUNK_VECTOR_MISSING] = missing_ids
        unasked = [id for id in self.questions if id not in self._seen]
        if unasked:
            differences[Kind.QUESTION_VECTOR_MISSING] = unasked
        document, visible_version = self.status.document, shown_version(self.status)
        if visible_version and visible_version not in self._held:
            differences[Kind.KNOWLEDGE_MISSING] = [f"{document.id}@{visible_version}"]
        if original_missing:
            differences[Kind.ORIGINAL_MISSING] = [document.id]
        return differences

    def _note_difference(self, kind: Kind, id: str) -> None:
        self._wrong.setdefault(kind, []).append(id)
