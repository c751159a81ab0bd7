"""Submission of many documents within limits, and an estimate of the language model's work for them."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentic_rag_backend.cli.following import Job, JobFollower, explain_failure, is_successful, poll_jobs
from agentic_rag_backend.errors import AgenticRagError, StoreUnavailable, Unauthenticated
from agentic_rag_backend.language.tokens import text_tokens
from agentic_rag_backend.prompts import built_in
from agentic_rag_backend.sources.reading import SourceDocument

if TYPE_CHECKING:
    from agentic_rag_backend.cli.session.client import Client

_BYTES_PER_TOKEN = 4
_NEW_TOKENS_PER_CHUNK = 188
"""Tokens of a chunk of default size that the chunk before does not have."""
_CHUNK_TOKENS = 220
_WRITTEN_TOKENS = 300
"""Tokens of a usual reply. The limit is higher."""
_OF_EPISODE = (6, 8_100, 510)
"""Calls of `graphiti` for a chunk, and the tokens that they read and write, as measured on ``examples/``."""


@dataclass(frozen=True, slots=True)
class ModelCost:
    """Number of calls, and the tokens that they read and write."""

    calls: int
    tokens_read: int
    tokens_written: int


def extraction_cost(files: int, size_bytes: int, method: str = "llm") -> ModelCost:
    """Return the cost of a method for the chunks of ``files`` files of text. Files that are not text have fewer chunks."""
    return cost_of_chunks(max(files, -(-size_bytes // (_BYTES_PER_TOKEN * _NEW_TOKENS_PER_CHUNK))), method)


def cost_of_chunks(chunks: int, method: str = "llm") -> ModelCost:
    """Return the cost of a method for a number of chunks."""
    if method == "graphiti":
        return ModelCost(*(chunks * share for share in _OF_EPISODE))
    prompt = built_in("extraction")
    return ModelCost(chunks, chunks * (text_tokens([prompt.system, prompt.user]) + _CHUNK_TOKENS), chunks * _WRITTEN_TOKENS)


IN_FLIGHT = 64
"""Maximum documents that are submitted and not finished. It is below a page of jobs, which one poll reads."""
SENDING = 8
"""Maximum concurrent requests with a document, and thus connections."""
SENDING_BYTES = 32 * 1024 * 1024
"""Maximum bytes of documents in concurrent requests. A larger document is sent alone."""
LISTED = 1000
"""Maximum documents whose results are kept."""
FAILURES = 100
"""Maximum failures that are kept, at any position."""
FINE = frozenset({"ready", "unchanged", "queued"})
_SUBMITTED = ("state", "document_id", "job_id", "error")


@dataclass(slots=True, kw_only=True)
class Item:
    """Result of one document. ``state``: ready, partial, unchanged, queued (not awaited), failed, refused.

    ``path`` of an attachment is the file of the message.
    """

    path: str
    key: str
    row: int | None = None
    state: str = "queued"
    document_id: str | None = None
    job_id: str | None = None
    error: dict[str, Any] | None = None
    warnings: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Results:
    """Numbers of documents by state, the first `LISTED` results in reading order, and the first `FAILURES` failures."""

    counts: Counter[str] = field(default_factory=Counter)
    items: list[Item] = field(default_factory=list)
    failures: list[Item] = field(default_factory=list)

    @property
    def documents(self) -> int:
        """Number of documents."""
        return self.counts.total()

    @property
    def fine(self) -> bool:
        """Whether every document succeeded."""
        return self.counts.keys() <= FINE

    def add_item(self, item: Item) -> None:
        """Record a document that was read."""
        if len(self.items) < LISTED:
            self.items.append(item)

    def count_item(self, item: Item) -> None:
        """Record the result of a document."""
        self.counts[item.state] += 1
        if item.state not in FINE and len(self.failures) < FAILURES:
            self.failures.append(item)


@dataclass(frozen=True, slots=True, kw_only=True)
class Processing:
    """Options of processing. None means the server's default."""

    chunking: dict[str, Any] | None = None
    extraction: str | None = None
    questions: dict[str, Any] | None = None
    attachments: str | None = None
    """Of files. Rows of tables have none."""

    def as_body(self) -> dict[str, Any]:
        """Return the members of a JSON body."""
        members = {"chunking": self.chunking, "extraction": self.extraction, "questions": self.questions}
        return {name: value for name, value in members.items() if value}

    def as_form(self) -> dict[str, str]:
        """Return the form fields."""
        members = self.as_body() | ({"attachments": self.attachments} if self.attachments is not None else {})
        return {name: value if isinstance(value, str) else json.dumps(value) for name, value in members.items()}


