"""Documents and chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal, Self, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import ConfigDict, Field, ValidationError, create_model, model_validator

from agentic_rag_backend.api.schemas.base import Body, View, Whole
from agentic_rag_backend.api.schemas.documents.places import FilePlace, file_place
from agentic_rag_backend.api.schemas.knowledge.entities import EntityView, RelationshipView
from agentic_rag_backend.documents.chunking.registry import options_of
from agentic_rag_backend.domain.document import (
    MAX_QUESTIONS_PER_CHUNK,
    Chunk,
    ChunkingOptions,
    Document,
    DocumentState,
    Failure,
    ParentPassage,
    ProcessingOptions,
    QuestionOptions,
    SyntheticQuestion,
    VisibleChunk,
)
from agentic_rag_backend.domain.location import LOCATION_TABLE, FieldKind, LocationField
from agentic_rag_backend.domain.size_limits import MAX_DOCUMENT_KEY_CHARACTERS, MAX_TITLE_CHARACTERS
from agentic_rag_backend.knowledge.visible.entity_reader import ChunkKnowledge
from agentic_rag_backend.stores.catalogue.base import Submitted

B = TypeVar("B", bound=Body)
Strategy = Literal["recursive", "fixed", "structure", "ast", "parent_child", "semantic", "agentic", "proposition"]
"""The names in `domain.document.CHUNKING_STRATEGIES`."""
Method = Literal["rules", "llm", "rules+llm", "graphiti"]
"""The names in `knowledge.extraction.methods.METHODS`."""


class Chunking(Body):
    """Options of chunking. Sizes are in ``unit``."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"chunk_size": 120, "overlap": 16}]})

    strategy: Strategy = "recursive"
    chunk_size: Whole | None = Field(
        None,
        ge=20,
        le=8000,
        description="default: 220 tokens or 1000 characters; `semantic`: 512 or 2000; `ast` and `agentic`: 500 or 2000",
    )
    overlap: Whole | None = Field(
        None,
        ge=0,
        le=4000,
        description="at most half of chunk_size; default: 32 tokens or 100 characters (`semantic`: 50 or 200; "
        "`ast` and `agentic`: 0), or that share of a smaller chunk_size",
    )
    unit: Literal["tokens", "characters"] = "tokens"
    percentile: Whole = Field(
        90, ge=50, le=99, description="strategy `semantic`: percentile of the distances of sentences above which it cuts"
    )

    parent_size: Whole | None = Field(
        None,
        ge=20,
        le=16384,
        description="strategies `parent_child` and `proposition`: largest parent, in the unit; default: 500 tokens or "
        "2000 characters, at least twice chunk_size",
    )

    def options(self) -> ChunkingOptions:
        """Return the domain's value, with the defaults of strategy and unit filled in."""
        options = replace(options_of(self.strategy, self.chunk_size, self.overlap, self.unit), percentile=self.percentile)
        return options if self.parent_size is None else replace(options, parent_size=self.parent_size)


class Questions(Body):
    """Options of synthetic questions: questions that a chunk answers, which search can find it by."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"method": "patterns", "per_chunk": 2}]})

    method: Literal["off", "patterns", "model"] = Field(description="how they are made; `model`: by the language model")
    per_chunk: Whole = Field(MAX_QUESTIONS_PER_CHUNK, ge=1, le=MAX_QUESTIONS_PER_CHUNK, description="the most of a chunk")

    def options(self) -> QuestionOptions:
        """Return the domain's value."""
        return QuestionOptions(self.method, self.per_chunk)


class ChunkingAgain(Chunking):
    """Options of chunking, and of synthetic questions."""

    questions: Questions | None = Field(None, description="default: the document's options")


def chunking_of(value: Any) -> Chunking:
    """Return the options that a form field has as JSON; None has the defaults.

    Raises:
        RequestValidationError: an option is invalid. Its place begins with ``chunking``.
    """
    return _of_field("chunking", Chunking, value if value is not None else {})


def questions_of(value: Any) -> Questions | None:
    """Return the options that a form field has as JSON; None has the deployment's defaults.

    Raises:
        RequestValidationError: an option is invalid. Its place begins with ``questions``.
    """
    return None if value is None else _of_field("questions", Questions, value)


def _of_field(name: str, kind: type[B], value: Any) -> B:
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise RequestValidationError(
            [{**item, "loc": (name, *item["loc"])} for item in error.errors(include_url=False)]
        ) from None


