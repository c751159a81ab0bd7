"""The parts of an archive, in order, and the check of a whole archive before its import, in one pass.

`records` and `values` have the limits of single records, this module has the limits across records. An import uses the same
class, so its checks are the same.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TypeVar

from agentic_rag_backend.domain.graph import CommunitySummary
from agentic_rag_backend.domain.graph_edits import MAX_GRAPH_EDITS
from agentic_rag_backend.errors import InvalidRequest, PayloadTooLarge
from agentic_rag_backend.transfer import archive
from agentic_rag_backend.transfer.archive import ArchiveLimits, ArchiveReader, Member, open_archive
from agentic_rag_backend.transfer.evaluation_lines import AnyLine, EvaluationInspection, EvaluationLine
from agentic_rag_backend.transfer.record_lines import ArchivedDocument, unpack_vector
from agentic_rag_backend.transfer.records import (
    FORMAT,
    VERSION,
    CommunityRecord,
    DocumentLine,
    EditRecord,
    End,
    EntityRecord,
    Manifest,
    PartOfDocument,
    R,
    SummaryRecord,
    TreeNodeRecord,
    decode_record,
)

T = TypeVar("T")
_BATCH = 500


@dataclass(frozen=True, slots=True)
class Entities:
    """Some of the archive's entities."""

    records: tuple[EntityRecord, ...]


@dataclass(frozen=True, slots=True)
class EditRecords:
    """Some of the edits of its graph."""

    records: tuple[EditRecord, ...]


@dataclass(frozen=True, slots=True)
class Communities:
    """Some of its communities."""

    records: tuple[CommunityRecord, ...]


@dataclass(frozen=True, slots=True)
class Summaries:
    """Some of its summaries."""

    records: tuple[CommunitySummary, ...]


@dataclass(frozen=True, slots=True)
class TreeNodes:
    """Some of the nodes of its tree."""

    records: tuple[TreeNodeRecord, ...]


