"""The lines of an archive, each a JSON object. What is read here was written by others: every field has its bounds."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, RootModel, StringConstraints, ValidationError

from agentic_rag_backend.domain.document import DocumentState, Failure, ProcessingOptions
from agentic_rag_backend.domain.graph import CommunitySummary, Extraction
from agentic_rag_backend.errors import InvalidRequest

FORMAT: Final = "agentic-rag tenant"
VERSION: Final = 1
"""Raised when an older release could not read what is written, or would read it wrongly."""

_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_SHOWN = 3
Uuid = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=2_000)]
Packed = Annotated[str, StringConstraints(max_length=400_000)]
"""A vector: float32, little-endian, in base64."""
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
Number = Annotated[int, Field(ge=1, le=2**31 - 1)]


class Record(BaseModel):
    """One line."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TenantName(Record):
    """Whose archive it is."""

    id: Annotated[str, StringConstraints(pattern=r"^t_[0-9a-f]{32}$")]
    name: Annotated[str, StringConstraints(min_length=1, max_length=128)]


class Generation(Record):
    """The communities' current generation."""

    number: Number
    stale: bool
    built_at: AwareDatetime | None
    details: dict[str, Any]


class Manifest(Record):
    """What the archive is: its first member.

    ``embedder`` and ``extractor`` name what vectors and extractions were made with.
    """

    format: Literal["agentic-rag tenant"]
    version: Literal[1]
    release: Name
    written_at: AwareDatetime
    tenant: TenantName
    state_version: Count
    flags: dict[Name, bool]
    embedder: Name
    dimensions: Annotated[int, Field(ge=1, le=65_536)]
    extractor: Name
    documents: Count
    generation: Generation | None
    tree: Generation | None = None
    """Of the tree over passages."""


class EntityRecord(Record):
    """An entity as the graph shows it; ``name`` is one that some document of the archive uses."""

    id: Uuid
    name: Name
    type: Annotated[str, StringConstraints(max_length=200)]


class DocumentLine(Record):
    """A document and its visible version."""

    kind: Literal["document"] = "document"
    id: Uuid
    version: Number
    key: Annotated[str, StringConstraints(min_length=1, max_length=2_000)]
    state: Literal[DocumentState.READY, DocumentState.PARTIAL]
    title: str
    submitted_title: str
    metadata: dict[str, Any]
    submitted_metadata: dict[str, Any]
    content_hash: Sha256
    media_type: Annotated[str, StringConstraints(max_length=200)]
    size_bytes: Count
    options: ProcessingOptions
    text: str
    created_at: AwareDatetime
    updated_at: AwareDatetime
    version_created_at: AwareDatetime
    failures: tuple[Failure, ...]
    original: bool
    """Whether the next member is its original; where originals are gone, there is none."""


class ChunkLine(Record):
    """A passage of the document's text, and what was computed for it. The lines are in reading order."""

    kind: Literal["chunk"] = "chunk"
    id: Uuid
    start_char: Count
    end_char: Count
    start_line: Count
    end_line: Count
    size_tokens: Count
    headings: tuple[str, ...]
    extraction: Extraction | None
    """None: nothing is on record, and it is computed again."""
    recipe: Sha256 | None
    failure: Failure | None
    vector: Packed | None


class Mention(Record):
    """In which chunk (by position) an entity is named."""

    chunk: Count
    count: Count
    about: bool


class EntityLine(Record):
    """What the document calls an entity, and where."""

    kind: Literal["entity"] = "entity"
    id: Uuid
    names: tuple[Name, ...] = Field(min_length=1)
    mentions: tuple[Mention, ...]


class Sentence(Record):
    """Where (chunk by position, offsets in it) a relationship is said; without words of its own, from 0 to 0."""

    chunk: Count
    start_char: Count
    end_char: Count
    fact: str


class RelationshipLine(Record):
    """A relationship that the document says."""

    kind: Literal["relationship"] = "relationship"
    source: Uuid
    target: Uuid
    relation: Name
    weight: Annotated[float, Field(allow_inf_nan=False)]
    valid_at: datetime | None
    invalid_at: datetime | None
    sentences: tuple[Sentence, ...] = Field(min_length=1)


class CommunityRecord(Record):
    """A community of the current generation; ``current``: its fingerprint is that of the knowledge in the archive."""

    id: Uuid
    level: Count
    parent: Uuid | None
    members: tuple[Uuid, ...]
    fingerprint: Name
    current: bool
    vector: Packed | None


class SummaryRecord(Record):
    """A summary of a community, paid for or not."""

    summary: CommunitySummary


class TreeNodeRecord(Record):
    """A node of the current tree over passages; children are chunks at level 1, with their documents, and nodes above."""

    id: Uuid
    level: Number
    children: tuple[Uuid, ...] = Field(min_length=1)
    documents: tuple[Uuid, ...]
    fingerprint: Name
    size: Count
    prompt_version: Name
    model: Name
    vector: Packed | None


class End(Record):
    """The last member: without it, the archive was cut off."""

    documents: Count
    entities: Count
    communities: Count
    summaries: Count
    tree_nodes: Count = 0


class PartOfDocument(RootModel[Annotated[ChunkLine | EntityLine | RelationshipLine, Field(discriminator="kind")]]):
    """A line of a document's record after the first."""


R = TypeVar("R", bound=BaseModel)


def decoded(kind: type[R], line: bytes, *, where: str) -> R:
    """Return the record that ``line`` says.

    Raises:
        InvalidRequest: it says none, naming the fields that are wrong and never what is in them.
    """
    if _NUL.search(line):
        raise InvalidRequest(f"{where}: a text holds NUL, which no store keeps")
    try:
        return kind.model_validate_json(line)
    except ValidationError as error:
        told = (f"{'.'.join(map(str, item['loc'])) or 'line'}: {item['msg']}" for item in error.errors(include_input=False))
        raise InvalidRequest(f"{where}: {'; '.join(list(told)[:_SHOWN])[:500]}") from None


def encoded(record: BaseModel) -> bytes:
    """Return the line that says ``record``."""
    return record.model_dump_json().encode() + b"\n"
