"""Removals that a comparison makes by itself, and removals that need a person's confirmation."""

from __future__ import annotations

import os

from structlog.testing import capture_logs
from tests.integration.reconciliation.conftest import Application

from agentic_rag_backend.domain.graph import DocumentKnowledge, Entity
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.ingestion.reconciliation.removals import FEW, MANY, is_mass
from agentic_rag_backend.ingestion.reconciliation.report import Kind, Report
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, VectorPoint

UNKNOWN = TenantId("t_" + "e" * 32)


def point(number: int, document_id: str) -> VectorPoint:
    id = f"00000000-0000-4000-8000-{number:012}"
    return VectorPoint(id=id, kind=NodeKind.CHUNK, text="a stray", document_id=document_id, version=1)


def counted(report: Report, kind: Kind) -> tuple[int, int, int]:
    tally = report.tallies[kind]
    return tally.found, tally.mended, tally.withheld


def test_a_mass_removal_is_many_things_or_a_large_share() -> None:
    for found, held, mass in [
        (0, 0, False),
        (FEW, FEW, False),
        (FEW + 1, FEW + 1, True),
        (FEW + 1, 1_000, False),
        (100, 1_000, False),
        (101, 1_000, True),
        (MANY, 10**6, False),
        (MANY + 1, 10**6, True),
    ]:
        assert is_mass(found, held) is mass


async def test_data_of_tenants_that_the_catalogue_never_had_waits_for_a_person(application: Application) -> None:
    container = application.container
    await container.vectors.upsert(UNKNOWN, Collection.CHUNKS, [point(1, "d")])
    await container.blobs.put(UNKNOWN, "d/1", b"x")
    with capture_logs() as logs:
        report = await container.reconciler.run_tenants(repair=True)
    assert counted(report, Kind.TENANT_ORPHANED) == (1, 0, 1)
    (warning,) = [each for each in logs if each["log_level"] == "warning"]
    assert (warning["event"], warning["tenants"], warning["examples"]) == ("data_of_unknown_tenants_kept", 1, [UNKNOWN.value])
    assert await container.vectors.count(UNKNOWN, Collection.CHUNKS) == 1

    with capture_logs() as logs:
        report = await container.reconciler.run_tenants(repair=True, confirmed=True)
    assert counted(report, Kind.TENANT_ORPHANED) == (1, 1, 0)
    (removed,) = [each for each in logs if each["event"] == "data_of_removed_tenant_removed"]
    assert (removed["tenant"], removed["vectors"], removed["blobs"]) == (UNKNOWN.value, 1, 1)
    assert await container.vectors.tenants() == await container.blobs.tenants() == []


async def test_many_documents_that_the_catalogue_lost_wait_for_a_person(application: Application) -> None:
    """As after restoring the catalogue from an old backup: vectors, knowledge and originals are newer."""
    await application.ingested(1)
    container, tenant = application.container, application.tenant
    whole = await application.contents()
    lost = FEW + 1
    await container.vectors.upsert(tenant, Collection.CHUNKS, [point(n, f"lost-{n}") for n in range(lost)])
    for number in range(lost):
        entity = Entity(id=f"lost-{number}", name=f"Lost {number}", type="thing")
        knowledge = DocumentKnowledge(document_id=f"lost-{number}", version=1, title="", chunk_ids=(), entities=(entity,))
        await container.graph.write_document(tenant, knowledge)
        await container.blobs.put(tenant, f"lost-{number}/1", b"x")
    for file in (application.folder / "blobs" / tenant.value).rglob("*"):
        if file.is_file():
            os.utime(file, (1, 1))
    damaged = await application.contents()
    kinds = (Kind.CHUNK_VECTOR_ORPHANED, Kind.KNOWLEDGE_ORPHANED, Kind.ORIGINAL_ORPHANED)

    with capture_logs() as logs:
        report = await application.reconciled()
    assert [counted(report, kind) for kind in kinds] == [(lost, 0, lost)] * 3
    warned = {each["kind"]: (each["found"], each["held"]) for each in logs if each["event"] == "removal_withheld"}
    assert warned == {kind.value: (lost, lost + 1) for kind in kinds}
    assert await container.reconciler.sweep() == 0
    assert await application.contents() == damaged

    report = await container.reconciler.run(tenant, repair=True, confirmed=True)
    assert [counted(report, kind) for kind in kinds] == [(lost, lost, 0)] * 3
    assert await application.contents() == whole


async def test_a_job_that_mends_with_a_persons_word_does_not_join_one_without(application: Application) -> None:
    reconciler, tenant = application.container.reconciler, application.tenant
    asked = [await reconciler.request_job(tenant, repair=True, confirmed=confirmed) for confirmed in (False, True)]
    assert asked[0].id != asked[1].id
    ended = [await application.ended(job) for job in asked]
    assert [bool(job.arguments["confirm"]) for job in ended] == [False, True]
