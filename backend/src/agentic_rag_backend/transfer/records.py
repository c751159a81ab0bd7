"""Records of an archive: one JSON object per line. Archives are untrusted, so every field has limits."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Annotated, Any, Final, Literal, Self, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, RootModel, StringConstraints, ValidationError, create_model, model_validator
from pydantic_core import ErrorDetails

from agentic_rag_backend.domain.document import MAX_QUESTIONS_PER_CHUNK, DocumentState
from agentic_rag_backend.domain.graph import NameMark
from agentic_rag_backend.domain.graph_edits import (
    MAX_EDITED_DOCUMENTS,
    MAX_EDITED_ENTITIES,
    MAX_EDITED_NAME_CHARACTERS,
    MAX_EDITED_NAMES,
    MAX_REASON_CHARACTERS,
)
from agentic_rag_backend.domain.location import LOCATION_FIELDS, LOCATION_TABLE, FieldKind, Location, LocationField
from agentic_rag_backend.domain.ontology import Ontology, ontology_of
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.transfer.value_checks import (
    MAX_COUNTER,
    MAX_ITEMS,
    MAX_LEVEL,
    MAX_MEMBERS,
    MAX_WORD_CHARACTERS,
    Count,
    Counter,
    Details,
    Extracted,
    Failed,
    Flag,
    Key,
    Level,
    Line,
    MediaType,
    Metadata,
    Name,
    Packed,
    Place,
    Processing,
    QuestionRecipe,
    QuestionText,
    RegionRow,
    Sha256,
    Summary,
    TenantNameText,
    Time,
    Title,
    Uuid,
    Validity,
    Weight,
    Word,
)
from agentic_rag_backend.wording import message_of, shorten_line

FORMAT: Final = "agentic-rag tenant"
VERSION: Final = 1
"""Increase it if an older release cannot read the new format, or would misread it."""

_SHOWN = 3

R = TypeVar("R", bound=BaseModel)
V = TypeVar("V")


class Record(BaseModel):
    """One line. Its fields have the names of the value that it records, so each field is described here only."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def from_value(cls, value: object, /, **changed: Any) -> Self:
        """Return the record of ``value``. ``changed`` has the fields that ``value`` lacks, or has in another form."""
        equal_fields = {name: getattr(value, name) for name in cls.model_fields if name not in changed and hasattr(value, name)}
        return cls.model_validate({**equal_fields, **changed})

    def to_value(self, kind: type[V], /, **changed: Any) -> V:
        """Return the value that is recorded, a dataclass. ``changed`` has the fields that the record has in another form."""
        names = {item.name for item in fields(cast(Any, kind))} & type(self).model_fields.keys()
        return kind(**{**{name: getattr(self, name) for name in names}, **changed})


class TenantName(Record):
    """The archive's tenant."""

    id: Annotated[str, StringConstraints(pattern=r"^t_[0-9a-f]{32}$")]
    name: TenantNameText


class Generation(Record):
    """The communities' current generation."""

    number: Counter
    stale: bool
    built_at: Time | None
    details: Details


class Manifest(Record):
    """The archive's first member, which describes it.

    ``embedder`` identifies the model of vectors. ``extractors`` identify the methods of extraction by name; ``extractor`` is the
    one of archives that lack it.
    """

    format: Literal["agentic-rag tenant"]
    version: Literal[1]
    release: Name
    written_at: Time
    tenant: TenantName
    state_version: Annotated[int, Field(ge=0, le=MAX_COUNTER)]
    flags: dict[Name, Flag]
    ontology: dict[str, Any] | None = None
    embedder: Name
    dimensions: Annotated[int, Field(ge=1, le=65_536)]
    extractor: Name
    extractors: dict[Name, Name] = Field(default_factory=dict)
    documents: Count
    generation: Generation | None
    tree: Generation | None = None
    """Generation of the tree over passages."""

    @property
    def tenant_ontology(self) -> Ontology | None:
        """The ontology that the tenant has set. Raises `InvalidRequest` if it is none."""
        return None if self.ontology is None else ontology_of(self.ontology)


class EntityRecord(Record):
    """An entity of the graph. ``name`` is used by a document of the archive."""

    id: Uuid
    name: Name
    type: Annotated[str, StringConstraints(max_length=MAX_WORD_CHARACTERS)]


