"""Uploads: what a caller gives, and its checks before anything is written."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agentic_rag_backend.documents import metadata_checks
from agentic_rag_backend.documents.chunking.registry import check_options
from agentic_rag_backend.documents.parsing.base import checked_part, sniff_content
from agentic_rag_backend.documents.parsing.registry import ATTACHMENT_READERS
from agentic_rag_backend.domain.document import (
    ATTACHMENT_MODES,
    AttachmentOptions,
    ProcessingOptions,
    QuestionOptions,
    content_hash,
)
from agentic_rag_backend.domain.media_types import charset_of, find_type_conflict, media_type_of
from agentic_rag_backend.domain.size_limits import MAX_DOCUMENT_KEY_CHARACTERS, MAX_TITLE_CHARACTERS, short_text
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidRequest, PayloadTooLarge
from agentic_rag_backend.ingestion.prepare.reading import FileSource, IsolatedReader
from agentic_rag_backend.ingestion.questions.base import check_options as check_question_options
from agentic_rag_backend.knowledge.extraction.methods import METHODS, ExtractionMethods
from agentic_rag_backend.stores.catalogue.base import Expected, Parent, Submission

HASHED_IN_LOOP_BYTES = 32_768
"""Smaller files are hashed on the event loop, because a thread costs more than the work."""
DEFAULT_ATTACHMENTS = "documents"


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """An uploaded document. Only the suffix and the title are taken from ``file_name``; it is never used as a path."""

    content: bytes
    media_type: str | None = None
    file_name: str | None = None
    title: str | None = None
    key: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    options: ProcessingOptions = field(default_factory=ProcessingOptions)
    extraction: str | None = None
    """Method of extraction, in place of the one in ``options``. None: the deployment's default."""
    questions: QuestionOptions | None = None
    """Synthetic questions, in place of those in ``options``. None: the deployment's default."""
    attachments: str | None = None
    """Use of a message's attachments, one of `ATTACHMENT_MODES`. None: a document each. It has no effect on other files."""
    expected: Expected = None
    """Expected revisions of the document that already has the key."""
    parent: Parent | None = None
    """The message that the file is attached to. Its ``options.attachments`` then apply to the attachments of the file."""


@dataclass(frozen=True, slots=True)
class UploadCheck:
    """Checks uploads.

    ``extraction`` and ``questions`` are the method of extraction and the synthetic questions of uploads that do not ask for
    others. ``methods`` are the methods of extraction.
    """

    reader: IsolatedReader
    max_upload_mb: int
    extraction: str
    methods: ExtractionMethods
    questions: QuestionOptions

    async def make_submission(self, tenant: TenantId, upload: Upload) -> tuple[Submission, tuple[str, ...]]:
        """Return the submission of an upload, and warnings about it.

        Raises:
            PayloadTooLarge: the content is larger than MAX_UPLOAD_MB.
            UnsupportedMediaType: no parser reads its type.
            UnreadableDocument: it is not of that type, or contains no text.
            InvalidRequest: key, title, metadata or options are outside their limits.
        """
        size, limit = len(upload.content), self.max_upload_mb * 1024 * 1024
        if size > limit:
            raise PayloadTooLarge(f"the document has {size} bytes; the limit is {limit} (MAX_UPLOAD_MB={self.max_upload_mb})")
        key = short_text("key", upload.key, MAX_DOCUMENT_KEY_CHARACTERS)
        title = short_text("title", upload.title, MAX_TITLE_CHARACTERS)
        extraction = self.choose_method(upload.extraction or self.extraction, attached=upload.parent is not None)
        check_options(upload.options.chunking)
        questions = checked_questions(upload.questions or self.questions)
        plain = metadata_checks.check_metadata(upload.metadata)
        sniffed = sniff_content(upload.content)
        media_type = media_type_of(upload.media_type, upload.file_name, sniffed)
        source = FileSource(media_type, charset_of(upload.media_type), upload.file_name)
        head, is_whole = checked_part(upload.content)
        own_title, warnings = await self.reader.check_file(tenant, head, source, is_whole=is_whole)
        differs = find_type_conflict(upload.media_type, upload.file_name, sniffed)
        small = size <= HASHED_IN_LOOP_BYTES
        digest = content_hash(upload.content) if small else await asyncio.to_thread(content_hash, upload.content)
        document_id = str(uuid.uuid4())
        submission = Submission(
            document_id=document_id,
            key=key or digest,
            title=title or own_title,
            content_hash=digest,
            media_type=media_type,
            size_bytes=size,
            # Unique to this submission, so that removing it never removes another submission's original.
            blob_key=f"{document_id}/original",
            metadata=plain,
            options=replace(
                upload.options,
                extraction=extraction,
                charset=source.charset,
                questions=questions,
                attachments=attachments_of(upload, media_type),
            ),
            expected=upload.expected,
            parent=upload.parent,
        )
        return submission, ((differs, *warnings) if differs else warnings)

    def choose_method(self, method: str, *, attached: bool = False) -> str:
        """Return a known method. An attachment has the method of its message, for which rules stand in without a model.

        Raises:
            InvalidRequest: it is not known, or cannot be used.
        """
        return checked_method(method, None if attached else self.methods)


def checked_method(method: str, methods: ExtractionMethods | None) -> str:
    """Return a known method of extraction.

    Args:
        methods: the methods of the deployment. None: it need not be available.

    Raises:
        InvalidRequest: it is not known, or cannot be used.
    """
    if method not in METHODS:
        raise InvalidRequest(f"extraction {method[:80]!r} is not known; known are {', '.join(METHODS)}")
    if methods is not None and (reason := methods.unavailable(method)):
        raise InvalidRequest(f"extraction {method!r} {reason}")
    return method


def attachments_of(upload: Upload, media_type: str) -> AttachmentOptions:
    """Return valid options. For files without attachments, a choice has no effect, and makes no new version.

    Raises:
        InvalidRequest: the mode is not known.
    """
    mode = attachment_mode(upload.attachments)
    if media_type not in ATTACHMENT_READERS:
        return AttachmentOptions()
    return upload.options.attachments if upload.parent is not None else AttachmentOptions(mode)


def attachment_mode(mode_given: str | None) -> str:
    """Return the use of attachments that an upload asks for, or the default.

    Raises:
        InvalidRequest: it is not known.
    """
    mode = DEFAULT_ATTACHMENTS if mode_given is None else mode_given
    if mode not in ATTACHMENT_MODES:
        raise InvalidRequest(f"attachments must be one of {', '.join(ATTACHMENT_MODES)}; got {mode[:80]!r}")
    return mode


def checked_questions(options: QuestionOptions) -> QuestionOptions:
    """Return valid options. Without questions, their number has no effect, and makes no new version."""
    check_question_options(options)
    return options if options.on else QuestionOptions()
