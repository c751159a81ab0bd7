"""Committing several documents at once, so that they share what costs the same for one as for many: the flush.

Measured: flushing the embedded vector store takes 10–90 ms whatever was written, and holds the whole process while it
does. A document's other work beside the embedder takes 5 ms.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.ingestion.commitment import Commitment, Written
from agentic_rag_backend.ingestion.runs import Run, Runner
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

    def add(self, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Note that a job is prepared and may be taken along."""
        if not self.together:
            return
        self._prepared.setdefault(tenant, {})[job_id] = attempt

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """Tell that a document is on its way here, whosever it is: one flush may then do for it as well."""
        self._in_preparation += 1
        try:
            yield
        finally:
            self._in_preparation -= 1

    async def commit(self, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Commit the job and those of the tenant that are prepared by now."""
        first = await self.runner.begin(tenant, job_id, attempt, started=True)
        if first is None:
            return
        if self._others_come(tenant, job_id):
            await self._pause()
        written: list[Written] = []
        await self._write(first, written)
        for other, number in self._taken_along(tenant, job_id):
            run = await self.runner.begin(tenant, other, number, started=True)
            if run is not None:
                await self._write(run, written)
        flush = _Once(self._flush)
        for item in written:
            await self.runner.guarded(item.run, partial(self._publish, item, flush), self.commitment.failed)

    async def _write(self, run: Run, written: list[Written]) -> None:
        async def step(run: Run) -> None:
            written.append(await self.commitment.write(run))

        await self.runner.guarded(run, step, self.commitment.failed)

    async def _publish(self, item: Written, flush: _Once, run: Run) -> None:
        run.stage = "flush"
        await flush()
        await self.commitment.publish(item)

    def _others_come(self, tenant: TenantId, job_id: str) -> bool:
        """Tell whether any document but this one is prepared or being prepared: a single one is never kept waiting."""
        if not self.together:
            return False
        others = sum(map(len, self._prepared.values())) - (job_id in self._prepared.get(tenant, {}))
        return self._in_preparation > 0 or others > 0

    async def _pause(self) -> None:
        """Let documents gather, if the last flush was a moment ago."""
        now = asyncio.get_running_loop().time()
        pause_s = min(LONGEST_PAUSE_S, self._flush_s / FLUSH_SHARE) - (now - self._flushed_at)
        if pause_s > 0:
            await asyncio.sleep(pause_s)

    def _taken_along(self, tenant: TenantId, job_id: str) -> list[tuple[str, int]]:
        prepared = self._prepared.get(tenant, {})
        prepared.pop(job_id, None)
        if caution_here() is not Caution.NONE:
            return []
        taken = [(other, prepared.pop(other)) for other in list(prepared)[: MOST_TOGETHER - 1]]
        if not prepared:
            self._prepared.pop(tenant, None)
        return taken

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

    async def __call__(self) -> None:
        if not self.done:
            await self.work()
            self.done = True
