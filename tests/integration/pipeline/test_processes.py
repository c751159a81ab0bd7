"""One process owns a folder, and the next one continues its work."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.stores.vector.base import Collection

if TYPE_CHECKING:
    from tests.integration.pipeline.conftest import Application, Opens

SECOND_PROCESS = """
import asyncio, sys
from pathlib import Path
from agentic_rag_backend.container import open_container
from agentic_rag_backend.errors import StoreLocked
from agentic_rag_backend.settings import Settings

async def main():
    try:
        async with open_container(Settings(data_dir=Path(sys.argv[1]), _env_file=None)):
            print("opened")
    except StoreLocked as error:
        print(error.code, error.message)

asyncio.run(main())
"""


async def test_a_second_process_is_refused_and_the_first_goes_on(application: Application) -> None:
    folder = application.container.settings.data_dir
    submitted = await application.submit("# One\n\nMara Voss founded the Tidal Institute in Scarrow.", key="one")
    before = sorted(path.name for path in folder.iterdir())
    command = [sys.executable, "-c", SECOND_PROCESS, str(folder)]
    second = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60)
    assert second.stdout.startswith("store_locked "), second.stdout + second.stderr
    assert "one process at a time" in second.stdout
    assert str(Path(folder) / "vectors") in second.stdout
    assert sorted(path.name for path in folder.iterdir()) == before
    assert (await application.ended(submitted.job)).state is JobState.SUCCEEDED
    again = await application.submit("# Two\n\nTomas Eld moved to Greenholm.", key="two")
    assert (await application.ended(again.job)).state is JobState.SUCCEEDED


async def test_stopping_while_jobs_run_loses_nothing(opens: Opens) -> None:
    texts = {f"report-{n}": f"# Report {n}\n\n" + f"Explorer number {n} crossed the river near Basel. " * 60 for n in range(12)}
    async with opens() as application:
        submitted = [await application.submit(text, key=key) for key, text in texts.items()]
        last = await application.job(submitted[-1].job)
    assert not last.state.ended
    async with opens() as application:
        ended = [await application.ended(each.job) for each in submitted]
        assert {job.state for job in ended} == {JobState.SUCCEEDED}
        counts = await application.container.catalogue.documents.counts(application.tenant)
        assert counts["documents_ready"] == 12
        assert await application.container.vectors.count(application.tenant, Collection.CHUNKS) == counts["chunks"]
