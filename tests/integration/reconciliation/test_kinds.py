"""Each kind of difference is reported and repaired. Stores without differences are not changed."""

from __future__ import annotations

import asyncio
import os
import shutil
from typing import Any

import numpy as np
import pytest
from harbour_reports import small_text
from tests.integration.reconciliation.conftest import Application

from agentic_rag_backend.domain.document import QuestionOptions
from agentic_rag_backend.domain.graph import Community, DocumentKnowledge, Entity
from agentic_rag_backend.domain.job import JobKind, JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import NotFound
from agentic_rag_backend.ingestion.reconciliation.report import Kind, Report
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, VectorPoint
from agentic_rag_backend.themes.raptor.build_options import BuildOptions

NOBODY = TenantId("t_" + "e" * 32)


def counted(report: Report) -> dict[str, tuple[int, int]]:
    """Return found and repaired differences by kind. Differences caused by running jobs do not count."""
    return {kind.value: (tally.found, tally.mended) for kind, tally in report.tallies.items() if tally.found}


async def told_and_mended(application: Application, expected: dict[Kind, int]) -> Report:
    """A comparison reports the differences and changes nothing, a repair removes them, and the next comparison finds none."""
    before = await application.contents()
    told = await application.reconciled(repair=False)
    assert counted(told) == {kind.value: (count, 0) for kind, count in expected.items()}
    assert await application.contents() == before
    report = await application.reconciled()
    assert counted(report) == {kind.value: (count, count) for kind, count in expected.items()}
    for job in report.jobs:
        ended = await application.ended(await application.container.catalogue.jobs.job(application.tenant, job))
        assert ended.state is JobState.SUCCEEDED, ended
    assert counted(await application.reconciled()) == {}
    return report


def orphan(number: int, kind: NodeKind, **fields: Any) -> VectorPoint:
    dense = np.ones(384, dtype=np.float32)
    return VectorPoint(id=f"00000000-0000-4000-8000-{number:012}", kind=kind, dense=dense, text="a stray", **fields)


async def test_stores_in_order_have_no_difference(application: Application) -> None:
    await application.ingested(4)
    await application.rebuilt()
    updated = await application.submit("# Report 2\n\nTomas Eld left Greenholm for Scarrow.", key="report-2")
    await application.ended(updated.job)
    before = await application.contents()
    for repair in (False, True):
        report = await application.reconciled(repair=repair)
        assert (report.as_result()["kinds"], report.documents, report.in_flight) == ({}, 4, 0)
    assert await application.contents() == before


async def test_vectors_of_chunks(application: Application) -> None:
    ids = await application.ingested(3)
    vectors, tenant = application.container.vectors, application.tenant
    whole = await application.contents()
    lost, renumbered, _ = [point async for page in vectors.points(tenant, Collection.CHUNKS) for point in page][:3]
    await vectors.delete(tenant, Collection.CHUNKS, [lost.id])
    kept = await application.container.catalogue.documents.prepared(tenant, renumbered.document_id or "", 1)
    wrong = next(item for item in kept if item.chunk.id == renumbered.id)
    point = VectorPoint(id=renumbered.id, kind=NodeKind.CHUNK, dense=wrong.vector, document_id=renumbered.document_id, version=9)
    await vectors.upsert(tenant, Collection.CHUNKS, [point])
    strays = [orphan(1, NodeKind.CHUNK, document_id=ids[0], version=1), orphan(2, NodeKind.CHUNK, document_id="gone", version=1)]
    await vectors.upsert(tenant, Collection.CHUNKS, [*strays, orphan(3, NodeKind.CHUNK)])
    await told_and_mended(
        application,
        {Kind.CHUNK_VECTOR_MISSING: 1, Kind.CHUNK_VECTOR_VERSION: 1, Kind.CHUNK_VECTOR_ORPHANED: 3},
    )
    assert await application.contents() == whole


async def test_metadata_that_never_reached_the_vectors(application: Application) -> None:
    """As if the process ended between a PATCH's transaction and the vectors."""
    ids = await application.ingested(2)
    vectors, tenant = application.container.vectors, application.tenant
    whole = await application.contents()
    await vectors.update_metadata(tenant, ids[1], {"shelf": 99}, title="old", key=None, up_to_version=9)
    chunks = await vectors.count(tenant, Collection.CHUNKS, document_id=ids[1])
    await told_and_mended(application, {Kind.CHUNK_VECTOR_METADATA: chunks})
    assert await application.contents() == whole