class NewDocument(Body):
    """A document as text."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "text": "# Harbour dredging\n\nThe harbour authority began dredging in May 2019.",
                    "title": "Harbour dredging",
                    "key": "minutes/2019-05",
                    "metadata": {"category": "minutes", "year": 2019},
                }
            ]
        }
    )

    text: str = Field(description="plain text or Markdown")
    title: str | None = Field(
        None,
        max_length=MAX_TITLE_CHARACTERS,
        description="default: the title or first heading of the file, its name, or the beginning of its text with `…` at the "
        "end, which names no entity",
    )
    key: str | None = Field(
        None,
        min_length=1,
        max_length=MAX_DOCUMENT_KEY_CHARACTERS,
        description="your id of the document; the same key again is a new version; default: SHA-256 of the content",
    )
    metadata: dict[str, Any] = Field(default_factory=dict, description="JSON scalars and lists of them, at most 64 keys")
    media_type: Literal["text/plain", "text/markdown"] = "text/markdown"
    chunking: Chunking | None = None
    extraction: Method | None = Field(None, description="method of extraction; default: EXTRACTION")
    questions: Questions | None = Field(None, description="synthetic questions; default: SYNTHETIC_QUESTIONS")

    def processing(self) -> ProcessingOptions:
        """Return how the document is to be processed."""
        return ProcessingOptions(chunking=self.chunking.options() if self.chunking else ChunkingOptions())


class DocumentChange(Body):
    """A new title, new metadata, or both. Absent fields stay unchanged."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"metadata": {"category": "minutes", "draft": None}}]})

    title: str | None = Field(None, min_length=1, max_length=MAX_TITLE_CHARACTERS)
    metadata: dict[str, Any] | None = Field(None, description="merged by key into the existing metadata; null removes a key")

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.title is None and self.metadata is None:
            raise ValueError("give a title, metadata or both")
        return self


class DeletedDocument(View):
    document_id: str
    job_id: str


class DeletedDocuments(View):
    """Documents that are now hidden, each with the job that removes it."""

    count: int
    documents: list[DeletedDocument]
    remaining: bool = Field(description="whether more documents may match; repeat the request until it is false")


def search_state(*submissions: Submitted) -> Literal["current", "pending"]:
    """Return ``meta.search``: whether search and its filters have the current state of the documents."""
    visible = (DocumentState.READY, DocumentState.PARTIAL)
    current = all(submission.in_search and submission.document.state in visible for submission in submissions)
    return "current" if current else "pending"


class SubmittedView(View):
    """Result of a submission. ``job_id`` is null if there is nothing to do."""

    document_id: str | None
    job_id: str | None = None
    state: str
    unchanged: bool = False
    file: str | None = None
    error: dict[str, Any] | None = None
    warnings: list[str] = Field(
        default=[], description="such as: the content shows another type than the name, or the encoding was detected"
    )

    @classmethod
    def of(cls, submitted: Submitted, *, file: str | None = None) -> SubmittedView:
        """Return the view of a submission."""
        return cls(
            document_id=submitted.document.id,
            job_id=submitted.job.id if submitted.job else None,
            state="unchanged" if submitted.unchanged else submitted.document.state.value,
            unchanged=submitted.unchanged,
            file=file,
            warnings=list(submitted.warnings),
        )


class SubmittedFiles(View):
    """Results of several files."""

    documents: list[SubmittedView]


class FailureView(View):
    stage: str
    code: str
    message: str
    chunk_id: str | None = None

    @classmethod
    def of(cls, failure: Failure) -> FailureView:
        """Return the view of a failure."""
        return cls(stage=failure.stage, code=failure.code, message=failure.message, chunk_id=failure.chunk_id)


class DocumentView(View):
    id: str
    key: str | None
    title: str
    state: DocumentState
    version: int = Field(description="the visible version; 0 if none is visible")
    latest_version: int
    content_hash: str
    media_type: str
    size_bytes: int
    metadata: dict[str, Any]
    chunk_count: int
    created_at: datetime
    updated_at: datetime
    failures: list[FailureView]
    job_id: str | None
    parent_id: str | None = Field(description="the message that the document is attached to; null: it was uploaded by itself")
    place: str | None = Field(description="place in that message: `1/report.pdf` is its first attachment of this name")

    @classmethod
    def of(cls, document: Document) -> Self:
        """Return the view of a document."""
        return cls(
            id=document.id,
            key=document.key,
            title=document.title,
            state=document.state,
            version=document.current_version,
            latest_version=document.latest_version,
            content_hash=document.content_hash,
            media_type=document.media_type,
            size_bytes=document.size_bytes,
            metadata=dict(document.metadata),
            chunk_count=document.chunk_count,
            created_at=document.created_at,
            updated_at=document.updated_at,
            failures=[FailureView.of(failure) for failure in document.failures],
            job_id=document.job_id,
            parent_id=document.parent_id,
            place=document.place,
        )


class AttachmentView(View):
    """The document of an attachment."""

    id: str
    place: str | None
    title: str
    state: DocumentState


