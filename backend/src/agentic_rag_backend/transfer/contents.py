"""The parts of an archive, in order; every part is checked before it is returned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from agentic_rag_backend.domain.graph import CommunitySummary
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.transfer import archive
from agentic_rag_backend.transfer.archive import ArchiveLimits, ArchiveReader, Member
from agentic_rag_backend.transfer.record_lines import ArchivedDocument
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


Part = Manifest | Entities | EditRecords | ArchivedDocument | Communities | Summaries | TreeNodes | TreeSummaries | End


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
    yield from map(Communities, _read_records(CommunityRecord, _require_name(member, archive.COMMUNITIES)))
    for batch in _read_records(SummaryRecord, _require_member(members, archive.SUMMARIES)):
        yield Summaries(tuple(record.summary for record in batch))
    yield from map(TreeNodes, _read_records(TreeNodeRecord, _require_member(members, archive.TREE)))
    for batch in _read_records(SummaryRecord, _require_member(members, archive.TREE_SUMMARIES)):
        yield TreeSummaries(tuple(record.summary for record in batch))
    end = decode_record(End, archive.read_small_member(_require_member(members, archive.END)), where=archive.END)
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
