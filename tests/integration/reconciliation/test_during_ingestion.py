"""The reconciler during ingestion, updates and deletes reports no false differences and removes nothing in flight."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from harbour_reports import small_text
from tests.integration.reconciliation.conftest import Application, Opens

from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.ingestion.reconciliation.report import Kind, Report
from agentic_rag_backend.ingestion.reconciliation.rounds import Round
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue, DocumentStatus
from agentic_rag_backend.stores.vector.base import Collection

DOCUMENTS = 8


async def lived(application: Application, number: int) -> None:
    """The life of a document: submitted, edited, relabelled, edited again. Every third one is deleted at the end."""
    key = f"report-{number}"
    ingestion = application.container.ingestion
    document = ""
    for text in (small_text(number), small_text(number, year=2031), small_text(number + 1).replace("Works", "Deeds")):
        submitted = await application.submit(text, key=key)
        document = submitted.document.id
        assert (await application.ended(submitted.job)).state is JobState.SUCCEEDED
        await ingestion.update(application.tenant, document, fields={"edited": text[:9], "year": number})
    if number % 3 == 0:
        job = await application.ended(await ingestion.delete(application.tenant, document))
        assert job.state is JobState.SUCCEEDED, job


async def everything_lived(application: Application) -> dict[str, Any]:
    """Run the lives of all documents concurrently. Return the contents of the stores, identified by keys and texts."""
    await asyncio.gather(*(lived(application, number) for number in range(DOCUMENTS)))
    return await comparable(application)


async def comparable(application: Application) -> dict[str, Any]:
    """Return the contents of the stores without random ids: those of documents and those derived from them."""
    tenant = application.tenant.value
    keys = dict(application.rows("SELECT id, key FROM documents WHERE tenant_id = ?", tenant))
    texts = dict(application.rows("SELECT chunk_id, text FROM chunk_texts WHERE tenant_id = ?", tenant))
    vectors = application.container.vectors
    points = [point async for page in vectors.points(application.tenant, Collection.CHUNKS) for point in page]
    nodes = [point async for page in vectors.points(application.tenant, Collection.NODES) for point in page]
    originals = application.folder / "blobs" / tenant
    return {
        "documents": sorted(application.rows("SELECT key, state, current_version, metadata FROM documents")),
        "points": sorted(
            (
                keys[point.document_id],
                point.version,
                texts[point.id],
                sorted(tag for tag in point.tags if "document_id" not in tag),
            )
            for point in points
        ),
        "facts": sorted(point.id for point in nodes),
        "relationships": sorted(application.graph("SELECT id, source_id, relation, target_id FROM relationships")),
        "entities": sorted(application.graph("SELECT id, name, type FROM entities")),
        "mentions": sorted(
            (keys[document], version, texts[chunk], *rest)
            for document, version, chunk, *rest in application.graph(
                "SELECT document_id, version, chunk_id, entity_id, count, about FROM mentions"
            )
        ),
        "originals": sum(1 for path in originals.rglob("*") if path.is_file()),
    }


@asynccontextmanager
async def reconciled_meanwhile(application: Application) -> AsyncIterator[list[Report]]:
    """Repair continuously until the context ends."""
    reports: list[Report] = []
    left = asyncio.Event()

    async def again_and_again() -> None:
        while not left.is_set():
            reports.append(await application.reconciled())
            await asyncio.sleep(0)

    task = asyncio.create_task(again_and_again())
    try:
        yield reports
    finally:
        left.set()
        await task


async def test_stores_end_as_without_it(opens: Opens, tmp_path_factory: pytest.TempPathFactory) -> None:
    async with opens() as application:
        async with reconciled_meanwhile(application) as reports:
            disturbed = await everything_lived(application)
        assert len(reports) > 3
        assert sum(report.in_flight for report in reports) > 0, "it never met anything in flight"
        last = await application.reconciled()
        assert last.as_result()["kinds"] == {}
    # During a PATCH, the vectors are behind the catalogue for a moment. Copying twice does no harm.
    harmless = {Kind.CHUNK_VECTOR_METADATA}
    for report in reports:
        wrongly = {kind: tally.found for kind, tally in report.tallies.items() if tally.found and kind not in harmless}
        assert wrongly == {}
    async with opens(data_dir=tmp_path_factory.mktemp("undisturbed")) as application:
        undisturbed = await everything_lived(application)
    assert disturbed == undisturbed


async def leaves_alone_what_is_in_flight(application: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that has written everything and published nothing finds all its data when it continues."""
    written, go_on = asyncio.Event(), asyncio.Event()
    publish = DocumentCatalogue.publish

    async def waits(self: DocumentCatalogue, *arguments: Any, **options: Any) -> bool:
        written.set()
        await go_on.wait()
        return await publish(self, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(DocumentCatalogue, "publish", waits)
        submitted = await application.submit(small_text(1), key="report-1")
        await written.wait()
        before = await application.contents()
        report = await application.reconciled()
        assert await application.contents() == before
        assert (report.in_flight, report.differences) == (1, 0)
        go_on.set()
        assert (await application.ended(submitted.job)).state is JobState.SUCCEEDED
    assert (await application.reconciled(repair=False)).differences == 0


async def test_documents_in_processing_are_left_alone(application: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    await application.ingested(1)
    await leaves_alone_what_is_in_flight(application, monkeypatch)


async def test_a_repair_that_does_not_look_whether_anything_is_in_flight_fails(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    await application.ingested(1)
    statuses = DocumentCatalogue.statuses

    async def all_settled(self: DocumentCatalogue, tenant: TenantId, **which: Any) -> list[DocumentStatus]:
        return [replace(each, in_flight=False, unfinished=False) for each in await statuses(self, tenant, **which)]

    @asynccontextmanager
    async def at_once(self: Round) -> AsyncIterator[None]:
        yield

    monkeypatch.setattr(DocumentCatalogue, "statuses", all_settled)
    monkeypatch.setattr(Round, "tenant_lock", at_once)
    with pytest.raises(AssertionError):
        await leaves_alone_what_is_in_flight(application, monkeypatch)


async def test_a_suspicion_that_came_true_in_the_meantime_is_none(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data that is written between the two checks is found by the second one, and counted as skipped."""
    (document,) = await application.ingested(1)
    kept = await application.container.catalogue.documents.prepared(application.tenant, document, 1)
    vectors, tenant = application.container.vectors, application.tenant
    whole = await application.contents()
    chunks = await vectors.delete_document(tenant, document, up_to_version=1)
    tenant_lock = Round.tenant_lock

    @asynccontextmanager
    async def late(self: Round) -> AsyncIterator[None]:
        async with tenant_lock(self):
            await restored(kept)
            yield

    async def restored(items: Sequence[Any]) -> None:
        from agentic_rag_backend.ingestion.commit.commitment import points_of

        held = await application.container.catalogue.documents.document(tenant, document)
        version = await application.container.catalogue.documents.version(tenant, document, 1)
        await vectors.upsert(tenant, Collection.CHUNKS, points_of(held, version).make_points(items))

    monkeypatch.setattr(Round, "tenant_lock", late)
    report = await application.reconciled()
    assert {kind.value: (tally.found, tally.skipped) for kind, tally in report.tallies.items()} == {
        "chunk_vector_missing": (0, chunks)
    }
    assert await application.contents() == whole