class Intake:
    """Submits documents and follows their jobs.

    Args:
        on_ended: called with each finished document.
        on_poll: called with unfinished jobs that are awaited.
        wait: wait for the jobs. Otherwise a queued document counts as finished.
    """

    def __init__(
        self,
        client: Client,
        processing: Processing,
        *,
        wait: bool,
        on_ended: Callable[[SourceDocument, Item], None] = lambda document, item: None,
        on_poll: Callable[[Job], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._processing = processing
        self._wait = wait
        self._on_ended = on_ended
        self._on_poll = on_poll
        self._gate = _Gate(SENDING, SENDING_BYTES)

    async def submit_documents(self, documents: Iterable[SourceDocument], results: Results | None = None) -> Results:
        """Submit every document and return the results.

        Args:
            results: to fill and return. The caller sees what was done even if the work is interrupted.

        Raises:
            StoreUnavailable: the server is unavailable, so the rest was not tried.
            Unauthenticated: the key is invalid, so the rest was not tried.
        """
        results = Results() if results is None else results
        queue, lock = iter(documents), asyncio.Lock()
        self._client.wait_for_restarts()
        async with poll_jobs(self._client, self._on_poll) as follower:

            async def read_next() -> SourceDocument | None:
                # In a thread, so that a slow disk or a large table does not delay requests.
                async with lock:
                    return await asyncio.to_thread(next, queue, None)

            async def work() -> None:
                while (document := await read_next()) is not None:
                    item = Item(path=str(document.path), key=document.key, row=document.row)
                    results.add_item(item)
                    if await self._submit_document(document, item):
                        document = _drop_content(document)
                        await self._follow_job(item, follower, results)
                    results.count_item(item)
                    self._on_ended(document, item)

            workers = [asyncio.create_task(work()) for _ in range(IN_FLIGHT)]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
        return results

    async def _submit_document(self, document: SourceDocument, item: Item) -> bool:
        """Send a document. Return whether there is a job to follow."""
        if document.problem is not None:
            item.state, item.error = "refused", {"code": document.problem.code, "message": document.problem.message}
            return False
        try:
            async with self._gate.reserve_bytes(len(document.content)):
                reply = await self._send_document(document)
        except (StoreUnavailable, Unauthenticated):
            raise
        except AgenticRagError as error:
            item.state, item.error = "refused", {"code": error.code, "message": error.message}
            return False
        item.document_id, item.job_id = reply["document_id"], reply["job_id"]
        item.warnings = list(reply.get("warnings") or ())
        if item.job_id is None:
            # There is no job: the document is unchanged, or only its metadata changed.
            item.state = reply["state"]
        return item.job_id is not None

    async def _follow_job(self, item: Item, follower: JobFollower, results: Results) -> None:
        if not self._wait or item.job_id is None:
            return
        job = await follower.wait_for(item.job_id)
        item.state = "ready" if is_successful(job) else str(job["state"])
        if not is_successful(job):
            item.error = {"code": (job.get("error") or {}).get("code", job["state"]), "message": explain_failure(job)}
        result = job.get("result") or {}
        item.warnings += [warning for warning in result.get("warnings", ()) if warning not in item.warnings]
        for attachment in result.get("attachments", ()):
            part = Item(
                path=item.path,
                key=attachment.get("key") or f"{item.key}#{attachment['place']}",
                **{"state": "refused"} | {name: attachment[name] for name in _SUBMITTED if name in attachment},
            )
            results.add_item(part)
            await self._follow_job(part, follower, results)
            results.count_item(part)
            self._on_ended(SourceDocument(path=Path(part.path), key=part.key), part)

    async def _send_document(self, document: SourceDocument) -> Mapping[str, Any]:
        if document.row is not None:
            body = {
                "text": document.content.decode(),
                "key": document.key,
                "title": document.title,
                "metadata": dict(document.metadata),
                "media_type": "text/plain",
                **self._processing.as_body(),
            }
            reply: dict[str, Any] = await self._client.post("/documents", body)
            return reply
        form = {"key": document.key, **self._processing.as_form()}
        file = (document.path.name, document.content, "application/octet-stream")
        envelope = await self._client.request("POST", "/documents", data=form, files={"file": file})
        documents: list[dict[str, Any]] = envelope["data"]["documents"]
        return documents[0]


class _Gate:
    """Limits the number of holders and their total size. A holder above the size limit runs alone."""

    def __init__(self, holders: int, size: int) -> None:
        self._limit = size
        self._holders = holders
        self._free = size
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def reserve_bytes(self, size: int) -> AsyncIterator[None]:
        """Wait for room, and hold it."""
        room = min(size, self._limit)
        async with self._changed:
            await self._changed.wait_for(lambda: self._holders > 0 and room <= self._free)
            self._holders, self._free = self._holders - 1, self._free - room
        try:
            yield
        finally:
            async with self._changed:
                self._holders, self._free = self._holders + 1, self._free + room
                self._changed.notify_all()


def _drop_content(document: SourceDocument) -> SourceDocument:
    """Return the document without its content, for the time until its job ends."""
    return SourceDocument(path=document.path, key=document.key, row=document.row, size=document.size)
