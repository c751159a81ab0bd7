"""A queue that a failed test left is shut down, so that the tests after it may launch theirs."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from agentic_rag_backend.jobs.queue.durable_queue import DurableQueue


@pytest.fixture(autouse=True)
async def _no_queue_is_left() -> AsyncIterator[None]:
    yield
    if DurableQueue._launched is not None:
        await DurableQueue._launched.shutdown()
