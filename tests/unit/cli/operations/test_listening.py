"""The serving process excludes the objects of its start from garbage collection, which stops all threads.

Its threads wait shortly for one another.
"""

from __future__ import annotations

import gc
import socket
import sys
from collections.abc import Iterator
from typing import cast

import pytest
import uvicorn

from agentic_rag_backend.cli.operations.listening import run_server, share_threads


class Served:
    """Records the number of excluded objects while it serves."""

    left_out = 0

    async def serve(self, sockets: list[socket.socket]) -> None:
        self.left_out = gc.get_freeze_count()


@pytest.fixture
def collector() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)


@pytest.mark.usefixtures("collector")
async def test_what_the_start_loaded_is_not_looked_through_again() -> None:
    server, before, thresholds = Served(), gc.get_freeze_count(), gc.get_threshold()
    loaded = [[] for _ in range(10_000)]  # type: ignore[var-annotated]
    with socket.socket() as listening:
        await run_server(cast(uvicorn.Server, server), listening, continuation="")
    assert server.left_out - before >= len(loaded)
    assert all(now > default for now, default in zip(gc.get_threshold()[::2], thresholds[::2], strict=True))


async def test_threads_take_the_interpreter_for_short_turns() -> None:
    before = sys.getswitchinterval()
    try:
        share_threads()
        assert sys.getswitchinterval() < before
    finally:
        sys.setswitchinterval(before)
