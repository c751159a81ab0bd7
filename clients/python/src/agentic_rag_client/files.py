"""Operations that send files."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from agentic_rag_client import models
from agentic_rag_client.errors import create_problem
from agentic_rag_client.job_events import Waiting, wait_for_end
from agentic_rag_client.methods import Mode, Resource, operation
from agentic_rag_client.parameters import Chunking, Questions
from agentic_rag_client.requests import Call, fill_path
from agentic_rag_client.uploads import File, FilePart, Progress

MAX_FILES = 50
"""Files of one request."""
_BLOCK_BYTES = 256 * 1024
_ENDED = frozenset({"ready", "partial", "failed", "unreadable", "cancelled"})
Extraction = Literal["rules", "llm", "rules+llm", "graphiti"]


class DocumentFiles(Resource[Mode]):
    """Uploads of documents."""

    @operation
    async def upload(
        self,
        file: File,
        *,
        name: str | None = None,
        title: str | None = None,
        key: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        chunking: Chunking | None = None,
        extraction: Extraction | None = None,
        questions: Questions | None = None,
        attachments: Literal["documents", "sections", "ignore"] | None = None,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        progress: Progress | None = None,
    ) -> models.Submission:
        """Upload a file. Its processing is a job: see `wait`.

        Args:
            file: a path, the content, or an open file.
            name: name of the file, whose end decides the format; default: that of the path.
            title: default: the title in the file, or its name.
            key: your id of the document; the same key again is a new version; default: SHA-256 of the content.
            metadata: JSON scalars and lists of them, at most 64 keys.
            extraction: method of extraction; default: EXTRACTION.
            attachments: of a message: a document each, sections of its document, or not read.
            if_match: the ``etag`` of the response that is to be unchanged.
            idempotency_key: default: a new one.
            progress: called with the number of bytes sent and the total number of bytes.

        Raises:
            ProblemError: the file was refused.
        """
        form = {
            "title": title,
            "key": key,
            "metadata": metadata,
            "chunking": chunking,
            "extraction": extraction,
            "questions": questions,
            "attachments": attachments,
        }
        call = Call(
            "POST",
            "/api/v1/documents",
            files=[FilePart.of(file, name, progress)],
            form=form,
            headers={"If-Match": if_match},
            idempotency_key=idempotency_key,
            keyed=True,
        )
        answer = await self._session.read(call, models.SubmittedFiles)
        (submission,) = answer.documents
        submission._response = answer.response
        if submission.error is not None:
            raise create_problem(submission.error)
        return submission

    @operation
    async def upload_files(
        self,
        files: Sequence[File],
        *,
        metadata: Mapping[str, Any] | None = None,
        chunking: Chunking | None = None,
        extraction: Extraction | None = None,
        questions: Questions | None = None,
        attachments: Literal["documents", "sections", "ignore"] | None = None,
    ) -> Sequence[models.Submission]:
        """Upload several files with the same options, 50 in a request. Open files and paths only: the name decides the format.

        A file that is refused has an ``error``, which is a problem, and no ``job_id``. The others are processed.
        """
        form = {
            "metadata": metadata,
            "chunking": chunking,
            "extraction": extraction,
            "questions": questions,
            "attachments": attachments,
        }
        submissions: list[models.Submission] = []
        for start in range(0, len(files), MAX_FILES):
            parts = [FilePart.of(file, None) for file in files[start : start + MAX_FILES]]
            call = Call("POST", "/api/v1/documents", files=parts, form=form, keyed=True)
            submissions += (await self._session.read(call, models.SubmittedFiles)).documents
        return submissions

    @operation
    async def wait(
        self,
        document: str | models.Submission,
        *,
        timeout_s: float | None = None,
        progress: Callable[[models.Job], None] | None = None,
    ) -> models.DocumentDetail:
        """Wait until a document is processed, and return it. Its ``state`` is ``ready`` or ``partial``.

        Raises:
            JobFailed: the document could not be processed.
            JobUnfinished: the job had not ended after ``timeout_s``. It continues.
        """
        document_id = document if isinstance(document, str) else document.document_id
        if document_id is None:
            raise ValueError("the submission has no document: it was refused")
        call = Call("GET", fill_path("/api/v1/documents/{document_id}", document_id))
        job_id = None if isinstance(document, str) else document.job_id
        if job_id is None:
            stored = await self._session.read(call, models.DocumentDetail)
            if stored.job_id is None or stored.state in _ENDED:
                return stored
            job_id = stored.job_id
        await wait_for_end(self._session, job_id, Waiting(timeout_s, progress))
        return await self._session.read(call, models.DocumentDetail)

    @operation
    async def preview_file(
        self,
        file: File,
        *,
        name: str | None = None,
        media_type: str | None = None,
        chunking: Chunking | None = None,
        extraction: Extraction | None = None,
        limit: int | None = None,
    ) -> models.Preview:
        """Return the chunks that a strategy makes of a file of at most 2 MiB. Nothing is stored.

        Args:
            file: a path, the content, or an open file.
            name: name of the file, whose end decides the format; default: that of the path.
            limit: number of chunks to return, 1 to 1,000.
        """
        form = {"media_type": media_type, "chunking": chunking, "extraction": extraction, "limit": limit}
        call = Call("POST", "/api/v1/chunking/preview", files=[FilePart.of(file, name)], form=form, repeatable=True)
        return await self._session.read(call, models.Preview)


class DatasetFiles(Resource[Mode]):
    """Uploads of datasets."""

    @operation
    async def upload(self, file: File, dataset_name: str, *, name: str | None = None) -> models.Dataset:
        """Create a dataset from a file with cases, as JSON Lines or CSV.

        Args:
            file: a path, the content, or an open file.
            dataset_name: name of the dataset.
            name: name of the file; default: that of the path.
        """
        call = Call(
            "POST",
            "/api/v1/evaluation/datasets",
            files=[FilePart.of(file, name)],
            form={"name": dataset_name},
            keyed=True,
        )
        return await self._session.read(call, models.Dataset)


class TenantArchives(Resource[Mode]):
    """Imports of tenants."""

    @operation
    async def import_archive(
        self,
        path: str | os.PathLike[str],
        *,
        tenant: str | None = None,
        name: str | None = None,
        progress: Progress | None = None,
    ) -> models.ImportAccepted:
        """Import a tenant from the archive that `export` returned. The import is a job.

        Args:
            path: of the archive.
            tenant: name or id of an empty tenant to fill, which a new name creates; default: that of the archive.
            name: of the created tenant.
            progress: called with the number of bytes sent and the total number of bytes.
        """
        blocks = _read_blocks(Path(path), progress)
        call = Call(
            "POST",
            "/api/v1/tenants/import",
            query={"tenant": tenant, "name": name},
            content=blocks if self._session.is_blocking else lambda: _yield_blocks(blocks()),
            headers={"Content-Type": "application/gzip"},
            unlimited=True,
        )
        return await self._session.read(call, models.ImportAccepted)


def _read_blocks(path: Path, progress: Progress | None) -> Callable[[], Iterator[bytes]]:
    def read() -> Iterator[bytes]:
        total, position = path.stat().st_size, 0
        with path.open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                yield block
                position += len(block)
                if progress is not None:
                    progress(position, total)

    return read


async def _yield_blocks(blocks: Iterator[bytes]) -> AsyncGenerator[bytes, None]:
    for block in blocks:
        yield block
