"""The last part of the ingestion of a message: documents of its attachments, after the message became visible."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from agentic_rag_backend.documents.parsing.base import Attachment
from agentic_rag_backend.documents.parsing.registry import ATTACHMENT_READERS
from agentic_rag_backend.domain.document import Document, DocumentVersion
from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.domain.size_limits import MAX_DOCUMENT_KEY_CHARACTERS
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import (
    Conflict,
    InvalidRequest,
    NotFound,
    PayloadTooLarge,
    UnreadableDocument,
    UnsupportedMediaType,
)
from agentic_rag_backend.ingestion.accept.uploads import Upload
from agentic_rag_backend.ingestion.commit.commitment import committed_result
from agentic_rag_backend.ingestion.prepare.preparation import superseded_error
from agentic_rag_backend.ingestion.prepare.reading import IsolatedReader
from agentic_rag_backend.jobs.runner import Run
from agentic_rag_backend.stores.blob.base import BlobStore
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue, Enqueue, Parent, Submitted

_REFUSALS = (Conflict, InvalidRequest, PayloadTooLarge, UnreadableDocument, UnsupportedMediaType)
"""Errors of one attachment. The others are still taken."""
_MAX_REASONS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Attaching:
    """The work of ``attach_v1``. Every step can be repeated: an attachment that was submitted before is unchanged.

    Args:
        accept: submits an upload.
        enqueue_delete: returns the function that enqueues the deletion of a document.
        recorded: called when the outbox may have a new entry to deliver.
    """

    documents: DocumentCatalogue
    blobs: BlobStore
    reader: IsolatedReader
    accept: Callable[[TenantId, Upload], Awaitable[Submitted]]
    enqueue_delete: Callable[[], Enqueue]
    keep_originals: bool = True
    recorded: Callable[[], None] = lambda: None

    async def run(self, run: Run) -> None:
        """Submit the attachments of the job's version, delete those that it no longer has, and finish the job."""
        await run.run_until_cancellation(self._run_job(run))

    async def _run_job(self, run: Run) -> None:
        await run.report_progress("attachments", 0, 0, at_once=True)
        try:
            document = await self.documents.document(run.tenant, run.document_id)
            version = await self.documents.version(run.tenant, run.document_id, run.version)
        except NotFound:
            raise superseded_error(run) from None
        if not version.blob_key:  # an earlier try did everything but finish the job
            await self._end_job(run, (await run.jobs.job(run.tenant, run.job.id)).arguments[_outcome_name(run)])
            return
        outcome, kept_ids = [], []
        attachments = await self._read_attachments(run, version)
        for number, attachment in enumerate(attachments, start=1):
            try:
                submitted = await self.accept(run.tenant, _make_upload(document, version, attachment))
            except _REFUSALS as error:
                outcome.append({"place": attachment.place, "error": {"code": error.code, "message": error.message}})
            except NotFound:
                raise superseded_error(run) from None
            else:
                kept_ids.append(attachment.place)
                outcome.append(_describe_outcome(attachment, submitted))
            await run.report_progress("attachments", number, len(attachments))
        await self._finish_attaching(run, outcome, kept_ids)

    async def _read_attachments(self, run: Run, version: DocumentVersion) -> list[Attachment]:
        if not version.options.attachments.apart or version.media_type not in ATTACHMENT_READERS:
            return []
        try:
            content = await self.blobs.get(run.tenant, version.blob_key)
        except NotFound:
            raise UnreadableDocument("the document's original is not in the blob store") from None
        return await self.reader.read_attachments(version, content)

    async def _finish_attaching(self, run: Run, outcome: list[dict[str, Any]], kept_ids: list[str]) -> None:
        try:
            retired = await self.documents.retire_attachments(
                run.tenant, run.document_id, run.version, kept_ids, self.enqueue_delete()
            )
        except NotFound:
            raise superseded_error(run) from None
        result = {"attachments": outcome, "attachments_deleted": retired}
        if not self.keep_originals:  # it was kept for its attachments; after an error, a retry needs it
            await run.jobs.remember(run.tenant, run.job.id, _outcome_name(run), result)
            await self.documents.forget_original(run.tenant, run.document_id, run.version)
        self.recorded()
        await self._end_job(run, result)

    async def _end_job(self, run: Run, job_part: dict[str, Any]) -> None:
        """Finish the job. ``job_part`` is the part of its result about attachments."""
        result, outcome = committed_result(run), job_part["attachments"]
        refused = [f"attachment {entry['place']}: {entry['error']['message']}" for entry in outcome if "error" in entry]
        if refused:
            result["reasons"] = [*result.get("reasons", ()), *refused][:_MAX_REASONS]
        state = JobState.PARTIAL if result["failures"] or refused else JobState.SUCCEEDED
        progress = ("attachments", len(outcome), len(outcome))
        await run.finish(state, result={**result, **job_part}, progress=progress)


def _outcome_name(run: Run) -> str:
    """Return the argument of a job that keeps the outcome once the original is gone."""
    return f"attached_{run.job.attempt}"


def _make_upload(document: Document, version: DocumentVersion, attachment: Attachment) -> Upload:
    """Return the upload of an attachment, with the options and the owner's metadata of the message."""
    key = f"{document.key or document.id}#{attachment.place}"
    if len(key) > MAX_DOCUMENT_KEY_CHARACTERS:
        key = f"{document.id}#{attachment.place}"
    return Upload(
        content=attachment.content,
        media_type=attachment.declared,
        file_name=attachment.name,
        key=key,
        # A null removes a value that the message itself sets. It says nothing about the attachment's own values.
        metadata={name: value for name, value in version.submitted_metadata.items() if value is not None},
        options=replace(version.options, attachments=attachment.options),
        extraction=version.options.extraction,
        questions=version.options.questions,
        parent=Parent(document.id, version.version, attachment.place),
    )


def _describe_outcome(attachment: Attachment, submitted: Submitted) -> dict[str, Any]:
    """Return what the job's result says about an attachment. Without a job, there is nothing to wait for."""
    document = submitted.document
    waiting = document.job_id if submitted.job is not None or document.state.in_processing else None
    return {
        "place": attachment.place,
        "document_id": document.id,
        "key": document.key,
        "job_id": waiting,
        "state": "unchanged" if waiting is None else document.state.value,
    }
