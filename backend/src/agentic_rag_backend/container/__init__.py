"""Composition root: builds the services from the settings. Only this package imports adapters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType

from agentic_rag_backend.container.adapters import open_adapters
from agentic_rag_backend.container.background_tasks import BackgroundTasks, sweep_originals
from agentic_rag_backend.container.options import warn_of_weights
from agentic_rag_backend.container.services import Container
from agentic_rag_backend.jobs.queue.job_queue import JobQueue
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.stores.catalogue.base import READ_BY_FILTERS

__all__ = ["Container", "open_container"]

CAUGHT_UP_WITHIN_S = 10.0
"""Seconds that a start waits until searches have the changes that an earlier process left. Then the relay continues."""


@asynccontextmanager
async def open_container(settings: Settings, *, work: bool = True) -> AsyncIterator[Container]:
    """Open every store, update the schemas, start the workers, and close everything at the end.

    Args:
        work: run jobs in this process.

    Raises:
        StoreLocked: another process has DATA_DIR open.
        ReindexRequired: DATA_DIR holds vectors of another embedder.
        ConfigurationError: settings contradict each other.
    """
    async with AsyncExitStack() as stack:
        warn_of_weights(settings)
        container = Container(settings, await open_adapters(settings, stack), work=work)
        container.build()
        # The last entries are written after the workers have stopped.
        stack.push_async_callback(container.usage.write_ledger)
        stack.push_async_callback(container.experiments.write_outcomes)
        stack.push_async_callback(container.feedback.write_answers)
        stack.push_async_callback(container.key_uses.write_uses)
        if container.tokens is not None:
            stack.push_async_callback(container.tokens.close)
        stack.push_async_callback(container.quotas.places.return_places)
        writers = {
            "usage": container.usage.run(),
            "answers": container.feedback.run(),
            "outcomes": container.experiments.run(),
            "key-uses": container.key_uses.run(),
            "request-places": container.quotas.places.run(),
        }
        writing = [asyncio.create_task(work, name=name) for name, work in writers.items()]
        stack.push_async_callback(asyncio.wait, writing)
        for task in writing:
            stack.callback(task.cancel)
        # Registered after the stores, so that workers stop before their stores close.
        stack.push_async_exit(_shutdown_of(container.queue))
        stack.push_async_callback(container.relay.close)
        if work:
            swept = asyncio.create_task(sweep_originals(container.reconciler), name="sweep")
            stack.push_async_callback(asyncio.wait, [swept])
            await container.queue.launch()
        else:
            await container.queue.migrate()
        # A process that was killed between a change of metadata and its copy in the vectors left an entry: filters are stale.
        await container.relay.catch_up(READ_BY_FILTERS, within_s=CAUGHT_UP_WITHIN_S)
        if work:
            BackgroundTasks(container).begin(stack)
        yield container


def _shutdown_of(queue: JobQueue) -> Callable[..., Awaitable[None]]:
    """Return the exit callback of the queue. After an interruption it does not wait for running jobs."""

    async def shutdown(kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        await queue.shutdown(drain=kind is None or issubclass(kind, Exception))

    return shutdown
