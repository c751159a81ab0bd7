"""Fixtures of all end-to-end tests: no turn of an event loop takes long, in the test's process and in those that it starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from watched_loops import long_turns_in, take_long_turns

from agentic_rag_backend.telemetry.event_loop import WatchedLoop


def pytest_asyncio_loop_factories() -> Mapping[str, type[WatchedLoop]]:
    """Run the tests, and the servers in their process, in event loops that can be watched."""
    return {"watched": WatchedLoop}


@pytest.fixture(autouse=True, scope="session")
def _long_turns(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with long_turns_in(tmp_path_factory.mktemp("event-loop") / "long-turns.txt"):
        yield


@pytest.fixture(autouse=True)
def _short_turns(_long_turns: None) -> Iterator[None]:
    """Fail a test if a turn took too long since the end of the previous test: in the test, or in fixtures that it uses."""
    yield
    assert take_long_turns() == []