@dataclass(frozen=True, slots=True)
class TreeSummaries:
    """Some of the summaries of these nodes."""

    records: tuple[CommunitySummary, ...]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Some of its datasets, cases, feedback and scores."""

    lines: tuple[AnyLine, ...]


Theme = Communities | Summaries | TreeNodes | TreeSummaries
Part = Manifest | Entities | EditRecords | ArchivedDocument | Theme | Evaluation | End


def read_parts(reader: ArchiveReader, limits: ArchiveLimits) -> Iterator[Part]:
    """Yield the manifest, then the parts that it announces, then the end.

    Raises:
        InvalidRequest: the archive is damaged, incomplete, of a newer format, or not written by an export.
        PayloadTooLarge: the archive or a part of it is above its limit.
    """
    members = iter(reader.read_members())
    yield _read_manifest(next(members, None))
    member = next(members, None)
    if member is not None and member.name == archive.EDITS:
        yield from map(EditRecords, _read_records(EditRecord, member))
        member = next(members, None)
    yield from map(Entities, _read_records(EntityRecord, _require_name(member, archive.ENTITIES)))
    documents, member = yield from _read_documents(members, limits)
    yield from map(Communities, _read_records(CommunityRecord, _require_name(member, archive.COMMUNITIES)))
    for batch in _read_records(SummaryRecord, _require_member(members, archive.SUMMARIES)):
        yield Summaries(tuple(record.summary for record in batch))
    yield from map(TreeNodes, _read_records(TreeNodeRecord, _require_member(members, archive.TREE)))
    for batch in _read_records(SummaryRecord, _require_member(members, archive.TREE_SUMMARIES)):
        yield TreeSummaries(tuple(record.summary for record in batch))
    yield from _read_end(members, documents)


def _read_documents(
    members: Iterator[Member], limits: ArchiveLimits
) -> Generator[ArchivedDocument, None, tuple[int, Member | None]]:
    """Yield the documents with their originals. Return their number, and the member that follows them."""
    documents = 0
    pending: ArchivedDocument | None = None
    member = next(members, None)
    while member is not None and member.name.startswith("documents/"):
        if member.name == archive.record_name(documents + 1) and not (pending and pending.document.original):
            if pending is not None:
                yield pending
            pending = _read_document(member, limits)
            documents += 1
        elif pending is not None and member.name == archive.original_name(documents) and pending.document.original:
            pending.original = member.read_content(limit=limits.original)
            yield pending
            pending = None
        else:
            raise InvalidRequest(f"the archive contains {member.name!r} at a wrong position")
        member = next(members, None)
    if pending is not None:
        yield pending
    return documents, member


def _read_end(members: Iterator[Member], documents: int) -> Iterator[Evaluation | End]:
    """Yield the evaluation, if there is any, and the end."""
    member = next(members, None)
    if member is not None and member.name == archive.EVALUATION:
        for lines in _read_records(EvaluationLine, member):
            yield Evaluation(tuple(line.root for line in lines))
        member = next(members, None)
    end = decode_record(End, archive.read_small_member(_require_name(member, archive.END)), where=archive.END)
    if end.documents != documents:
        raise InvalidRequest(f"the archive contains {documents} documents instead of {end.documents}")
    if next(members, None) is not None:
        raise InvalidRequest("the archive contains members after its end")
    yield end


def _read_manifest(member: Member | None) -> Manifest:
    if member is None or member.name != archive.MANIFEST:
        raise InvalidRequest("this is not an archive of a tenant: it does not begin with a manifest")
    content = archive.read_small_member(member)
    manifest = archive.parse_any_object(content)
    version = manifest.get("version")
    if manifest.get("format") != FORMAT or not isinstance(version, int):
        raise InvalidRequest(f"this is not an archive of a tenant: the format of its manifest is not {FORMAT!r}")
    if version > VERSION:
        raise InvalidRequest(f"the archive is of format {version}; this release reads up to {VERSION}: update it first")
    return decode_record(Manifest, content, where=archive.MANIFEST)


def _require_member(members: Iterator[Member], name: str) -> Member:
    return _require_name(next(members, None), name)


def _require_name(member: Member | None, name: str) -> Member:
    if member is None:
        raise InvalidRequest(f"the archive is cut off: {name} is missing")
    if member.name != name:
        raise InvalidRequest(f"the archive contains {member.name!r} instead of {name}")
    return member


def _read_records(kind: type[R], member: Member) -> Iterator[tuple[R, ...]]:
    lines = enumerate(member.read_lines(limit=archive.PART_LINE_BYTES), start=1)
    return _batch_records(decode_record(kind, line, where=f"{member.name}, line {number}") for number, line in lines)


def _read_document(member: Member, limits: ArchiveLimits) -> ArchivedDocument:
    lines = member.read_lines(limit=archive.PART_LINE_BYTES, first_limit=limits.document_line)
    first_line = next(lines, None)
    if first_line is None:
        raise InvalidRequest(f"{member.name} is empty")
    document = ArchivedDocument(decode_record(DocumentLine, first_line, where=f"{member.name}, line 1"))
    for number, line in enumerate(lines, start=2):
        document.add_line(decode_record(PartOfDocument, line, where=f"{member.name}, line {number}").root)
    return document


def _batch_records(items: Iterable[T]) -> Iterator[tuple[T, ...]]:
    iterator = iter(items)
    while batch := tuple(islice(iterator, _BATCH)):
        yield batch


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
    _evaluation: EvaluationInspection = field(init=False)

    def __post_init__(self) -> None:
        self._evaluation = EvaluationInspection(self._documents)

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
        elif isinstance(part, Evaluation):
            for line in part.lines:
                self._evaluation.check_line(line)
        elif isinstance(part, Theme):
            self._check_theme(part)

    def _check_theme(self, part: Theme) -> None:
        if isinstance(part, Communities):
            self._count_items("communities", len(part.records))
            for community in part.records:
                self._check_community(community)
        elif isinstance(part, TreeNodes):
            self._count_items("tree nodes", len(part.records))
            for node in sorted(part.records, key=lambda node: node.level):
                self._check_node(node)
        else:
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
