"""Small documents: one workflow prepares and commits them, and waits for the commits of the tenant in between."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter

from tests.integration.ingestion.conftest import Builder, World

from agentic_rag_backend.domain.document import ChunkingOptions, DocumentState, ProcessingOptions
from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.ingestion.service import COMMIT
from agentic_rag_backend.jobs.coordination.tenant_locks import TenantLock
from agentic_rag_backend.stores.catalogue.base import Submitted
from agentic_rag_backend.stores.vector.base import Collection

TEXT = "# {0}\n\nMarie Curie wrote report {0} in Paris."
LONG = "\n\n".join(f"## Part {number}\n\n" + f"Explorer {number} crossed the river near Basel. " * 12 for number in range(6))
PIECES = ProcessingOptions(chunking=ChunkingOptions(chunk_size=150, overlap=10))


async def until_prepared(world: World, *documents: Submitted) -> None:
    async with asyncio.timeout(60):
        for item in documents:
            while not await world.catalogue.documents.prepared(world.tenant, item.document.id, item.document.latest_version):
                await asyncio.sleep(0.02)


def workflows(world: World) -> Counter[tuple[str, str]]:
    connection = sqlite3.connect(world.folder / "catalogue.db")
    found = connection.execute(
        "SELECT name, CASE WHEN finished_us IS NULL THEN 'open' ELSE 'finished' END FROM workflows"
    ).fetchall()
    connection.close()
    return Counter(found)


async def test_documents_that_wait_for_their_commit(world: World) -> None:
    """They occupy no place of a preparation, and may be cancelled, deleted or replaced."""
    other = (await world.catalogue.tenants.create("other")).id
    async with world.queue.tenant_lock(TenantLock.COMMIT, world.tenant):
        names = ("cancelled", "deleted", "replaced", "a", "b", "c", "d")
        cancelled, deleted, replaced, *kept = [await world.submit(TEXT.format(name), key=name) for name in names]
        kept.append(await world.submit(LONG, options=PIECES))
        await until_prepared(world, cancelled, deleted, replaced, *kept)
        assert cancelled.job is not None
        await world.catalogue.jobs.request_cancel(world.tenant, cancelled.job.id)
        deletion = await world.ingestion.delete(world.tenant, deleted.document.id)
        newer = await world.submit(TEXT.format("newer"), key="replaced")
        await until_prepared(world, newer)
        assert (
            await world.ended((await world.submit(LONG, options=PIECES, tenant=other)).job, tenant=other)
        ).state is JobState.SUCCEEDED
    for item in (*kept, newer):
        assert (await world.ended(item.job)).state is JobState.SUCCEEDED
    assert (await world.ended(deletion)).state is JobState.SUCCEEDED
    for item, code in ((cancelled, "cancelled"), (deleted, "superseded"), (replaced, "superseded")):
        job = await world.ended(item.job)
        assert (job.state, (job.error or {}).get("code")) == (JobState.CANCELLED, code)
    visible = await world.catalogue.documents.visible_versions(world.tenant)
    assert visible == {**{item.document.id: 1 for item in kept}, newer.document.id: 2}
    document = await world.catalogue.documents.document(world.tenant, cancelled.document.id)
    assert document.state is DocumentState.CANCELLED
    chunks = [await world.catalogue.documents.document(world.tenant, document_id) for document_id in visible]
    assert await world.vectors.count(world.tenant, Collection.CHUNKS) == sum(item.chunk_count for item in chunks)
    async with asyncio.timeout(20):
        while any(status != "finished" for _, status in workflows(world)):
            await asyncio.sleep(0.02)
    assert workflows(world) == {("ingest_v1", "finished"): 10, ("commit_v1", "finished"): 2, ("delete_v1", "finished"): 1}


async def test_a_small_document_whose_commit_an_older_release_enqueued(builder: Builder) -> None:
    """The older release was killed before the workflow of the preparation ended, so that both workflows run."""
    world = await builder.open(work=False)
    await world.queue.migrate()
    submitted = await world.submit(TEXT.format("one"))
    assert submitted.job is not None
    await world.ingestion.ingest_v1(world.tenant, submitted.job.id, 1)
    await world.queue.enqueue(COMMIT, world.tenant, submitted.job.id, 1)
    await world.queue.launch()
    builder.stack.push_async_callback(world.queue.shutdown)
    async with asyncio.timeout(20):
        while workflows(world) != {("ingest_v1", "finished"): 1, ("commit_v1", "finished"): 1}:
            await asyncio.sleep(0.02)
    job = await world.ended(submitted.job)
    assert job.state is JobState.SUCCEEDED
    assert job.result is not None
    assert await world.vectors.count(world.tenant, Collection.CHUNKS) == job.result["chunks"] == 1
