"""Check of a whole archive before its import, in one pass.

`records` and `values` have the limits of single records, this module has the limits across records. An import uses the same
class, so its checks are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agentic_rag_backend.domain.graph_edits import MAX_GRAPH_EDITS
from agentic_rag_backend.errors import InvalidRequest, PayloadTooLarge
from agentic_rag_backend.transfer.archive import ArchiveLimits, open_archive
from agentic_rag_backend.transfer.contents import (
    Communities,
    EditRecords,
    Entities,
    Part,
    Summaries,
    TreeNodes,
    TreeSummaries,
    read_parts,
)
from agentic_rag_backend.transfer.record_lines import ArchivedDocument, unpack_vector
from agentic_rag_backend.transfer.records import CommunityRecord, EditRecord, EntityRecord, Manifest, TreeNodeRecord

COVERED = 16
"""How often the chunks of a document may cover its text. Chunks overlap by at most half of their size."""
MOST: Mapping[str, int] = {
    "documents": 1_000_000,
    "entities": 2_000_000,
    "edits": 100_000,
    "edits in effect": MAX_GRAPH_EDITS,
    "communities": 500_000,
    "summaries": 1_000_000,
    "tree nodes": 500_000,
    "tree summaries": 1_000_000,
}
"""Records of each kind in an archive."""


@dataclass(slots=True)
class Inspection:
    """Checks the parts of an archive in their order.

    Args:
        manifest: of the archive.
        limits: of the deployment that reads it.
    """

    manifest: Manifest
    limits: ArchiveLimits
    _counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MOST, 0))
    _entities: set[str] = field(default_factory=set)
    _last_edit: int = 0
    _documents: set[str] = field(default_factory=set)
    _keys: set[str] = field(default_factory=set)
    _parents: dict[str, tuple[int, str | None]] = field(default_factory=dict)
    _nodes: dict[str, int] = field(default_factory=dict)

    def check_part(self, part: Part) -> None:
        """Check a part, and that it fits the earlier parts.

        Raises:
            InvalidRequest: the message names the error, the limit and the value.
            PayloadTooLarge: there are too many records.
        """
        if isinstance(part, Entities):
            self._count_items("entities", len(part.records))
            for entity in part.records:
                self._check_entity(entity)
        elif isinstance(part, EditRecords):
            self._count_items("edits", len(part.records))
            self._count_items("edits in effect", sum(graph_edit.undone_at is None for graph_edit in part.records))
            for edit in part.records:
                self._check_edit(edit)
        elif isinstance(part, ArchivedDocument):
            self._count_items("documents", 1)
            self._check_document(part)
        elif isinstance(part, Communities):
            self._count_items("communities", len(part.records))
            for community in part.records:
                self._check_community(community)
        elif isinstance(part, TreeNodes):
            self._count_items("tree nodes", len(part.records))
            for node in sorted(part.records, key=lambda node: node.level):
                self._check_node(node)
        elif isinstance(part, (Summaries, TreeSummaries)):
            self._count_items("summaries" if isinstance(part, Summaries) else "tree summaries", len(part.records))

    def check_whole(self) -> None:
        """Check the conditions on the whole archive.

        Raises:
            InvalidRequest: the communities do not form a hierarchy.
        """
        for id, (level, parent) in self._parents.items():
            if parent is not None and self._parents.get(parent, (level, None))[0] >= level:
                raise InvalidRequest(
                    f"community {id} of level {level}: its parent {parent} is not in the archive, or not of a lower level"
                )

    def _count_items(self, kind: str, count: int) -> None:
        self._counts[kind] += count
        if self._counts[kind] > MOST[kind]:
            raise PayloadTooLarge(f"the archive has more than {MOST[kind]} {kind}, which is the limit")

    def _check_entity(self, record: EntityRecord) -> None:
        if record.id in self._entities:
            raise InvalidRequest(f"entity {record.id} is twice in the archive")
        self._entities.add(record.id)

    def _check_edit(self, record: EditRecord) -> None:
        if record.number <= self._last_edit:
            raise InvalidRequest(f"edit {record.number} comes after edit {self._last_edit}")
        self._last_edit = record.number

    def _check_document(self, archived: ArchivedDocument) -> None:
        line, where = archived.document, f"document {archived.document.id}"
        if line.id in self._documents or line.key in self._keys:
            raise InvalidRequest(f"{where}, or another document with its key, is twice in the archive")
        self._documents.add(line.id)
        self._keys.add(line.key)
        if len(line.text) > self.limits.original:
            raise PayloadTooLarge(
                f"{where}: its text has {len(line.text)} characters; the limit is {self.limits.original} (MAX_UPLOAD_MB)"
            )
        if not line.text.strip():
            raise InvalidRequest(f"{where}: its text is blank")
        archived.check_references(self._entities)
        if archived.original is not None and line.size_bytes != len(archived.original):
            raise InvalidRequest(f"{where}: its original has {len(archived.original)} bytes, not {line.size_bytes} (size_bytes)")
        self._check_chunks(archived, where)

    def _check_chunks(self, archived: ArchivedDocument, where: str) -> None:
        before, covered, limit = -1, 0, COVERED * len(archived.document.text)
        for chunk in archived.chunks:
            if chunk.start_char <= before:
                raise InvalidRequest(f"{where}: a chunk begins at {chunk.start_char}; the one before began at {before}")
            before = chunk.start_char
            covered += chunk.end_char - chunk.start_char
            self._check_vector(chunk.vector, where)
            for question in chunk.questions.items if chunk.questions is not None else ():
                self._check_vector(question.vector, where)
        if covered > limit:
            raise InvalidRequest(
                f"{where}: its {len(archived.chunks)} chunks have {covered} characters together; "
                f"the limit is {limit}, {COVERED} times those of its text"
            )

    def _check_community(self, record: CommunityRecord) -> None:
        if self.manifest.generation is None:
            raise InvalidRequest("the archive has communities but no generation")
        if record.id in self._parents:
            raise InvalidRequest(f"community {record.id} is twice in the archive")
        if len(set(record.members)) < len(record.members):
            raise InvalidRequest(f"community {record.id} has a member twice")
        self._parents[record.id] = (record.level, record.parent)
        self._check_vector(record.vector, f"community {record.id}")

    def _check_node(self, record: TreeNodeRecord) -> None:
        """Check a node. Children come before their parents, and leaves name the document of each passage."""
        if self.manifest.tree is None:
            raise InvalidRequest("the archive has nodes but no tree")
        if record.id in self._nodes or len(record.documents) != (len(record.children) if record.level == 1 else 0):
            raise InvalidRequest(f"node {record.id} of the archive's tree is duplicate, or has no documents")
        if record.level > 1 and any(self._nodes.get(child) != record.level - 1 for child in record.children):
            raise InvalidRequest(f"node {record.id} of the archive's tree has missing children")
        self._nodes[record.id] = record.level
        self._check_vector(record.vector, f"node {record.id}")

    def _check_vector(self, packed: str | None, where: str) -> None:
        if packed is not None:
            unpack_vector(packed, dimensions=self.manifest.dimensions, where=where)


def inspect_archive(path: Path, limits: ArchiveLimits) -> Manifest:
    """Read the archive at ``path`` whole and return its manifest.

    Raises:
        InvalidRequest: it cannot be imported; the message gives the reason.
        PayloadTooLarge: the archive or a part of it is above its limit.
    """
    with open_archive(path, limits) as reader:
        archive_parts = read_parts(reader, limits)
        manifest = next(archive_parts)
        if not isinstance(manifest, Manifest):  # pragma: no cover - `read_parts` begins with it
            raise InvalidRequest("this is not an archive of a tenant")
        inspection = Inspection(manifest, limits)
        for part in archive_parts:
            inspection.check_part(part)
        inspection.check_whole()
    return manifest