class EditRecord(Record):
    """An edit of the graph. For the fields see `EditDraft`."""

    number: Counter
    kind: Literal["merge", "split", "rename", "delete"]
    entity_id: Uuid
    entity_name: Name
    entity_ids: Annotated[tuple[Uuid, ...], Field(max_length=MAX_EDITED_ENTITIES)] = ()
    entity_names: Annotated[tuple[Name, ...], Field(max_length=MAX_EDITED_ENTITIES)] = ()
    document_ids: Annotated[tuple[Uuid, ...], Field(max_length=MAX_EDITED_DOCUMENTS)] = ()
    names: Annotated[tuple[Name, ...], Field(max_length=MAX_EDITED_NAMES)] = ()
    kept_names: Annotated[tuple[Name, ...], Field(max_length=MAX_ITEMS)] = ()
    new_id: Uuid | Literal[""] = ""
    name: Annotated[str, StringConstraints(max_length=MAX_EDITED_NAME_CHARACTERS)] = ""
    type: Annotated[str, StringConstraints(max_length=MAX_EDITED_NAME_CHARACTERS)] = ""
    reason: Annotated[str, StringConstraints(max_length=MAX_REASON_CHARACTERS)] = ""
    created_at: Time
    undone_at: Time | None = None

    @model_validator(mode="after")
    def _names_belong_to_ids(self) -> EditRecord:
        if len(self.entity_ids) != len(self.entity_names):
            raise ValueError("entity_ids and entity_names must have the same length")
        return self


class DocumentLine(Record):
    """A document and its visible version."""

    kind: Literal["document"] = "document"
    id: Uuid
    version: Counter
    key: Key
    state: Literal[DocumentState.READY, DocumentState.PARTIAL]
    title: Title
    submitted_title: Title
    metadata: Metadata
    submitted_metadata: Metadata
    content_hash: Sha256
    media_type: MediaType
    size_bytes: Count
    options: Processing
    text: str
    created_at: Time
    updated_at: Time
    version_created_at: Time
    failures: Annotated[tuple[Failed, ...], Field(max_length=MAX_ITEMS)]
    parent_id: Uuid | None = None
    place: Place | None = None
    original: bool
    """Whether the next member is its original. Deleted originals have no member."""


class QuestionRecord(Record):
    """A synthetic question of a chunk."""

    text: QuestionText
    source: Literal["patterns", "model"]
    vector: Packed | None


class QuestionsRecord(Record):
    """How a chunk's synthetic questions were made, and the questions."""

    recipe: QuestionRecipe
    failure: Failed | None
    items: Annotated[tuple[QuestionRecord, ...], Field(max_length=MAX_QUESTIONS_PER_CHUNK)]


class _ChunkStart(Record):
    """The first fields of a passage's line."""

    kind: Literal["chunk"] = "chunk"
    id: Uuid


def _location_limits(row: LocationField) -> Any:
    """Return the type of a field of a passage's line, and its default."""
    match row.kind:
        case FieldKind.COUNT:
            return Count, ...
        case FieldKind.OPTIONAL_COUNT:
            return Count | None, None
        case FieldKind.TEXT:
            return Annotated[str, Field(max_length=row.most)], ""
        case FieldKind.TEXTS:
            return Annotated[tuple[Line, ...], Field(max_length=row.most)], ()
        case FieldKind.REGIONS:
            return Annotated[tuple[RegionRow, ...], Field(max_length=row.most)], ()


_LocatedLine = create_model("_LocatedLine", __base__=_ChunkStart, **{row.name: _location_limits(row) for row in LOCATION_TABLE})


class ChunkLine(_LocatedLine):  # type: ignore[misc, valid-type]  # its fields come from a table
    """A passage of the document's text with its location and its computed results. The lines are in reading order."""

    size_tokens: Count
    extraction: Extracted | None
    """None: no result is stored, and it is computed again."""
    recipe: Sha256 | None
    failure: Failed | None
    vector: Packed | None
    questions: QuestionsRecord | None = None

    @property
    def location(self) -> Location:
        """The place of the passage in the document's text."""
        return Location.of_fields({name: getattr(self, name) for name in LOCATION_FIELDS})


class MentionRecord(Record):
    """The chunk (by position) that names an entity."""

    chunk: Count
    count: Count
    about: bool


