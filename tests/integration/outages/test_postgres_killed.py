"""A PostgreSQL server killed with -9 during an ingestion, and restarted on its data."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from faulty_proxy import FaultyProxy
from services import Missing, free_port, postgres
from tests.integration.outages.conftest import Opens

pytestmark = [pytest.mark.slow, pytest.mark.services]
DOCUMENTS = 6


class Server:
    """A PostgreSQL server of this test only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._running = ExitStack()
        self.url = ""

    def start(self) -> None:
        """Start it, on the same port and data."""
        self.url = self._running.enter_context(postgres(self._folder, durable=True, port=self._port)).url

    def kill(self) -> None:
        """Kill its first process with -9. The others then end."""
        os.kill(int((self._folder / "postgres" / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
        self._running.close()

    def stop(self) -> None:
        self._running.close()


@contextmanager
def _own() -> Iterator[Server]:
    # Not below pytest's folder, which PostgreSQL's account cannot enter.
    with tempfile.TemporaryDirectory(prefix="agentic-rag-services-") as folder:
        server = Server(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture
def server() -> Iterator[Server]:
    if os.environ.get("TEST_DATABASE_URL"):
        pytest.skip("the PostgreSQL of TEST_DATABASE_URL is not this test's to kill")
    with ExitStack() as running:
        try:
            held = running.enter_context(_own())
        except Missing as missing:
            if os.environ.get("CI", "").lower() == "true":
                pytest.fail(str(missing))
            pytest.skip(str(missing))
        yield held


async def test_accepted_documents_survive_a_killed_server(opens: Opens, server: Server) -> None:
    chosen = {"database_url": server.url, "database_timeout_s": 3.0, "worker_silent_after_s": 3.0}
    with FaultyProxy("127.0.0.1", free_port()) as unused:
        async with opens(unused, **chosen) as site:
            jobs = [await site.accepted(number) for number in range(DOCUMENTS)]
            await asyncio.to_thread(server.kill)
            refused = await site.search()
            assert (refused.status_code, refused.json()["code"]) == (503, "store_unavailable"), refused.text
            assert (await site.ready())["catalogue"] != "ok"
            await asyncio.to_thread(server.start)
            await site.all_is_well([*jobs, await site.accepted(DOCUMENTS)])
