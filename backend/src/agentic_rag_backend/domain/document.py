"""Documents, their versions, their chunks, and synthetic questions that chunks answer."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from agentic_rag_backend.domain.filters import filterable_fields
from agentic_rag_backend.domain.location import Location
from agentic_rag_backend.domain.tenant import TenantId

MAX_QUESTION_CHARACTERS = 300
"""Length of a synthetic question."""


def question_id(chunk_id: str, text: str) -> str:
    """Return the id of a chunk's question with this text. Versions share the id, as they share the chunk's."""
    return stable_id("question", chunk_id, text)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticQuestion:
    """A question that a chunk answers. ``source`` is the method that made it: ``patterns`` or ``model``."""

    id: str
    chunk_id: str
    text: str
    source: str


CALLS, IMPORTS, DEFINES = "calls", "imports", "defines"


@dataclass(frozen=True, slots=True)
class CodeName:
    """A function, class or module. ``path`` has its names, outermost first.

    A name of the file itself is ``own``: its path begins in the file, and an empty path is the file. The path of any other name
    is complete.
    """

    path: tuple[str, ...]
    own: bool = True


@dataclass(frozen=True, slots=True)
class CodeRelation:
    """A relation that the characters [``start_char``, ``end_char``) of the text state: one line, without space around it."""

    source: CodeName
    relation: str
    target: CodeName
    start_char: int
    end_char: int


_NAMESPACE = uuid.UUID("5f0c2f0e-52f4-5b39-9d1c-6a3f3c1c7f11")


def stable_id(*parts: object) -> str:
    """Return the uuid5 of ``parts``. The same parts give the same id in every process and release."""
    return str(uuid.uuid5(_NAMESPACE, "\x1f".join(str(part) for part in parts)))


def content_hash(content: bytes | str) -> str:
    """Return the SHA-256 of ``content`` as 64 hex digits (text is hashed as UTF-8)."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def chunk_id(tenant: TenantId, document_id: str, text_hash: str, occurrence: int) -> str:
    """Return the id of the ``occurrence``-th (from 0) chunk with that text in the document. Versions share the id."""
    return stable_id("chunk", tenant, document_id, text_hash, occurrence)


class DocumentState(StrEnum):
    """A ``partial`` document is visible and lists its failures. ``unreadable``, ``failed``, ``cancelled`` were never visible."""

    PENDING = "pending"
    PROCESSING = "processing"
    READY = "ready"
    PARTIAL = "partial"
    FAILED = "failed"
    UNREADABLE = "unreadable"
    CANCELLED = "cancelled"
    DELETING = "deleting"

    @property
    def in_processing(self) -> bool:
        """Whether the newest version has not ended yet."""
        return self in {DocumentState.PENDING, DocumentState.PROCESSING}


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure inside a document, such as the extraction of one chunk."""

    stage: str
    code: str
    message: str
    chunk_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document as shown to its owner.

    ``current_version`` is the visible version (0: none yet) and only grows. ``latest_version`` is the newest submitted version.
    """

    id: str
    key: str | None
    title: str
    state: DocumentState
    current_version: int
    latest_version: int
    content_hash: str
    media_type: str
    size_bytes: int
    metadata: Mapping[str, Any]
    chunk_count: int
    created_at: datetime
    updated_at: datetime
    failures: tuple[Failure, ...] = ()
    job_id: str | None = None
    parent_id: str | None = None
    """Document of the message that the document is attached to. None: it was uploaded by itself."""
    place: str | None = None
    """Place of an attachment in its message; see `documents.parsing.base.Attachment`."""

    @property
    def revision(self) -> str:
        """Revision for conditional writes, as 32 hex digits. It changes with the newest version, the title and the metadata.

        It does not depend on state, counts and failures. Processing changes it only by changing title or metadata.
        """
        revision_fields = [self.id, self.latest_version, self.title, dict(self.metadata)]
        return content_hash(json.dumps(revision_fields, sort_keys=True))[:32]


CHUNKING_STRATEGIES = ("recursive", "fixed", "structure", "ast", "parent_child", "semantic", "agentic", "proposition")
"""Names of the strategies of `documents.chunking.registry`."""


@dataclass(frozen=True, slots=True)
class ChunkingOptions:
    """Options for cutting text. Sizes count ``unit``; the defaults fit the bundled encoder's 256 word pieces.

    ``percentile`` is for the strategy `semantic`: the share of the gaps between sentences, in percent, that are no breakpoints.
    ``parent_size`` is for `parent_child` and `proposition`: the largest size of a parent.
    """

    strategy: str = "recursive"
    chunk_size: int = 220
    overlap: int = 32
    unit: str = "tokens"
    percentile: int = 90
    parent_size: int = 500


QUESTION_METHODS = ("off", "patterns", "model")
"""Methods that make synthetic questions; see `ingestion.questions`."""
MAX_QUESTIONS_PER_CHUNK = 3


@dataclass(frozen=True, slots=True)
class QuestionOptions:
    """Options of synthetic questions. ``per_chunk`` is the most questions of a chunk, 1 to 3. Without questions, it is 3."""

    method: str = "off"
    per_chunk: int = MAX_QUESTIONS_PER_CHUNK

    @property
    def on(self) -> bool:
        """Whether questions are made."""
        return self.method != "off"


