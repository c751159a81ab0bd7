"""One process owns a folder, and the next one continues its work."""

from __future__ import annotations

from tests.integration.pipeline.conftest import Opens

from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.stores.vector.base import Collection


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
