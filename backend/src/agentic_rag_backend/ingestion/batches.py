"""Committing several documents at once, so that they share what costs the same for one as for many: the flush.

Measured: flushing the embedded vector store takes 10–90 ms whatever was written, and holds the whole process while it
does. A document's other work beside the embedder takes 5 ms.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.ingestion.commitment import Commitment, Written
from agentic_rag_backend.ingestion.runs import Run, Runner, Stopped
from agentic_rag_backend.jobs.recovery import Caution
from agentic_rag_backend.jobs.slots import caution_here

MOST_TOGETHER = 64
FLUSH_SHARE = 0.05
"""Share of the time that flushing may take while documents keep coming."""
LONGEST_PAUSE_S = 2.0


@dataclass(slots=True)
class Batches:
    """Takes the prepared jobs of a tenant together, when the durable queue begins the first of them.

    Each job is on the durable queue all the same: one whose process ended is begun again from there, and one that was
    taken along is found ended. One that may have killed its process takes nobody along: it would be blamed for theirs.
    """

    runner: Runner
    commitment: Commitment
    together: bool = True
    """False where a flush costs nothing: then nothing is gathered for it."""
    _prepared: dict[TenantId, dict[str, int]] = field(default_factory=dict)
    _in_preparation: int = 0
    _flushed_at: float = float("-inf")
    _flush_s: float = 0.0
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a job was prepared, or its preparation ended otherwise."""

    def add(self, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Note that a job is prepared and may be taken along."""
        if not self.together:
            return
        self._prepared.setdefault(tenant, {})[job_id] = attempt
        self._changed.set()

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """Tell that a document is on its way here, whosever it is: one flush may then do for it as well."""
        self._in_preparation += 1
        try:
            yield
        finally:
            self._in_preparation -= 1
            self._changed.set()

    async def commit(self, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Commit the job and those of the tenant that are prepared by now."""
        self._forget(tenant, job_id)
        first = await self.runner.begin(tenant, job_id, attempt, started=True)
        if first is None:
            return
        written: list[Written] = []
        await self._write(first, written)
        taken = 1
        while taken < MOST_TOGETHER and (others := await self._more(tenant, MOST_TOGETHER - taken)):
            taken += len(others)
            for run in await asyncio.gather(*(self.runner.begin(tenant, *other, started=True) for other in others)):
                if run is not None:
                    await self._write(run, written)
        await self._publish_all(written)

    async def _write(self, run: Run, written: list[Written]) -> None:
        async def step(run: Run) -> None:
            written.append(await self.commitment.write(run))

        await self.runner.guarded(run, step, self.commitment.failed)

    async def _publish_all(self, written: Sequence[Written]) -> None:
        """Publish first versions beside each other, the rest one by one: publishing those also removes what they supersede."""
        flush = _Once(self._flush)
        undoing = asyncio.Lock()

        async def failed(run: Run, error: AgenticRagError | Stopped) -> None:
            async with undoing:  # takes back what was written, which must not cross another's
                await self.commitment.failed(run, error)

        def published(item: Written) -> Coroutine[Any, Any, bool]:
            return self.runner.guarded(item.run, partial(self._publish, item, flush), failed)

        firsts = [item for item in written if item.run.version == 1]
        # All of them end before the turn does, also where one finds that it was lost.
        for ended in await asyncio.gather(*map(published, firsts), return_exceptions=True):
            if isinstance(ended, BaseException):
                raise ended
        for item in written:
            if item.run.version != 1:
                await published(item)

    async def _publish(self, item: Written, flush: _Once, run: Run) -> None:
        run.stage = "flush"
        await flush()
        await self.commitment.publish(item)

    async def _more(self, tenant: TenantId, most: int) -> list[tuple[str, int]]:
        """Return other prepared jobs of the tenant, waiting for one while it is too early to flush; none: flush now.

        What is written meanwhile is written beside the preparation of what is still to come.
        """
        if not self.together or caution_here() is not Caution.NONE:
            return []
        while True:
            if prepared := list(self._prepared.get(tenant, ()))[:most]:
                return [(job_id, self._forget(tenant, job_id)) for job_id in prepared]
            # A single document is never kept waiting: only while any is on its way may one flush do for more.
            left_s = self._due_in_s() if self._in_preparation or self._prepared else 0.0
            if left_s <= 0:
                return []
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._changed.wait()

    def _forget(self, tenant: TenantId, job_id: str) -> int:
        """Take a job out of those that are prepared; return its attempt, 0 if it was not among them."""
        prepared = self._prepared.get(tenant, {})
        attempt = prepared.pop(job_id, 0)
        if not prepared:
            self._prepared.pop(tenant, None)
        return attempt

    def _due_in_s(self) -> float:
        """Return the seconds until the next flush keeps to its share of the time."""
        since_s = asyncio.get_running_loop().time() - self._flushed_at
        return min(LONGEST_PAUSE_S, self._flush_s / FLUSH_SHARE) - since_s

    async def _flush(self) -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await self.commitment.nodes.vectors.flush()
        self._flushed_at = loop.time()
        self._flush_s = self._flushed_at - begun


@dataclass(slots=True)
class _Once:
    """Does something at the first call that succeeds."""

    work: Callable[[], Awaitable[None]]
    done: bool = False
    _doing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def __call__(self) -> None:
        async with self._doing:
            if not self.done:
                await self.work()
                self.done = True
