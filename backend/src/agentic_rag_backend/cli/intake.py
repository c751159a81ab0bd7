"""Submission of many documents, with limits on concurrent documents and on their size in memory."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentic_rag_backend.cli.following import Job, JobFollower, failure_reason, succeeded
from agentic_rag_backend.errors import AgenticRagError, StoreUnavailable, Unauthenticated
from agentic_rag_backend.sources.reading import SourceDocument

if TYPE_CHECKING:
    from agentic_rag_backend.cli.session.client import Client

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
_AHEAD = 32
_AHEAD_BYTES = 1024 * 1024


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
    first: list[Item] = field(default_factory=list)
    failures: list[Item] = field(default_factory=list)

    @property
    def documents(self) -> int:
        """Number of documents."""
        return self.counts.total()

    @property
    def fine(self) -> bool:
        """Whether every document succeeded."""
        return self.counts.keys() <= FINE

    def begun(self, item: Item) -> None:
        """Record a document that was read."""
        if len(self.first) < LISTED:
            self.first.append(item)

    def ended(self, item: Item) -> None:
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

    def members(self) -> dict[str, Any]:
        """Return the members of a JSON body."""
        members = {"chunking": self.chunking, "extraction": self.extraction, "questions": self.questions}
        return {name: value for name, value in members.items() if value}

    def fields(self) -> dict[str, str]:
        """Return the form fields."""
        members = self.members() | ({"attachments": self.attachments} if self.attachments is not None else {})
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
        self._sending = _Gate(SENDING, SENDING_BYTES)

    async def take(self, documents: Iterable[SourceDocument]) -> Results:
        """Submit every document and return the results.

        Raises:
            StoreUnavailable: the server is unavailable, so the rest was not tried.
            Unauthenticated: the key is invalid, so the rest was not tried.
        """
        self._client.wait_for_restarts()
        results, reading = Results(), _ReadAhead(iter(documents))
        async with JobFollower(self._client, self._on_poll) as follower:

            async def work() -> None:
                while (document := await reading.next()) is not None:
                    item = Item(path=str(document.path), key=document.key, row=document.row)
                    results.begun(item)
                    if await self._hand_in(document, item):
                        document = _without_content(document)
                        await self._follow(item, follower, results)
                    results.ended(item)
                    self._on_ended(document, item)

            workers = [asyncio.create_task(work()) for _ in range(IN_FLIGHT)]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
        return results

    async def _hand_in(self, document: SourceDocument, item: Item) -> bool:
        """Send a document. Return whether there is a job to follow."""
        if document.problem is not None:
            item.state, item.error = "refused", {"code": document.problem.code, "message": document.problem.message}
            return False
        try:
            async with self._sending.room_for(len(document.content)):
                submitted = await self._send(document)
        except (StoreUnavailable, Unauthenticated):
            raise
        except AgenticRagError as error:
            item.state, item.error = "refused", {"code": error.code, "message": error.message}
            return False
        item.document_id, item.job_id = submitted["document_id"], submitted["job_id"]
        item.warnings = list(submitted.get("warnings") or ())
        if item.job_id is None:
            # There is no job: the document is unchanged, or only its metadata changed.
            item.state = submitted["state"]
        return item.job_id is not None

    async def _follow(self, item: Item, follower: JobFollower, results: Results) -> None:
        if not self._wait or item.job_id is None:
            return
        job = await follower.ended(item.job_id)
        item.state = "ready" if succeeded(job) else str(job["state"])
        if not succeeded(job):
            item.error = {"code": (job.get("error") or {}).get("code", job["state"]), "message": failure_reason(job)}
        result = job.get("result") or {}
        item.warnings += [warning for warning in result.get("warnings", ()) if warning not in item.warnings]
        for attachment in result.get("attachments", ()):
            await self._follow_attachment(item, attachment, follower, results)

    async def _follow_attachment(
        self, message: Item, attachment: Mapping[str, Any], follower: JobFollower, results: Results
    ) -> None:
        """Record the document of an attachment, and wait for its job."""
        item = Item(
            path=message.path,
            key=attachment.get("key") or f"{message.key}#{attachment['place']}",
            state=attachment.get("state", "refused"),
            document_id=attachment.get("document_id"),
            job_id=attachment.get("job_id"),
            error=attachment.get("error"),
        )
        results.begun(item)
        await self._follow(item, follower, results)
        results.ended(item)
        self._on_ended(SourceDocument(path=Path(item.path), key=item.key), item)

    async def _send(self, document: SourceDocument) -> Mapping[str, Any]:
        if document.row is not None:
            body = {
                "text": document.content.decode(),
                "key": document.key,
                "title": document.title,
                "metadata": dict(document.metadata),
                "media_type": "text/plain",
                **self._processing.members(),
            }
            submitted: dict[str, Any] = await self._client.post("/documents", body)
            return submitted
        form = {"key": document.key, **self._processing.fields()}
        file = (document.path.name, document.content, "application/octet-stream")
        envelope = await self._client.request("POST", "/documents", data=form, files={"file": file})
        documents: list[dict[str, Any]] = envelope["data"]["documents"]
        return documents[0]


class _ReadAhead:
    """Reads a few documents ahead in a thread, so that a slow disk or a large table does not delay requests."""

    def __init__(self, documents: Iterator[SourceDocument]) -> None:
        self._documents = documents
        self._ready: deque[SourceDocument] = deque()
        self._over = False
        self._lock = asyncio.Lock()

    async def next(self) -> SourceDocument | None:
        """Return the next document, None after the last."""
        async with self._lock:
            if not self._ready and not self._over:
                await asyncio.to_thread(self._read)
            return self._ready.popleft() if self._ready else None

    def _read(self) -> None:
        size = 0
        while len(self._ready) < _AHEAD and size < _AHEAD_BYTES:
            document = next(self._documents, None)
            if document is None:
                self._over = True
                return
            self._ready.append(document)
            size += len(document.content)


class _Gate:
    """Limits the number of holders and their total size. A holder above the size limit runs alone."""

    def __init__(self, holders: int, size: int) -> None:
        self._limit = size
        self._holders = holders
        self._free = size
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def room_for(self, size: int) -> AsyncIterator[None]:
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


def _without_content(document: SourceDocument) -> SourceDocument:
    """Return the document without its content, for the time until its job ends."""
    return SourceDocument(path=document.path, key=document.key, row=document.row, size=document.size)