class DocumentDetail(DocumentView):
    """A document with the documents of its attachments."""

    attachments: list[AttachmentView] = Field(
        default=[], description="oldest first, at most 50; `GET /documents?parent_id=` lists all"
    )

    @classmethod
    def with_attachments(cls, document: Document, attached: Sequence[Document]) -> Self:
        """Return the view of a document. ``attached`` are its attachments, newest first."""
        views = [
            AttachmentView(id=attachment.id, place=attachment.place, title=attachment.title, state=attachment.state)
            for attachment in reversed(attached)
        ]
        return cls.of(document).model_copy(update={"attachments": views})


_SHOWN_FIELDS = tuple(row for row in LOCATION_TABLE if row.shown)
_LOCATION_TYPES: dict[FieldKind, Any] = {
    FieldKind.COUNT: int,
    FieldKind.OPTIONAL_COUNT: int | None,
    FieldKind.TEXT: str,
    FieldKind.TEXTS: list[str],
}


def _shown_field(row: LocationField) -> Any:
    """Return the type and the description of a field of a location."""
    return _LOCATION_TYPES[row.kind], Field(description=row.description or None)


_LocationFields = create_model("_LocationFields", __base__=FilePlace, **{row.shown: _shown_field(row) for row in _SHOWN_FIELDS})


class Location(_LocationFields):  # type: ignore[misc, valid-type]  # its fields come from a table
    function: str | None = Field(None, description="of code, the first of `functions`")

    @classmethod
    def of(cls, chunk: Chunk) -> Location:
        """Return the view of a chunk's location."""
        location = chunk.location
        return cls(
            **{row.shown: getattr(location, row.name) for row in _SHOWN_FIELDS},
            function=next(iter(location.functions), None),
            **file_place(location.regions),
        )


class QuestionView(View):
    """A synthetic question that the chunk answers."""

    text: str
    source: str = Field(description="`patterns` or `model`")


class ParentView(View):
    """The parent around a chunk. Its offsets are those of the document's text."""

    id: str
    start_char: int
    end_char: int
    content: str

    @classmethod
    def of(cls, parent: ParentPassage | None) -> ParentView | None:
        """Return the view of a parent; None for None."""
        if parent is None:
            return None
        return cls(id=parent.id, start_char=parent.start_char, end_char=parent.end_char, content=parent.text)


class ChunkView(View):
    id: str
    document_id: str
    version: int
    ordinal: int = Field(description="position in the document, from 0")
    parent_id: str | None = Field(description="id of the parent around it (strategy `parent_child`)")
    title: str
    content: str
    location: Location
    size_tokens: int
    statements: list[str] = Field(description="what search finds it by, instead of its content (strategy `proposition`)")
    metadata: dict[str, Any]
    questions: list[QuestionView] = Field(default=[], description="its synthetic questions")

    @classmethod
    def of(cls, visible: VisibleChunk, questions: Sequence[SyntheticQuestion] = ()) -> ChunkView:
        """Return the view of a visible chunk."""
        chunk = visible.chunk
        return cls(
            id=chunk.id,
            document_id=chunk.document_id,
            version=chunk.version,
            ordinal=chunk.ordinal,
            parent_id=chunk.parent_id,
            title=visible.document_title,
            content=chunk.text,
            location=Location.of(chunk),
            size_tokens=chunk.size_tokens,
            statements=list(chunk.location.statements),
            metadata=dict(visible.metadata),
            questions=[QuestionView(text=question.text, source=question.source) for question in questions],
        )


class ChunkInDocument(ChunkView):
    """A chunk with its neighbours, the parent around it, and the knowledge that the graph has from it."""

    previous_id: str | None = Field(description="the chunk before it")
    next_id: str | None = Field(description="the chunk after it")
    parent: ParentView | None = Field(description="the parent that is read when the chunk is found")
    entities: list[EntityView] = Field(description="the entities that it mentions, rarest first")
    relationships: list[RelationshipView] = Field(
        description="the relationships that it states, at most 100, by decreasing weight"
    )

    @classmethod
    def at(
        cls,
        visible: VisibleChunk,
        order: Sequence[str],
        parent: ParentPassage | None,
        questions: Sequence[SyntheticQuestion] = (),
        knowledge: ChunkKnowledge | None = None,
    ) -> ChunkInDocument:
        """Return the view of a chunk. ``order`` has the chunks of its document, in reading order."""
        ordinal = visible.chunk.ordinal
        return cls(
            **ChunkView.of(visible, questions).model_dump(),
            previous_id=order[ordinal - 1] if 0 < ordinal <= len(order) else None,
            next_id=order[ordinal + 1] if ordinal + 1 < len(order) else None,
            parent=ParentView.of(parent),
            entities=[EntityView.of(entity) for entity in knowledge.entities] if knowledge else [],
            relationships=RelationshipView.every(knowledge.relationships) if knowledge else [],
        )