ATTACHMENT_MODES = ("documents", "sections", "ignore")
"""Uses of a message's attachments: a document each, sections of the message's document, or their names only."""
MAX_ATTACHMENTS = 50
"""Attachments of a message and of the messages attached to it that are read."""
MAX_ATTACHED_DEPTH = 5
"""Messages attached to messages that are read."""


@dataclass(frozen=True, slots=True)
class AttachmentOptions:
    """Options of attachments. Files without attachments, and versions of earlier releases, have the defaults.

    ``most`` is the number of attachments to read, 0 to 50, and ``depth`` the number of messages around this one, 0 to 5. They
    are set for a message that is attached to another one, so that the limits apply to the outermost message.
    """

    mode: str = "sections"
    most: int = MAX_ATTACHMENTS
    depth: int = 0

    @property
    def apart(self) -> bool:
        """Whether attachments become documents of their own."""
        return self.mode == "documents"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessingOptions:
    """Options of the pipeline. A change of options makes a new version.

    ``charset`` is the encoding that the upload declared for its text, as it was written. None: it declared none.
    """

    chunking: ChunkingOptions = field(default_factory=ChunkingOptions)
    extraction: str = "rules"
    charset: str | None = None
    questions: QuestionOptions = field(default_factory=QuestionOptions)
    attachments: AttachmentOptions = field(default_factory=AttachmentOptions)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentVersion:
    """One version's input and parsed text. ``submitted_metadata`` is the metadata without values that the file itself sets.

    All chunk offsets refer to ``text``, which is empty until parsed. ``blob_key`` names the original. It is empty if the
    original was not kept; the text is then present from the start.
    """

    document_id: str
    version: int
    title: str
    content_hash: str
    media_type: str
    blob_key: str
    options: ProcessingOptions
    metadata: Mapping[str, Any]
    submitted_metadata: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A passage of one version's text: ``version.text[start_char:end_char] == text`` always holds.

    The offsets are those of ``location``. ``content_hash`` depends on ``text`` only, so that an unchanged passage is recognised
    in the next version.
    """

    id: str
    document_id: str
    version: int
    ordinal: int
    text: str
    size_tokens: int
    content_hash: str
    location: Location

    @property
    def parent_id(self) -> str | None:
        """Id of the parent around it, which is read when the chunk is found. None: it is read by itself."""
        if self.location.parent_start is None:
            return None
        return stable_id("parent", self.document_id, self.version, self.location.parent_start)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentPassage:
    """The part of one version's text around small chunks: ``version.text[start_char:end_char] == text``.

    ``chunks`` are its chunks, in reading order. Together they hold all of it that is not white space.
    """

    id: str
    start_char: int
    end_char: int
    text: str
    chunks: tuple[Chunk, ...]

    @classmethod
    def of_chunks(cls, chunks: Sequence[Chunk], text: str, start_char: int) -> ParentPassage:
        """Return the passage of neighbouring chunks, in reading order, whose ``text`` begins at ``start_char``."""
        first_chunk = chunks[0]
        id = stable_id("passage", first_chunk.document_id, first_chunk.version, start_char, len(text))
        return cls(id=id, start_char=start_char, end_char=start_char + len(text), text=text, chunks=tuple(chunks))

    def cut_part(self, chunks: Sequence[Chunk]) -> ParentPassage:
        """Return the part that holds some neighbouring chunks of it, in reading order."""
        if len(chunks) == len(self.chunks):
            return self
        start = min(chunk.location.start_char for chunk in chunks)
        end = max(chunk.location.end_char for chunk in chunks)
        return self.of_chunks(chunks, self.text[start - self.start_char : end - self.start_char], start)

    def without_overlap(self, other_parents: Iterable[ParentPassage]) -> ParentPassage | None:
        """Return the passage without the text at its ends that other passages of the version have; None if nothing is left.

        Chunks may overlap, so passages of neighbouring chunks may, too.
        """
        start, end = self.start_char, self.end_char
        for other_parent in other_parents:
            if other_parent.start_char <= start < other_parent.end_char:
                start = other_parent.end_char
            if other_parent.start_char < end <= other_parent.end_char:
                end = other_parent.start_char
        if (start, end) == (self.start_char, self.end_char):
            return self
        text = self.text[start - self.start_char : end - self.start_char] if start < end else ""
        return self.of_chunks(self.chunks, text, start) if text.strip() else None


@dataclass(frozen=True, slots=True)
class ChunkSpan:
    """The chunks of a document's visible version with ordinals from ``first`` to ``last``, both included."""

    document_id: str
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleChunk:
    """A chunk joined with its document's visible version: the only form in which text reaches a user."""

    chunk: Chunk
    document_title: str
    document_key: str | None
    metadata: Mapping[str, Any]
    published_at: datetime | None = None
    """The time at which the version was added. None: it was not read."""

    @property
    def fields(self) -> dict[str, Any]:
        """The fields that a filter compares."""
        document_id = self.chunk.document_id
        return filterable_fields(self.metadata, document_id=document_id, key=self.document_key, title=self.document_title)
