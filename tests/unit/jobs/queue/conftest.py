"""A queue that a failed test left is shut down, so that the tests after it may launch theirs."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from agentic_rag_backend.jobs.queue.job_queue import JobQueue


@pytest.fixture(autouse=True)
async def _no_queue_is_left() -> AsyncIterator[None]:
    yield
    if JobQueue._launched is not None:
        await JobQueue._launched.shutdown()
