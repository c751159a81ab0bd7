"""Jobs that are cancelled, fail, or are given up: their documents have the right final state, and no data is left."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.integration.pipeline.conftest import Application, Gate

from agentic_rag_backend.domain.document import DocumentState
from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.ingestion.commit.commitment import Commitment
from agentic_rag_backend.jobs import runner
from agentic_rag_backend.stores.graph.base import GraphCounts
from agentic_rag_backend.stores.graph.sqlite import SqliteGraphStore
from agentic_rag_backend.stores.vector.edge.store import EdgeVectorStore

NOTHING = (GraphCounts(0, 0, 0), 0, 0)
FIRST = "# Harbour\n\nMara Voss founded the Tidal Institute in Scarrow in 2019.\n\nTomas Eld moved to Greenholm in 2020."
SECOND = "# Harbour\n\nMara Voss founded the Tidal Institute in Scarrow in 2019.\n\nInes Carrow left Teller Sound in 2031."


async def staged(application: Application) -> int:
    """Return the number of prepared chunks, over all documents and versions."""
    documents = application.container.catalogue.documents
    page = await documents.documents(application.tenant, limit=50)
    prepared = [
        await documents.prepared(application.tenant, each.id, version)
        for each in page.items
        for version in range(1, each.latest_version + 1)
    ]
    return sum(map(len, prepared))


async def test_cancelled_while_queued(application: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch, type(application.container.catalogue.jobs), "start")
    submitted = await application.submit(FIRST, key="one")
    assert submitted.job is not None
    await application.container.jobs.cancel(application.tenant, submitted.job.id)
    gate.open.set()
    job = await application.ended(submitted.job)
    assert job.state is JobState.CANCELLED
    document = await application.container.catalogue.documents.document(application.tenant, submitted.document.id)
    assert (document.state, [failure.code for failure in document.failures]) == (DocumentState.CANCELLED, ["cancelled"])
    assert await application.held() == NOTHING
    again = await application.ended(await application.container.jobs.retry(application.tenant, job.id))
    assert again.state is JobState.SUCCEEDED


@pytest.mark.parametrize(
    ("owner", "method"), [(SqliteGraphStore, "write_document"), (EdgeVectorStore, "upsert"), (EdgeVectorStore, "flush")]
)
async def test_cancelled_while_it_is_committed(
    application: Application, monkeypatch: pytest.MonkeyPatch, owner: type, method: str
) -> None:
    monkeypatch.setattr(runner, "PROGRESS_EVERY_S", 0.0)
    with monkeypatch.context() as patch:
        gate = Gate(patch, owner, method)
        submitted = await application.submit(FIRST, key="one")
        assert submitted.job is not None
        await gate.reached.wait()
        await application.container.jobs.cancel(application.tenant, submitted.job.id)
        gate.open.set()
        job = await application.ended(submitted.job)
    assert (job.state, job.error and job.error["code"]) == (JobState.CANCELLED, "cancelled")
    assert await application.held() == NOTHING
    embedded = application.container.embedder.stats.texts  # type: ignore[attr-defined]
    again = await application.ended(await application.container.jobs.retry(application.tenant, job.id))
    assert again.state is JobState.SUCCEEDED
    assert application.container.embedder.stats.texts == embedded, "paid once"  # type: ignore[attr-defined]
    document = await application.container.catalogue.documents.document(application.tenant, submitted.document.id)
    assert (document.state, document.failures) == (DocumentState.READY, ())


async def test_deleted_after_its_version_became_visible(application: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    await application.ended((await application.submit(FIRST, key="one")).job)
    gate = Gate(monkeypatch, Commitment, "_forget_older")
    second = await application.submit(SECOND, key="one")
    await gate.reached.wait()
    deletion = await application.container.ingestion.delete(application.tenant, second.document.id)
    gate.open.set()
    assert (await application.ended(second.job)).state is JobState.SUCCEEDED
    assert (await application.ended(deletion)).state is JobState.SUCCEEDED
    assert await application.held() == NOTHING


async def test_a_cancelled_update_leaves_the_version_before_it(application: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "PROGRESS_EVERY_S", 0.0)
    first = await application.submit(FIRST, key="one", metadata={"shelf": 1})
    await application.ended(first.job)
    before = await application.held()
    with monkeypatch.context() as patch:
        gate = Gate(patch, EdgeVectorStore, "flush")
        second = await application.submit(SECOND, key="one", metadata={"shelf": 2})
        assert second.job is not None
        await gate.reached.wait()
        await application.container.jobs.cancel(application.tenant, second.job.id)
        gate.open.set()
        assert (await application.ended(second.job)).state is JobState.CANCELLED
    assert await application.held() == before
    assert await application.container.graph.find_entities(application.tenant, ["Ines Carrow"]) == {}
    documents = application.container.catalogue.documents
    document = await documents.document(application.tenant, first.document.id)
    assert (document.state, document.current_version, document.metadata) == (DocumentState.READY, 1, {"shelf": 1})
    texts = [item.chunk.text for item in (await documents.chunks(application.tenant, document.id, limit=10)).items]
    assert any("Tomas Eld" in text for text in texts)
    assert not any("Ines Carrow" in text for text in texts)


async def test_a_failed_commit_leaves_nothing_and_keeps_what_was_prepared(
    impatient: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def down(*arguments: Any) -> None:
        raise StoreUnavailable("the vector store is down")

    with monkeypatch.context() as patch:
        patch.setattr(EdgeVectorStore, "upsert", down)
        submitted = await impatient.submit(FIRST, key="one")
        job = await impatient.ended(submitted.job)
    assert (job.state, job.error and job.error["code"]) == (JobState.FAILED, "store_unavailable")
    assert await impatient.held() == NOTHING
    assert await staged(impatient) > 0
    embedded = impatient.container.embedder.stats.texts  # type: ignore[attr-defined]
    again = await impatient.ended(await impatient.container.jobs.retry(impatient.tenant, job.id))
    assert again.state is JobState.SUCCEEDED
    assert impatient.container.embedder.stats.texts == embedded, "paid once"  # type: ignore[attr-defined]


async def test_what_a_store_that_was_down_kept_goes_at_the_next_attempt(
    impatient: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def down(*arguments: Any, **options: Any) -> None:
        raise StoreUnavailable("the vector store is down")

    with monkeypatch.context() as patch:
        for method in ("upsert", "delete_document"):
            patch.setattr(EdgeVectorStore, method, down)
        submitted = await impatient.submit(FIRST, key="one")
        job = await impatient.ended(submitted.job)
    assert job.state is JobState.FAILED
    assert (await impatient.held())[0].mentions > 0
    again = await impatient.ended(await impatient.container.jobs.retry(impatient.tenant, job.id))
    assert again.state is JobState.SUCCEEDED
    result = again.result or {}
    assert (await impatient.held())[0].mentions == result["mentions"]


async def test_a_job_that_the_queue_gives_up_ends_its_document(impatient: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    async def breaks(*arguments: Any) -> None:
        raise StoreUnavailable("the catalogue was away for longer than anybody waits")

    with monkeypatch.context() as patch:
        patch.setattr(Commitment, "record_failure", breaks)
        patch.setattr(SqliteGraphStore, "write_document", breaks)
        submitted = await impatient.submit(FIRST, key="one")
        assert submitted.job is not None
        # Its end cannot be recorded, so it runs again with the next housekeeping or start.
        await asyncio.sleep(1.0)
        assert not (await impatient.job(submitted.job)).state.ended
    ingestion, tenant = impatient.container.ingestion, impatient.tenant
    await ingestion.given_up(tenant, submitted.job.id, 2, RuntimeError("another attempt"))
    assert not (await impatient.job(submitted.job)).state.ended
    await ingestion.given_up(tenant, submitted.job.id, 1, RuntimeError("killed its process"))
    job = await impatient.job(submitted.job)
    assert job.state is JobState.FAILED
    assert job.error is not None
    assert "killed its process" in job.error["message"]
    document = await impatient.container.catalogue.documents.document(tenant, submitted.document.id)
    assert (document.state, document.failures[0].code) == (DocumentState.FAILED, "internal_error")
    assert await impatient.held() == NOTHING
    await ingestion.given_up(tenant, "no such job", 1, RuntimeError("gone with its tenant"))
    again = await impatient.ended(await impatient.container.jobs.retry(tenant, job.id))
    assert again.state is JobState.SUCCEEDED