async def test_vectors_of_synthetic_questions(application: Application) -> None:
    (document,) = await application.ingested(1)
    asked = await application.submit(small_text(1), key="asked", questions=QuestionOptions("patterns"), metadata={"shelf": 4})
    await application.ended(asked.job)
    vectors, tenant, id = application.container.vectors, application.tenant, asked.document.id
    whole = await application.contents()
    points = [point async for page in vectors.points(tenant, Collection.CHUNKS, kind=NodeKind.QUESTION) for point in page]
    lost, renumbered, *_ = [point.id for point in points]
    assert {point.document_id for point in points} == {id}
    await vectors.delete(tenant, Collection.CHUNKS, [lost])
    dense = (await vectors.vectors(tenant, Collection.CHUNKS, [renumbered]))[renumbered]
    late = VectorPoint(id=renumbered, kind=NodeKind.QUESTION, dense=dense, document_id=id, version=9, metadata={"shelf": 4})
    strays = [orphan(number, NodeKind.QUESTION, document_id=held, version=1) for number, held in ((1, document), (2, id))]
    await vectors.upsert(tenant, Collection.CHUNKS, [late, *strays])
    await told_and_mended(application, {Kind.QUESTION_VECTOR_MISSING: 2, Kind.QUESTION_VECTOR_ORPHANED: 2})
    assert await application.contents() == whole
    await vectors.update_metadata(tenant, id, {"shelf": 99}, title="old", key=None, up_to_version=9)
    await told_and_mended(
        application, {Kind.CHUNK_VECTOR_METADATA: await vectors.count(tenant, Collection.CHUNKS, document_id=id)}
    )
    assert await application.contents() == whole


async def test_results_that_are_gone_are_computed_again(application: Application) -> None:
    ids = await application.ingested(2)
    vectors, tenant = application.container.vectors, application.tenant
    whole = await application.contents()
    chunks = await vectors.delete_document(tenant, ids[0], up_to_version=9)
    await application.container.graph.delete_document(tenant, ids[0], up_to_version=9)
    application.rows("DELETE FROM prepared_chunks WHERE document_id = ?", ids[0])
    report = await application.reconciled()
    assert counted(report)["chunk_vector_missing"] == (chunks, chunks)
    assert counted(report)["knowledge_missing"] == (1, 1)
    now = await application.contents()
    # Embedded in another group, a vector may differ in its last bits.
    name = f"{Collection.CHUNKS} vectors"
    for id, vector in whole.pop(name).items():
        assert np.allclose(np.frombuffer(vector, "<f4"), np.frombuffer(now[name][id], "<f4"), atol=1e-2)
    del now[name]
    assert now == whole
    assert counted(await application.reconciled()) == {}


async def test_knowledge(application: Application) -> None:
    ids = await application.ingested(3)
    graph, tenant = application.container.graph, application.tenant
    whole = await application.contents()
    application.graph("DELETE FROM mentions WHERE document_id = ?", ids[0])
    await graph.delete_document(tenant, ids[1], up_to_version=1)
    stray = DocumentKnowledge(
        document_id=ids[2], version=7, title="", chunk_ids=(), entities=(Entity(id="stray", name="Stray", type="thing"),)
    )
    await graph.write_document(tenant, stray)
    nobodys = DocumentKnowledge(document_id="nobody's", version=1, title="", chunk_ids=(), entities=stray.entities)
    await graph.write_document(tenant, nobodys)
    told = await application.reconciled(repair=False)
    found = {kind: tally.found for kind, tally in told.tallies.items()}
    # Facts that only the second document states have lost their relationship, too.
    orphans = found.pop(Kind.FACT_VECTOR_ORPHANED)
    assert orphans > 0
    assert found == {Kind.KNOWLEDGE_DAMAGED: 1, Kind.KNOWLEDGE_MISSING: 1, Kind.KNOWLEDGE_ORPHANED: 2}
    report = await application.reconciled()
    assert all(found == mended for found, mended in counted(report).values())
    assert await application.contents() == whole
    assert counted(await application.reconciled()) == {}