class NameRecord(Record):
    """What the document says about a name: its type and description, or the name of which it is an alias."""

    name: Name
    full: Name | Literal[""] = ""
    type: Annotated[str, StringConstraints(max_length=MAX_WORD_CHARACTERS)] = ""
    description: Name | Literal[""] = ""
    assigned: Uuid | Literal[""] = ""
    mark: NameMark = ""


class EntityLine(Record):
    """The document's names for an entity, and their places. Archives of earlier releases have no ``said``."""

    kind: Literal["entity"] = "entity"
    id: Uuid
    names: tuple[Name, ...] = Field(min_length=1, max_length=MAX_ITEMS)
    said: tuple[NameRecord, ...] = Field(default=(), max_length=MAX_ITEMS)
    mentions: tuple[MentionRecord, ...]


class SentenceRecord(Record):
    """The place (chunk by position, offsets in it) that states a relationship; 0 to 0 if it has no words of its own."""

    chunk: Count
    start_char: Count
    end_char: Count
    fact: Line


class RelationshipLine(Record):
    """A relationship that the document states."""

    kind: Literal["relationship"] = "relationship"
    source: Uuid
    target: Uuid
    relation: Name
    weight: Weight
    valid_at: Validity | None
    invalid_at: Validity | None
    sentences: tuple[SentenceRecord, ...] = Field(min_length=1)


class CommunityRecord(Record):
    """A community of the current generation. ``current``: its fingerprint matches the knowledge in the archive."""

    id: Uuid
    level: Level
    parent: Uuid | None
    members: Annotated[tuple[Uuid, ...], Field(max_length=MAX_MEMBERS)]
    fingerprint: Word
    current: bool
    vector: Packed | None


class SummaryRecord(Record):
    """A summary of a community."""

    summary: Summary


class TreeNodeRecord(Record):
    """A node of the current tree over passages. Children at level 1 are chunks, with their documents; above, nodes."""

    id: Uuid
    level: Annotated[int, Field(ge=1, le=MAX_LEVEL)]
    children: tuple[Uuid, ...] = Field(min_length=1, max_length=MAX_ITEMS)
    documents: Annotated[tuple[Uuid, ...], Field(max_length=MAX_ITEMS)]
    fingerprint: Word
    size: Count
    prompt_version: Word
    model: Word
    vector: Packed | None


class End(Record):
    """The last member. An archive without it is incomplete."""

    documents: Count
    entities: Count
    communities: Count
    summaries: Count
    tree_nodes: Count = 0


class PartOfDocument(RootModel[Annotated[ChunkLine | EntityLine | RelationshipLine, Field(discriminator="kind")]]):
    """A line of a document's record after the first."""


def decode_record(kind: type[R], line: bytes, *, where: str) -> R:
    """Return the record in ``line``.

    Raises:
        InvalidRequest: the line is not a valid record. The message names the invalid fields and their limits. It contains
            numbers and sizes, but no texts of the record.
    """
    if b"\\u0000" in line and _holds_nul(line):
        raise InvalidRequest(f"{where}: a text contains NUL, which no store supports")
    try:
        return kind.model_validate_json(line)
    except ValidationError as error:
        problems = [_describe_problem(item) for item in error.errors(include_url=False)[:_SHOWN]]
        raise InvalidRequest(f"{where}: {'; '.join(problems)[:500]}") from None


def _holds_nul(line: bytes) -> bool:
    """Return whether a text of the line contains NUL. Characters after a doubled backslash are not an escape."""
    try:
        waiting: list[object] = [json.loads(line)]
    except (ValueError, RecursionError):
        return False  # and no record
    while waiting:
        value = waiting.pop()
        if isinstance(value, str) and "\0" in value:
            return True
        if isinstance(value, dict):
            waiting += [*value, *value.values()]
        elif isinstance(value, list):
            waiting += value
    return False


def _describe_problem(item: ErrorDetails) -> str:
    value, field = item.get("input"), ".".join(map(str, item["loc"])) or "line"
    problem = f"{shorten_line(field, 200)}: {message_of(item)}"
    if isinstance(value, int | float) and abs(value) < 2**63:
        return f"{problem}; it is {value}"
    sized = isinstance(value, str | list | dict) and item["type"] != "json_invalid"
    return f"{problem}; it has a length of {len(value)}" if sized else problem


def encode_record(record: BaseModel) -> bytes:
    """Return ``record`` as a line."""
    return record.model_dump_json().encode() + b"\n"