async def test_vectors_of_facts(application: Application) -> None:
    await application.ingested(2)
    vectors, tenant = application.container.vectors, application.tenant
    points = [point async for page in vectors.points(tenant, Collection.NODES, kind=NodeKind.FACT) for point in page]
    await vectors.delete(tenant, Collection.NODES, [point.id for point in points[:3]])
    await vectors.upsert(tenant, Collection.NODES, [orphan(1, NodeKind.FACT)])
    await told_and_mended(application, {Kind.FACT_VECTOR_MISSING: 3, Kind.FACT_VECTOR_ORPHANED: 1})
    after = [point async for page in vectors.points(tenant, Collection.NODES, kind=NodeKind.FACT) for point in page]
    assert sorted(map(repr, after)) == sorted(map(repr, points))


async def test_communities(application: Application) -> None:
    await application.ingested(4)
    await application.rebuilt()
    vectors, graph, tenant = application.container.vectors, application.container.graph, application.tenant
    whole = await application.contents()
    held = [point async for page in vectors.points(tenant, Collection.NODES, kind=NodeKind.COMMUNITY) for point in page]
    assert held
    await vectors.delete(tenant, Collection.NODES, [held[0].id])
    stale = Community(id=held[0].id, generation=8, level=0, parent_id=None, entity_ids=("x",), fingerprint="f", entity_count=1)
    await graph.write_communities(tenant, 8, [stale])
    await vectors.upsert(tenant, Collection.NODES, [orphan(1, NodeKind.COMMUNITY, generation=8)])
    await told_and_mended(
        application,
        {Kind.COMMUNITY_VECTOR_MISSING: 1, Kind.COMMUNITY_ORPHANED: 1, Kind.COMMUNITY_VECTOR_ORPHANED: 1},
    )
    now = await application.contents()
    name = f"{Collection.NODES} vectors"
    assert now.pop(name).keys() == whole.pop(name).keys()
    assert now == whole


async def test_a_lost_generation_is_built_again(application: Application) -> None:
    await application.ingested(4)
    await application.rebuilt()
    pointer = await application.container.catalogue.communities.pointer(application.tenant)
    count = len(await application.container.graph.communities(application.tenant, pointer.generation))
    await application.container.graph.write_communities(application.tenant, pointer.generation, [])
    report = await told_and_mended(application, {Kind.COMMUNITY_MISSING: count})
    assert len(report.jobs) == 1
    now = await application.container.catalogue.communities.pointer(application.tenant)
    assert len(await application.container.graph.communities(application.tenant, now.generation)) == count


async def test_originals(application: Application) -> None:
    ids = await application.ingested(2)
    blobs, tenant = application.container.blobs, application.tenant
    await blobs.put(tenant, "stray/original", b"x")
    report = await application.reconciled()
    assert counted(report) == {}, "what this process stored a moment ago may be about to be recorded"
    folder = application.folder / "blobs" / tenant.value
    for file in folder.rglob("*"):
        if file.is_file():
            os.utime(file, (1, 1))
    shutil.rmtree(folder / ids[1])
    report = await application.reconciled()
    assert counted(report) == {"original_orphaned": (1, 1), "original_missing": (1, 0)}
    assert report.tallies[Kind.ORIGINAL_MISSING].unmendable == 1
    assert report.tallies[Kind.ORIGINAL_MISSING].examples == [ids[1]]
    assert counted(await application.reconciled()) == {"original_missing": (1, 0)}


async def test_documents_that_wait_for_nothing(application: Application) -> None:
    """A document whose job ended without finishing it, a deletion likewise, and a job that the queue does not have."""
    ids = await application.ingested(3)
    whole = await application.contents()
    jobs = application.container.catalogue.jobs
    again = await application.submit("# Report 0\n\nMara Voss left Scarrow.", key="report-0")
    ended = await application.ended(again.job)
    assert ended.state is JobState.SUCCEEDED
    while application.rows("SELECT 1 FROM workflows WHERE finished_us IS NULL"):
        await asyncio.sleep(0.01)  # a workflow ends a moment after its job
    application.rows("UPDATE documents SET state = 'processing' WHERE id = ?", ids[1])
    application.rows("UPDATE document_versions SET state = 'pending' WHERE document_id = ?", ids[1])
    application.rows("UPDATE documents SET current_version = 0 WHERE id = ?", ids[1])
    application.rows("UPDATE documents SET state = 'deleting', deleted_at = '2026-01-01 00:00:00' WHERE id = ?", ids[0])
    (job,) = (await jobs.jobs(application.tenant, limit=10, document_id=ids[2])).items
    application.rows("UPDATE jobs SET state = 'running' WHERE id = ?", job.id)
    application.rows("DELETE FROM workflows WHERE id LIKE ?", f"%{job.id}%")
    report = await application.reconciled(repair=False)
    assert counted(report) == {"document_stuck": (1, 0), "deletion_stuck": (1, 0), "job_lost": (1, 0)}
    report = await application.reconciled()
    assert counted(report) == {"document_stuck": (1, 1), "deletion_stuck": (1, 1), "job_lost": (1, 1)}
    for id in report.jobs:
        held = await application.ended(await jobs.job(application.tenant, id))
        assert held.state is JobState.SUCCEEDED, held
    assert {row[0] for row in application.rows("SELECT id FROM documents")} == set(ids[1:])
    assert counted(await application.reconciled()) == {}
    now = await application.contents()
    assert [row[0] for row in now["documents"]] == [row[0] for row in whole["documents"] if row[0] != ids[0]]


async def test_what_belongs_to_no_tenant(application: Application) -> None:
    """Late writes of a tenant that was removed meanwhile, and a tenant whose removal was interrupted."""
    await application.ingested(1)
    whole = await application.contents()
    container = application.container
    await container.catalogue.tenants.remove(NOBODY)
    await container.vectors.upsert(NOBODY, Collection.NODES, [orphan(1, NodeKind.FACT)])
    entity = Entity(id="late", name="Late", type="thing")
    await container.graph.write_document(
        NOBODY, DocumentKnowledge(document_id="late", version=1, title="", chunk_ids=(), entities=(entity,))
    )
    await container.blobs.put(NOBODY, "late/original", b"x")
    half = await container.catalogue.tenants.create("half")
    await application.ingested(1, tenant=half.id)
    await container.catalogue.tenants.mark_deleting(half.id)
    told = await container.reconciler.run_tenants(repair=False)
    assert counted(told) == {"tenant_orphaned": (1, 0), "tenant_deleting": (1, 0)}
    report = await container.reconciler.run_tenants(repair=True)
    assert counted(report) == {"tenant_orphaned": (1, 1), "tenant_deleting": (1, 1)}
    for store in (container.vectors, container.graph, container.blobs):
        assert await store.tenants() == [application.tenant]
    with pytest.raises(NotFound):
        await container.catalogue.tenants.tenant(half.id)
    assert counted(await container.reconciler.run_tenants(repair=True)) == {}
    assert await application.contents() == whole


async def test_as_a_job(application: Application) -> None:
    await application.ingested(1)
    vectors, tenant = application.container.vectors, application.tenant
    await vectors.upsert(tenant, Collection.CHUNKS, [orphan(2, NodeKind.CHUNK, document_id="gone", version=1)])
    for repair, mended in ((False, 0), (True, 1)):
        job = await application.ended(await application.container.reconciler.request_job(tenant, repair=repair))
        assert (job.kind, job.state) == (JobKind.RECONCILE, JobState.SUCCEEDED), job
        assert job.result is not None
        assert (job.result["repair"], job.result["found"], job.result["mended"]) == (repair, 1, mended)
    last = await application.container.reconciler.find_last(tenant)
    assert last is not None
    assert last.id == job.id


async def test_trees(application: Application) -> None:
    await application.ingested(4)
    raptor, vectors, tenant = application.container.raptor, application.container.vectors, application.tenant
    job = await application.ended(await raptor.request_build(tenant, BuildOptions(cluster_size=2)))
    assert job.state == "succeeded", job
    trees = application.container.catalogue.trees
    nodes = await trees.nodes(tenant, 1)
    held = {point.id async for page in vectors.points(tenant, Collection.NODES, kind=NodeKind.RAPTOR) for point in page}
    assert held == {node.point_id(tenant) for node in nodes}
    await vectors.delete(tenant, Collection.NODES, [nodes[0].point_id(tenant)])
    await vectors.upsert(tenant, Collection.NODES, [orphan(1, NodeKind.RAPTOR)])
    await trees.write_nodes(tenant, await trees.next_generation(tenant), nodes)
    await told_and_mended(application, {Kind.TREE_VECTOR_MISSING: 1, Kind.TREE_ORPHANED: 1, Kind.TREE_VECTOR_ORPHANED: 1})
    again = {point.id async for page in vectors.points(tenant, Collection.NODES, kind=NodeKind.RAPTOR) for point in page}
    assert (again, await trees.generations(tenant)) == (held, [1])
